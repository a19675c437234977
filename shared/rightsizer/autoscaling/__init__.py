"""Effects of Application Auto Scaling on an endpoint, computed without a call to AWS."""
