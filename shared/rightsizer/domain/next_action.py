"""The next action of a change: a step, a wait, another course, its end, or its plan made again."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rightsizer.domain.change import ChangeState, Course, FailureClass
from rightsizer.domain.plan import Step
from rightsizer.domain.reason import Reason


@dataclass(frozen=True, slots=True)
class Do:
    """Write this to AWS next."""

    step: Step
    kind: Literal["do"] = "do"


@dataclass(frozen=True, slots=True)
class Wait:
    """No write now; look again at `until`."""

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
    """Make the plan again: its inputs changed before any step that the endpoint feels."""

    reason: Reason
    kind: Literal["replan"] = "replan"


type NextAction = Do | Wait | Steer | Finish | Replan
