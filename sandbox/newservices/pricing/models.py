"""moto wants a backend; the state lives in the sandbox's world."""

from moto.core.base_backend import BackendDict, BaseBackend


class Backend(BaseBackend):  # type: ignore[misc]
    """Holds nothing."""


pricing_backends = BackendDict(Backend, "pricing", use_boto3_regions=False, additional_regions=["us-east-1"])
