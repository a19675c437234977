"""What AWS refuses, seen on the simulated account: one request for each check of `sandbox.strict`."""
