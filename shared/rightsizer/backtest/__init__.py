"""Automatic mode on past days, and the days after on its fleet."""
