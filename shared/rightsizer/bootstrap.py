"""Settings to adapters to flows: the only place that chooses."""
