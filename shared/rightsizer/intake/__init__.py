"""Intake: AWS events become triggers."""
