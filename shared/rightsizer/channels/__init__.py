"""Where people are told and asked: Slack and SNS."""
