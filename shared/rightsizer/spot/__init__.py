"""Decisions about Spot capacity on EC2 and about HyperPod clusters."""
