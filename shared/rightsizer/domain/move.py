"""The next move of a change, as `rules.advance` decides it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rightsizer.domain.change import ChangeState, Course, FailureClass
from rightsizer.domain.reason import Reason
from rightsizer.domain.step import Step


@dataclass(frozen=True, slots=True)
class Do:
    """Write this to AWS next."""

    step: Step
    kind: Literal["do"] = "do"


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to write now; look again then."""

    until: datetime
    why: str
    kind: Literal["wait"] = "wait"


@dataclass(frozen=True, slots=True)
class Steer:
    """Take another course, or pass a milestone; no write to AWS."""

    reason: Reason
    course: Course | None = None
    ending: ChangeState | None = None
    failure: FailureClass = FailureClass.NONE
    turned: bool = False
    """The new configuration has arrived."""
    applied: bool = False
    """Autoscaling is settled too; from here on it is the customer's again."""
    returned: bool = False
    remaining: tuple[str, ...] = ()
    kind: Literal["steer"] = "steer"


@dataclass(frozen=True, slots=True)
class Finish:
    """The change is over."""

    state: ChangeState
    reason: Reason
    kind: Literal["finish"] = "finish"


@dataclass(frozen=True, slots=True)
class Replan:
    """What the plan stands on moved before the endpoint felt anything: make the plan again."""

    reason: Reason
    kind: Literal["replan"] = "replan"


type Move = Do | Wait | Steer | Finish | Replan
