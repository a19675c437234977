"""Protocols of the flows, implemented by adapters and tests."""
