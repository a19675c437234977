"""What Application Auto Scaling does with an endpoint, reckoned without asking it."""
