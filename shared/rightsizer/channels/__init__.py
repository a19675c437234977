"""Notification channels: Slack and SNS."""
