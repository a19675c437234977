"""Adapters: one module an AWS service; the only place that speaks to AWS."""
