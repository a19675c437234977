"""Advice on hardware and endpoint type for a workload that does not run yet: `advise.advise` is the entry. Pure."""
