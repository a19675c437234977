"""Why something was done, or was not: a code for machines and a sentence with numbers for people.

A sentence may quote what others wrote: names, tags, comments, alarm names, error messages of AWS. Every channel cleans
that text where it leaves the program, and then escapes it in its own way. A character that is not printable (control
characters with ESC, bidirectional controls, zero-width characters, lone surrogates) could change what a person reads
around it, so it is replaced where it stands. Nothing that a person can see is lost.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from rightsizer.domain.checks import not_empty
from rightsizer.errors import PermissionMissingError, RightsizerError, ThrottledError, VanishedError

MARK = "\N{REPLACEMENT CHARACTER}"
"""Stands where a character was that must not be shown."""
LONGEST = 3000
"""Characters of one text in a message. Names have at most 256, reasons of AWS at most 1024."""


def clean_text(text: str, most: int = LONGEST) -> str:
    """The text without characters that are not printable; lines stay lines. At most `most` characters."""
    return "\n".join(_printable(line) for line in shorten(text, most).split("\n"))


def one_line(text: str, most: int = LONGEST) -> str:
    """The cleaned text as one line: a line break becomes a space."""
    return _printable(shorten(text, most))


def time_text(at: datetime) -> str:
    """A time as every sentence says it: ``Mon 12 Jan 2026, 09:30 UTC``."""
    at = at.astimezone(UTC)
    return f"{at:%a} {at.day} {at:%b %Y, %H:%M} UTC"


def day_text(at: datetime) -> str:
    """A day as every sentence says it: ``12 Jan 2026``."""
    return f"{at.day} {at:%b %Y}"


def shorten(text: str, most: int) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else MARK for letter in text)


class Code(StrEnum):
    """Machine-readable reasons. They label metrics, fill report columns and never change their meaning."""

    # intake
    UNKNOWN_EVENT = "unknown-event"
    NOT_FOR_US = "not-for-us"
    NOT_TRUSTED = "not-trusted"
    MUTED = "muted"
    NOT_ALARMING = "not-alarming"
    REPLAYED = "replayed"
    STALE = "stale"
    ALREADY_SEEN = "already-seen"
    # observation
    VANISHED = "vanished"
    PERMISSION_MISSING = "permission-missing"
    THROTTLED = "throttled"
    READ_FAILED = "read-failed"
    NO_TIME = "no-time"
    NOT_IN_SERVICE = "not-in-service"
    NO_ACCELERATOR = "no-accelerator"
    OTHER_KIND = "other-kind"
    UNKNOWN_FIELD = "unknown-field"
    CONFIGURATION_REPLACED = "configuration-replaced"
    OWNED_BY_STACK = "owned-by-stack"
    BAD_TAG = "bad-tag"
    ELASTIC_INFERENCE_GONE = "elastic-inference-gone"
    # usage and demand
    NO_DATAPOINTS = "no-datapoints"
    TOO_FEW_DAYS = "too-few-days"
    TOO_MANY_GAPS = "too-many-gaps"
    TOO_FEW_REQUESTS = "too-few-requests"
    NO_GPU_METRICS = "no-gpu-metrics"
    UNKNOWN_MEMORY_NEED = "unknown-memory-need"
    # options
    NO_PRICE = "no-price"
    NOT_SOLD = "not-sold"
    NO_SPECIFICATION = "no-specification"
    MEMORY_TOO_SMALL = "memory-too-small"
    HOST_MEMORY_TOO_SMALL = "host-memory-too-small"
    VCPU_TOO_FEW = "vcpu-too-few"
    TOO_SLOW = "too-slow"
    TOO_BUSY = "too-busy"
    ANOTHER_ARCHITECTURE = "another-architecture"
    ANOTHER_VENDOR = "another-vendor"
    OTHER_GPU_COUNT = "other-gpu-count"
    COMPUTE_CAPABILITY_TOO_OLD = "compute-capability-too-old"
    NO_QUOTA = "no-quota"
    NOT_CHEAPER = "not-cheaper"
    DEARER_THAN_OFFERED = "dearer-than-offered"
    NOT_APPLICABLE = "not-applicable"
    NEEDS_PARTNERS = "needs-partners"
    # decision
    IDLE = "idle"
    ALREADY_RIGHT = "already-right"
    UNDER_PROVISIONED = "under-provisioned"
    CHEAPER_OPTION = "cheaper-option"
    SAVING_TOO_SMALL = "saving-too-small"
    COMMITTED = "committed"
    MODE_OFF = "mode-off"
    MODE_REPORT = "mode-report"
    NO_OBJECTIVE = "no-objective"
    NOT_OPTED_IN = "not-opted-in"
    TOO_MANY_ERRORS = "too-many-errors"
    RISK_TOO_HIGH = "risk-too-high"
    TOO_LITTLE_CONFIDENCE = "too-little-confidence"
    PAYBACK_TOO_LONG = "payback-too-long"
    COOLDOWN = "cooldown"
    BLACKLISTED = "blacklisted"
    LATE_BUDGET_SPENT = "late-budget-spent"
    AUTOSCALED = "autoscaled"
    NOT_IN_PLACE = "not-in-place"
    NEEDS_APPROVAL = "needs-approval"
    NOT_APPROVER = "not-approver"
    TEST_WORTH_IT = "test-worth-it"
    TEST_NOT_POSSIBLE = "test-not-possible"
    TEST_NOT_ALLOWED = "test-not-allowed"
    SAFE_TO_APPLY = "safe-to-apply"
    EVALUATED_RECENTLY = "evaluated-recently"
    # back-test
    WOULD_HOLD = "would-hold"
    WOULD_BE_LATE = "would-be-late"
    CANNOT_TELL = "cannot-tell"
    # change
    FROZEN = "frozen"
    OUTSIDE_WINDOW = "outside-window"
    BAD_SETTING = "bad-setting"
    CHANGED_SINCE = "changed-since"
    NEWER_JUDGEMENT = "newer-judgement"
    JUDGEMENT_UNKNOWN = "judgement-unknown"
    BUDGET_SPENT = "budget-spent"
    INCIDENT = "incident"
    ALARM_NOT_OK = "alarm-not-ok"
    MOVING_TAG = "moving-tag"
    KMS_ON_NVME = "kms-on-nvme"
    REFUSED_BY_AWS = "refused-by-aws"
    ROLLED_BACK = "rolled-back"
    CAPACITY = "capacity"
    HEALTH_CHECK = "health-check"
    ALARM = "alarm"
    TIMEOUT = "timeout"
    UNKNOWN_FAILURE = "unknown-failure"
    WAY_BACK_FAILED = "way-back-failed"
    PROVEN = "proven"
    UNPROVEN = "unproven"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    REJECTED = "rejected"
    # spot
    NO_GROUP = "no-group"
    SOMEONE_ELSE_HANDLES = "someone-else-handles"
    INTERRUPTED = "interrupted"
    RECORDED_ONLY = "recorded-only"
    INSTANCE_GONE = "instance-gone"
    FOREIGN_INSTANCE = "foreign-instance"
    REPLACES_ITSELF = "replaces-itself"
    LAUNCH_SUSPENDED = "launch-suspended"
    NOT_SERVING = "not-serving"
    SPOT_POOL_OPEN = "spot-pool-open"
    NO_OPEN_POOL = "no-open-pool"
    SPOT_TOO_UNSTEADY = "spot-too-unsteady"
    MORE_POOLS = "more-pools"
    WAIT_RUNS_OUT = "wait-runs-out"
    SPOT_NEXT_TIME = "spot-next-time"
    NO_CHECKPOINT = "no-checkpoint"
    WARM_POOL_IDLE = "warm-pool-idle"
    CLUSTER_SHORT = "cluster-short"


UNREADABLE = frozenset({Code.PERMISSION_MISSING, Code.THROTTLED, Code.READ_FAILED})
"""AWS did not answer a read. It says nothing about the endpoint, and may be over at the next look."""
OF_APPROVAL = frozenset(
    {
        Code.AUTOSCALED,
        Code.BAD_TAG,
        Code.CONFIGURATION_REPLACED,
        Code.NEEDS_APPROVAL,
        Code.NOT_IN_PLACE,
        Code.NOT_OPTED_IN,
        Code.OTHER_KIND,
        Code.PAYBACK_TOO_LONG,
        Code.RISK_TOO_HIGH,
        Code.TEST_WORTH_IT,
        Code.TOO_LITTLE_CONFIDENCE,
        Code.TOO_MANY_ERRORS,
        Code.TOO_MANY_GAPS,
        Code.UNKNOWN_FIELD,
    }
)
"""Reasons of a question to a person whose sentences say that it is one: ``needs your approval: ...``."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A code and the sentence that goes with it; the sentence carries the numbers."""

    code: Code
    sentence: str

    def __post_init__(self) -> None:
        not_empty("Reason.sentence", self.sentence)
        if not self.sentence.isprintable():  # it may quote a name, or an error message of AWS
            object.__setattr__(self, "sentence", one_line(self.sentence))

    def __str__(self) -> str:
        return self.sentence


def seconds_text(value: float) -> str:
    """Seconds in a sentence: ``0.82 s``, and ``5 ms`` where hundredths of a second would say too little."""
    return f"{value:.2f} s" if value >= 0.1 else f"{1000 * value:.3g} ms"


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 request``, ``1,240 requests``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def reason_of(error: RightsizerError) -> Reason:
    """The reason that goes with an error of ours."""
    match error:
        case PermissionMissingError():
            code = Code.PERMISSION_MISSING
        case VanishedError():
            code = Code.VANISHED
        case ThrottledError():
            code = Code.THROTTLED
        case _:
            code = Code.READ_FAILED
    return Reason(code, str(error))
