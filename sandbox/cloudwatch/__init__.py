"""CloudWatch metrics and alarms: exact dimensions, aligned periods, percentiles, limits."""
