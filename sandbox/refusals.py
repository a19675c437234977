"""How the sandbox says no: errors of AWS, and the sandbox's own."""

from moto.core.exceptions import ServiceException


class AwsRefusal(ServiceException):  # type: ignore[misc]
    """An error answer of AWS, serialised as botocore's model says."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)


class NotSimulated(NotImplementedError):
    """The sandbox was asked for something that it does not know; it never answers with a guess."""


class Killed(BaseException):
    """The process dies here. Not an Exception, so that no handler of the program can catch it by accident."""


def invalid(message: str) -> AwsRefusal:
    """The ValidationException that most services answer with."""
    return AwsRefusal("ValidationException", message)
