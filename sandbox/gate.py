"""Every AWS request passes the gate: it is recorded, and may be refused, or be the last one of the process.

One request is one attempt: botocore's retries are separate rows, as AWS would count them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from sandbox import strict
from sandbox.refusals import Killed

_WRITES = (
    "Create", "Update", "Delete", "Put", "Register", "Deregister", "Add", "Remove", "Set", "Send", "Publish",
    "Batch", "Transact", "Detach", "Attach", "Terminate", "Start", "Stop", "Tag", "Untag", "Enable", "Disable",
)  # fmt: skip
_READS = ("BatchGet", "BatchCheck")
PERMITTED_BY = {
    "lambda:Invoke": ("lambda:InvokeFunction",),
    "cloudwatch:QueryMetrics": ("cloudwatch:GetMetricData", "cloudwatch:ListMetrics"),
    "sqs:SendMessageBatch": ("sqs:SendMessage",),
}
"""Operations that IAM knows no action of, and what they ask for.

Sources: CloudWatch guide, "Query metrics with PromQL"; SQS Developer Guide, "Amazon SQS API permissions".
"""
IAM_PREFIX = {"resourcegroupstaggingapi": "tag", "service-quotas": "servicequotas", "stepfunctions": "states"}


@dataclass(slots=True)
class Call:
    """One request to AWS."""

    number: int
    service: str
    operation: str
    params: Mapping[str, Any]
    error: str | None = None

    @property
    def action(self) -> str:
        """``service:Operation``, as in the counts."""
        return f"{self.service}:{self.operation}"

    @property
    def writes(self) -> bool:
        """Whether AWS may change by it."""
        return self.operation.startswith(_WRITES) and not self.operation.startswith(_READS)


class CallLog(list[Call]):
    """The requests in their order."""

    def counts(self) -> Counter[str]:
        """Requests by action."""
        return Counter(call.action for call in self)

    def of(self, service: str, operation: str = "*") -> list[Call]:
        """The requests of a service and operation; `*` matches any."""
        return [call for call in self if call.service == service and fnmatchcase(call.operation, operation)]

    def writes(self) -> list[Call]:
        """The requests that may have changed something."""
        return [call for call in self if call.writes]


@dataclass(frozen=True, slots=True)
class Fault:
    """An error answer that the gate gives instead of AWS."""

    code: str
    message: str

    @property
    def status(self) -> int:
        """The HTTP status of such an answer."""
        if self.code in {"InternalFailure", "InternalServerError", "InternalServerException", "InternalError"}:
            return 500
        return 503 if self.code.startswith("ServiceUnavailable") else 400


@dataclass(slots=True)
class _Plan:
    service: str
    operation: str
    fault: Fault
    skip: int
    times: float
    where: Callable[[Mapping[str, Any]], bool]

    def hits(self, call: Call) -> bool:
        if call.service != self.service or not fnmatchcase(call.operation, self.operation):
            return False
        if self.times <= 0 or not self.where(call.params):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.times -= 1
        return True


@dataclass(slots=True)
class _Kill:
    nth: int
    after: bool
    matches: Callable[[Call], bool]
    victim: int | None = None


@dataclass(slots=True)
class Gate:
    """Records, refuses, kills."""

    calls: CallLog = field(default_factory=CallLog)
    _plans: list[_Plan] = field(default_factory=list)
    _denied: dict[str, str] = field(default_factory=dict)
    _kill: _Kill | None = None
    recording: bool = True
    judge: Callable[[Call], Fault | None] = lambda call: None
    """An IAM role over the recorded requests (`sandbox.role`); everything is allowed unless one is set."""
    after: Callable[[Call], None] | None = None
    """Called when a recorded request has been answered; may raise Killed, as `kill` does."""

    def fail(
        self,
        service: str,
        operation: str,
        error_code: str,
        message: str = "",
        *,
        nth: int = 1,
        times: float = 1,
        where: Callable[[Mapping[str, Any]], bool] = lambda params: True,
    ) -> None:
        """Answer the `nth` matching request from now on, and `times` in all, with this error (`math.inf` for ever).

        botocore repeats throttled requests: give `times` to outlast it.
        """
        text = message or {"ThrottlingException": "Rate exceeded", "Throttling": "Rate exceeded"}.get(error_code, "")
        fault = Fault(error_code, text or f"{error_code} injected by the sandbox")
        self._plans.append(_Plan(service, operation, fault, nth - 1, times, where))

    def deny(self, *actions: str, code: str = "AccessDeniedException") -> None:
        """Refuse these IAM actions (``sagemaker:UpdateEndpoint``, ``sagemaker:*``) from now on."""
        self._denied.update(dict.fromkeys(actions, code))

    def allow(self, *actions: str) -> None:
        """Take back a denial."""
        for action in actions:
            self._denied.pop(action, None)

    def heal(self) -> None:
        """Forget all faults, denials and kills."""
        self._plans.clear()
        self._denied.clear()
        self._kill = None

    def kill(self, nth: int, *, after: bool = True, matches: Callable[[Call], bool] = lambda call: call.writes) -> None:
        """Raise Killed at the `nth` matching request from now on: after AWS acted on it, or before it got there."""
        self._kill = _Kill(nth, after, matches)

    @contextmanager
    def unrecorded(self) -> Iterator[None]:
        """Requests inside are the test's own: neither recorded nor refused."""
        before, self.recording = self.recording, False
        try:
            yield
        finally:
            self.recording = before

    def arrive(self, service: str, operation: str, params: Mapping[str, Any]) -> tuple[Call | None, Fault | None]:
        """A request arrives: its row, and the error to answer with, if any. May raise Killed."""
        if not self.recording:
            return None, None
        call = Call(len(self.calls) + 1, service, operation, params)
        self.calls.append(call)
        self._maybe_kill_before(call)
        fault = self._denial(call) or self.judge(call) or _forbidden(call)
        fault = fault or next((plan.fault for plan in self._plans if plan.hits(call)), None)
        if fault:
            call.error = fault.code
        return call, fault

    def leave(self, call: Call, error: str | None) -> None:
        """The answer to a request leaves. May raise Killed: AWS acted, and the program never heard of it."""
        call.error = error
        if self._kill and self._kill.victim == call.number:
            self._kill = None
            raise Killed(f"killed after {call.action} (request {call.number})")
        if self.after is not None:
            self.after(call)

    def _maybe_kill_before(self, call: Call) -> None:
        if not self._kill or self._kill.victim is not None or not self._kill.matches(call):
            return
        self._kill.nth -= 1
        if self._kill.nth > 0:
            return
        if self._kill.after:
            self._kill.victim = call.number
            return
        self._kill = None
        call.error = "Killed"
        raise Killed(f"killed before {call.action} (request {call.number})")

    def _denial(self, call: Call) -> Fault | None:
        action = f"{IAM_PREFIX.get(call.service, call.service)}:{call.operation}"
        needed = PERMITTED_BY.get(action, (action,))
        for pattern, code in self._denied.items():
            for action in (one for one in needed if fnmatchcase(one, pattern)):
                text = (
                    "User: arn:aws:sts::111122223333:assumed-role/sandbox/session is not authorized to perform: "
                    f"{action} "
                    "because no identity-based policy allows the action"
                )
                return Fault(code, text)
        return None


def _forbidden(call: Call) -> Fault | None:
    """What AWS refuses whatever the account holds (`sandbox.strict`)."""
    refused = strict.judge(call.service, call.operation, call.params)
    return Fault(*refused) if refused else None
