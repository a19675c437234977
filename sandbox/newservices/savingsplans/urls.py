"""Which requests are answered."""

from moto.core.responses import BaseResponse

from sandbox.bridge import response_class


class _Base(BaseResponse):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(service_name="savingsplans")


url_bases = [r"https?://savingsplans\.(.+\.)?amazonaws\.com"]
url_paths = {"{0}/(?P<operation>[^/]+)$": response_class(_Base, "savingsplans", frozenset()).dispatch}
