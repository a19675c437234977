"""Which requests are answered."""

from moto.core.responses import BaseResponse

from sandbox.bridge import response_class


class _Base(BaseResponse):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(service_name="pricing")


url_bases = [r"https?://(api\.)?pricing\.(.+)\.amazonaws\.com"]
url_paths = {"{0}/$": response_class(_Base, "pricing", frozenset()).dispatch}
