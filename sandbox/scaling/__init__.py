"""Application Auto Scaling for SageMaker, with the refusals and the deletions that AWS does."""
