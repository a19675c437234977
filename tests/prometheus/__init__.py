"""The adapter of a Prometheus server, and the advice that is read through it."""
