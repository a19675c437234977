"""Adapter of a Prometheus server: reads series by its HTTP API, and writes nothing."""
