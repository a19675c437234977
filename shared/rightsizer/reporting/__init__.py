"""Totals, own cost and kept promises of a report."""
