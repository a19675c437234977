"""What automatic mode would have done on past days, and how the days after would have gone."""
