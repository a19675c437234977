"""Keys of the policy document: meaning, bounds, default, and what happens where a value cannot be understood.

One table for the reader, the JSON schema, the page docs/policy.md and the terminal. A key without a value of its own
keeps what is in force without it: the stack's parameter `Limits`, or the default of `ChangeLimits` and `Policy`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class KeyKind(StrEnum):
    """Kind of the value of a key."""

    NUMBER = "a number"
    WHOLE = "a whole number"
    FLAG = "true or false"
    WINDOW = "always, or days, hours and a time zone, such as 'mon-fri 09:00-17:00 Europe/Berlin'"
    ALARMS = "a list of names of alarms"
    DATES = "a list of days, such as 2026-12-25"
    ZONE = "a time zone, such as Europe/Berlin"
    DIMENSIONS = "a list of autoscaling, routing, schedule"
    OBJECTIVE = "as-today, or the p95 in milliseconds"
    PEOPLE = "a list of Slack user ids, role/NAME, user/NAME or ARNs of IAM"
    CHANNEL = "the id of a Slack channel, such as C0123456789"


class Fallback(StrEnum):
    """Consequence of a value that cannot be understood. None undoes or stops what has begun."""

    HOLD = "no change begins"
    ASK = "nothing changes by itself, a person is asked"
    SAFE = "the safest value holds"


@dataclass(frozen=True, slots=True)
class PolicyKey:
    """One key of the policy document."""

    kind: KeyKind
    about: str
    """What the key sets, in words for people."""
    default: str
    """What holds where nobody says anything."""
    least: float = 0
    most: float = 1_000_000
    """Bounds of a number, both allowed."""
    is_of_account: bool = False
    """Counted over the whole account, so that it stands in `defaults` only."""
    fallback: Fallback = Fallback.HOLD
    safest: str = ""
    """Of the fallback SAFE: the value that holds then."""


APPROVERS, FOUR_EYES, AUTOMATIC, CHANNEL, OBJECTIVE = "approvers", "four_eyes", "automatic", "channel", "objective"
MINIMUM_SAVING = "minimum_saving_usd"
POLICY_DOCUMENT = "policy document"
"""The first words of each sentence about what cannot be understood in it."""
PEOPLE = "people"
"""The key of an owner that names the persons who own, and no value of a section."""

_NUMBER, _WHOLE = KeyKind.NUMBER, KeyKind.WHOLE
_ASK, _SAFE = Fallback.ASK, Fallback.SAFE

KEYS: Mapping[str, PolicyKey] = MappingProxyType(
    {
        # who decides
        APPROVERS: PolicyKey(
            KeyKind.PEOPLE,
            "who may decide, in Slack and at a terminal",
            "the stack's parameter Approvers",
            fallback=_SAFE,
            safest="the entries that can be understood decide, and nobody where there is none",
        ),
        FOUR_EYES: PolicyKey(
            KeyKind.FLAG,
            "whether owners, and whoever asked for a test or an order, need somebody else to approve",
            "false",
            fallback=_SAFE,
            safest="true",
        ),
        # how it is decided
        AUTOMATIC: PolicyKey(
            KeyKind.FLAG, "whether the tag rightsizer:mode=auto lets changes begin by themselves", "true", fallback=_ASK
        ),
        OBJECTIVE: PolicyKey(
            KeyKind.OBJECTIVE,
            "the latency to keep where no tag rightsizer:p95-ms says it",
            "as-today",
            least=1,
            most=3_600_000,
            fallback=_ASK,
        ),
        MINIMUM_SAVING: PolicyKey(
            _NUMBER, "US dollars a month; what saves less is reported and not proposed", "50", fallback=_ASK
        ),
        "dimensions": PolicyKey(
            KeyKind.DIMENSIONS,
            "what automatic mode changes beside type and count",
            "autoscaling, routing, schedule",
            fallback=_SAFE,
            safest="none of them",
        ),
        "tests_per_month": PolicyKey(
            _WHOLE, "shadow tests of one endpoint in a month", "4", most=31, fallback=_SAFE, safest="0"
        ),
        "lookback_days": PolicyKey(
            _WHOLE, "days of metrics behind a decision", "14", least=14, most=63, is_of_account=True, fallback=_ASK
        ),
        # how far changes may go
        "window": PolicyKey(KeyKind.WINDOW, "when a change may begin; 10 minutes or more", "always"),
        "cooldown_hours": PolicyKey(_NUMBER, "rest of an endpoint after a change", "24"),
        "probation_hours": PolicyKey(_NUMBER, "how long a change is watched", "24", least=1, most=24),
        "proof_requests": PolicyKey(_WHOLE, "requests, served well, that prove a change", "200"),
        "proof_days": PolicyKey(_NUMBER, "days after which an unproven change is closed as it is", "14", most=365),
        "grace_days": PolicyKey(
            _NUMBER, "days that an idle endpoint is watched before its deletion", "7", least=1, most=365
        ),
        "bake_minutes": PolicyKey(_NUMBER, "baking time of a deployment", "10", most=60),
        "incident_alarms": PolicyKey(KeyKind.ALARMS, "alarms of yours; nothing begins while one fires", "none"),
        "changes_per_day": PolicyKey(_WHOLE, "changes that may begin on one day (UTC)", "10", is_of_account=True),
        "usd_per_day": PolicyKey(
            _NUMBER, "US dollars that the switches of one day may cost", "500", is_of_account=True
        ),
        # office hours
        "holidays": PolicyKey(KeyKind.DATES, "days on which office hours stay closed", "none", is_of_account=True),
        "hours_zone": PolicyKey(
            KeyKind.ZONE, "time zone in which office hours are proposed", "the zone of window", is_of_account=True
        ),
        "stop_grace_minutes": PolicyKey(
            _NUMBER, "no stop so soon after requests", "30", least=10, most=1440, is_of_account=True
        ),
        "wakes_per_day": PolicyKey(_WHOLE, "wakes of one endpoint in 24 hours", "3", most=1000, is_of_account=True),
        "longest_wake_hours": PolicyKey(
            _NUMBER, "the longest stay of one wake", "12", least=0.5, most=72, is_of_account=True
        ),
        # whom it is told
        CHANNEL: PolicyKey(
            KeyKind.CHANNEL,
            "the Slack channel of proposals",
            "the stack's parameter SlackChannel",
            fallback=_SAFE,
            safest="the channel of the next place holds",
        ),
    }
)
"""Every key of a section, in the order of the page."""
