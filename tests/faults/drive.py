"""Run one change in one scenario to one ending, killed after one call, and say which laws broke."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from rightsizer.errors import RightsizerError
from sandbox.refusals import Killed
from sandbox.sagemaker.deployment import Ending
from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.changing.world import NAME, World, world
from tests.faults.laws import broken, snapshot

HOURS = 80
"""Longer than any path through the journal: maintenance, retries and probation included."""

type Meddle = Callable[[World], bool]
"""Called before every tick; returns True once it has done its deed."""


@dataclass(frozen=True)
class Course:
    """What happens to the change from outside."""

    name: str
    prepare: Callable[[World], None] = lambda w: None
    meddle: Meddle | None = None
    deploys: bool = False
    """Makes sense only where a configuration is deployed."""


def scripted(ending: Ending) -> Course:
    return Course(ending.value.replace("_", " "), lambda w: w.box.script_deployment(NAME, ending), deploys=True)


def refused(name: str, operation: str, code: str, text: str, times: float) -> Course:
    return Course(name, lambda w: w.box.fail("sagemaker", operation, code, text, times=times))


QUOTA = (
    "The account-level service limit 'ml.g5.xlarge for endpoint usage' is 2 Instances, with current utilization of 2 "
    "Instances and a request delta of 1 Instances."
)


def _deleted(w: World) -> bool:
    if w.box.status(NAME) != "Updating":
        return False
    w.box.remove_endpoint(NAME)
    return True


def _redeployed(w: World) -> bool:
    """Somebody deploys a configuration of theirs once ours is there."""
    if w.box.status(NAME) != "InService" or w.box.config_name(NAME) == f"{NAME}-config":
        return False
    sagemaker = w.box.client("sagemaker")
    with w.box.gate.unrecorded():
        body = sagemaker.describe_endpoint_config(EndpointConfigName=w.box.config_name(NAME))
        kept = {k: body[k] for k in ("ProductionVariants", "MetricsConfig")}
        sagemaker.create_endpoint_config(EndpointConfigName="theirs", **kept)
        sagemaker.update_endpoint(EndpointName=NAME, EndpointConfigName="theirs")
    return True


def _denied(w: World) -> bool:
    if w.box.status(NAME) != "Updating":
        return False
    w.box.deny(
        "application-autoscaling:Register*", "application-autoscaling:Put*", "cloudwatch:Delete*", "cloudwatch:Put*"
    )
    return True


def _frozen(w: World) -> bool:
    from rightsizer.flows.orders import Orders

    if not w.box.calls.of("cloudwatch", "PutMetricAlarm"):
        return False
    with w.box.gate.unrecorded():
        Orders(w.journal).freeze("U1", w.now)
        Orders(w.journal).ask_back(w.change.id, "U1", w.now)
    return True


def _asked_back(w: World) -> bool:
    from rightsizer.flows.orders import Orders

    if w.change.turned_at is None:
        return False
    with w.box.gate.unrecorded():
        Orders(w.journal).ask_back(w.change.id, "U1", w.now)
    return True


COURSES: tuple[Course, ...] = (
    Course("success"),
    scripted(Ending.ALARM),
    scripted(Ending.CAPACITY),
    scripted(Ending.HEALTH_CHECK),
    scripted(Ending.TIMEOUT),
    scripted(Ending.INTERNAL),
    scripted(Ending.UPDATE_ROLLBACK_FAILED),
    scripted(Ending.FAILED),
    scripted(Ending.SYSTEM_UPDATING),
    refused("quota", "UpdateEndpoint*", "ResourceLimitExceeded", QUOTA, 1),
    refused("throttling storm", "*", "ThrottlingException", "Rate exceeded", 12),
    Course("permission to update lost", lambda w: w.box.deny("sagemaker:UpdateEndpoint*")),
    Course("permission lost midway", meddle=_denied),
    Course("deleted by somebody", meddle=_deleted),
    Course("redeployed by somebody", meddle=_redeployed, deploys=True),
    Course("asked back", meddle=_asked_back),
    Course("asked back while frozen", meddle=_frozen),
)


@dataclass
class Run:
    """One run and what came of it."""

    scenario: Scenario
    course: Course
    kill_at: int = 0
    violations: list[str] = field(default_factory=list)
    calls: int = 0
    ended: str = ""

    @property
    def name(self) -> str:
        return f"{self.scenario.name} / {self.course.name} / " + (
            f"killed after call {self.kill_at}" if self.kill_at else "whole"
        )


def run(scenario: Scenario, course: Course, kill_at: int = 0, *, twice: int = 1, after: bool = True) -> Run:
    """Carry the change out, killed once after call `kill_at` (0: never), each event delivered `twice` times."""
    made = Run(scenario, course, kill_at)
    with world(scenario.option, seed=scenario.seed, kind=scenario.kind, **scenario.endpoint) as w:
        with w.box.gate.unrecorded():
            before = snapshot(w)
        course.prepare(w)
        if kill_at:
            w.box.gate.kill(kill_at, after=after, matches=lambda call: True)
        _live(w, course, twice)
        made.calls = len(w.box.calls)
        w.box.gate.heal()
        with w.box.gate.unrecorded():
            made.violations = list(broken(w, before))
            made.ended = w.change.state.value
    return made


def _live(w: World, course: Course, twice: int) -> None:
    """The stream delivers the approval until it was taken, ticks and events follow, somebody meddles once."""
    end, started, meddled = w.now + timedelta(hours=HOURS), False, course.meddle is None
    while w.now < end:
        if not meddled and course.meddle is not None and started:
            meddled = course.meddle(w)
        try:
            if not started:
                w.start()
                started = True
            for _ in range(twice):
                w.apply.tick(w.now)
                if twice > 1:
                    w.apply.moved(NAME, w.now)
        except Killed:
            pass
        except RightsizerError:
            started = started or _stored(w)  # the stream delivers again
        with w.box.gate.unrecorded():
            known = _stored(w)
            change = w.change if known else None
        started = started or known
        if change is not None and change.closed and (meddled or w.now > end - timedelta(hours=40)):
            return
        if change is not None and change.closed:
            return
        due = change.next_due if change is not None else None
        wait = max((due or w.now) - w.now, timedelta(minutes=1)) if started else timedelta(minutes=5)
        w.box.clock.advance(min(wait, timedelta(minutes=4) if not meddled else timedelta(hours=1)))


def _stored(w: World) -> bool:
    from rightsizer.flows.apply import change_id_of

    with w.box.gate.unrecorded():
        return w.journal.load(change_id_of(w.proposal)) is not None


def plan(
    some: tuple[Scenario, ...] = scenarios.ALL, courses: tuple[Course, ...] = COURSES
) -> list[tuple[Scenario, Course]]:
    """Every pair that makes sense."""
    return [(s, c) for s in some for c in courses if s.deploys or not c.deploys]
