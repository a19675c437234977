"""SageMaker's control plane for endpoints, with its refusals and its slowness."""
