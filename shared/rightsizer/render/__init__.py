"""Render: recommendations, proposals and reports for people and machines. Pure."""
