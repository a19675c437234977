"""What may go wrong on purpose.

RightsizerError
├── InputError            a value at the door is not what it should be
│   └── UnreadableError            a stored row that this release cannot read
├── SettingsError         an environment variable is missing or nonsense
├── ReadError             a port could not read
│   ├── PermissionMissingError     IAM refuses; names the action
│   ├── VanishedError              the thing was there a moment ago
│   └── ThrottledError             AWS asks to slow down; safe to try again
├── WriteRefusedError          AWS refuses a write; not retryable, carries AWS's text
├── NotApproverError           the stack's list does not let the caller decide
└── ConflictError              a conditional write lost: somebody else was first
    └── BudgetUnreadableError      nobody knows what the day may still start

Messages read "doing what to which thing: cause; remedy".
"""


class RightsizerError(Exception):
    """Root of every error that rightsizer raises on purpose."""


class InputError(RightsizerError):
    """A value from outside is malformed; the message names the field, the value and what was expected."""


class UnreadableError(InputError):
    """A stored row cannot be read by this release: malformed, or written by a newer one. Nothing was changed."""


class SettingsError(RightsizerError):
    """An environment variable is missing or cannot be understood; the message names it."""


class ReadError(RightsizerError):
    """A read from AWS or a store failed for a reason that is not one of the subclasses."""


class PermissionMissingError(ReadError):
    """IAM refuses a call. `action` is the IAM action, such as ``sagemaker:DescribeEndpoint``."""

    def __init__(self, action: str, purpose: str, detail: str = "") -> None:
        self.action = action
        self.purpose = purpose
        super().__init__(
            f"{purpose}: the permission {action} is missing; add it to the role in use"
            + (f" ({detail})" if detail else "")
        )


class VanishedError(ReadError):
    """The resource no longer exists."""


class ThrottledError(ReadError):
    """AWS throttled the call beyond the client's own retries; trying again later is safe."""


class WriteRefusedError(RightsizerError):
    """AWS refuses a write. `code` and `text` are AWS's own."""

    def __init__(self, doing: str, code: str, text: str) -> None:
        self.code = code
        self.text = text
        super().__init__(f"{doing}: {code}: {text}")


class NotApproverError(RightsizerError):
    """The stack's list Approvers does not let the caller decide; nothing was recorded."""


class ConflictError(RightsizerError):
    """A conditional write found the record changed by somebody else; nothing was written."""


class BudgetUnreadableError(ConflictError):
    """The row of the day's budget cannot be read, so no change may start; nothing was written."""
