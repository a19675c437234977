"""One night of an endpoint with office hours, disturbed by a fault and by deaths, and the laws after it.

    found = night(Night("capacity gone", seed=7))

A seed chooses the requests before or after which the process dies, which ticks are lost, late or doubled, and when the
fault begins. Every night ends *running as before*, *stopped with everything stored*, or *handed over and told*.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rightsizer.changes.hours.steps import commands_by_hand
from rightsizer.domain.hours_record import EndpointBefore, HoursRecord, HoursState
from rightsizer.domain.office_hours import parse_hours
from rightsizer.errors import RightsizerError
from rightsizer.flows.orders import Orders
from sandbox.gate import Call
from sandbox.refusals import Killed
from tests.hours.test_answers import Deaf
from tests.hours.world import KIND, NAME, HoursWorld, fail_a_delete, hours_world, refuse_messages, stale, whole

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
DAILY = "daily 04:00-23:00 Europe/Berlin"
"""A night of five hours, since each of its ticks costs time and a longer one shows no more."""
SPRING, AUTUMN = datetime(2026, 3, 28, 21, 55, tzinfo=UTC), datetime(2026, 10, 24, 20, 55, tzinfo=UTC)
PLAIN = datetime(2026, 11, 2, 21, 55, tzinfo=UTC)
SMALL, OTHER, MODEL = "small", "other", f"{NAME}-model"


@dataclass
class Run:
    """A night that goes on."""

    world: HoursWorld
    dice: random.Random
    opens: datetime
    closes: datetime
    broken: list[str] = field(default_factory=list)
    deleted_by_its_owner: bool = False

    def meddle(self, do: Callable[[Any], object]) -> None:
        """Somebody does something with permissions of their own; AWS may refuse it."""
        with self.world.others() as sagemaker:
            try:
                do(sagemaker)
            except sagemaker.exceptions.ClientError:
                return


type Action = Callable[[Run], object]


def _nothing(run: Run) -> None:
    return None


@dataclass(frozen=True)
class Fault:
    """What happens in a night, when, and what may be different in the end."""

    begins: Action = _nothing
    ends: Action = _nothing
    at: tuple[float, float] = (0.0, 0.0)
    """Begins so many hours after the close, at the earliest and the latest; negative: before the opening."""
    healed: float = 4.0
    """Ends so many hours after the opening; what has no end is looked at three hours after the opening."""
    may_end: frozenset[HoursState] = frozenset({HoursState.RUNNING})
    same: bool = True
    """Whether an endpoint that runs in the end is as it was before."""
    owner_deletes: bool = False
    """Whether the owner deletes it for good, so that it may be gone."""
    tags: Mapping[str, str] = field(default_factory=dict)
    kills: bool = False
    """Whether the seed is the number of the write, from the beginning of the fault, at which the process dies."""
    told_by: float = 16.0
    """Minutes after the opening by which whoever waits was told."""


HANDED = frozenset({HoursState.RUNNING, HoursState.HANDED_OVER})


def _scarce(run: Run) -> None:
    run.world.box.world.fleet.scarce.add(KIND)


def _plenty(run: Run) -> None:
    run.world.box.world.fleet.scarce.clear()


def _no_quota(run: Run) -> None:
    run.world.box.gate.fail("sagemaker", "CreateEndpoint", "ResourceLimitExceeded", "the service limit is 0", times=1e9)


def _heal(run: Run) -> None:
    run.world.box.gate.heal()


def _deny(*actions: str) -> Action:
    return lambda run: run.world.box.deny(*actions)


def _delete(run: Run) -> None:
    run.deleted_by_its_owner = True
    run.meddle(lambda sagemaker: sagemaker.delete_endpoint(EndpointName=NAME))


def _create(config: str) -> Action:
    return lambda run: run.meddle(
        lambda sagemaker: sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName=config)
    )


def _create_and_delete(run: Run) -> None:
    """The name is still being deleted when it has to be created again."""
    _create(f"{NAME}-config")(run)
    run.world.box.clock.advance(9 * MINUTE)
    _delete(run)


def _edit(run: Run) -> None:
    run.meddle(lambda sagemaker: sagemaker.update_endpoint(EndpointName=NAME, EndpointConfigName=OTHER))


def _edit_alarm(run: Run) -> None:
    with run.world.others():
        run.world.box.client("cloudwatch").delete_alarms(AlarmNames=["silent"])


def _lose_config(run: Run) -> None:
    run.meddle(lambda sagemaker: sagemaker.delete_endpoint_config(EndpointConfigName=f"{NAME}-config"))


def _lose_model(run: Run) -> None:
    run.meddle(lambda sagemaker: sagemaker.delete_model(ModelName=MODEL))


def _other_model(run: Run) -> None:
    def do(sagemaker: Any) -> None:
        body = sagemaker.describe_model(ModelName=MODEL)
        container = {**body["PrimaryContainer"], "Environment": {"VERSION": "2"}}
        sagemaker.delete_model(ModelName=MODEL)
        sagemaker.create_model(ModelName=MODEL, PrimaryContainer=container, ExecutionRoleArn=body["ExecutionRoleArn"])

    run.meddle(do)


def _mute(run: Run) -> None:
    """No channel takes a message until half an hour after the opening, and there is no capacity."""
    refuse_messages(run.world, run.opens + 30 * MINUTE)
    _scarce(run)


def _lose_answer(run: Run) -> None:
    """AWS deletes the endpoint, and no answer to it arrives; botocore sends it again and finds nothing."""
    ports = run.world.flow.ports
    account: Any = ports.account
    deaf: Any = Deaf(account.sagemaker, f'Could not find endpoint "{NAME}".')
    run.world.flow = replace(run.world.flow, ports=replace(ports, account=replace(account, sagemaker=deaf)))


def _late_looks(minutes: int, *what: str) -> Action:
    """AWS goes on showing what was there before for so long after each write."""
    return lambda run: stale(run.world, minutes * MINUTE, *what)


def _wake(run: Run) -> None:
    with run.world.box.gate.unrecorded():
        try:
            run.world.wake(run.world.now + 3 * HOUR)
        except RightsizerError:
            return  # nothing was stopped yet, or a tick saved it at this moment


def _freeze(hard: bool) -> Action:
    return lambda run: _order(run, lambda orders: orders.freeze("U1", run.world.now, hard=hard))


def _thaw(run: Run) -> None:
    _order(run, lambda orders: orders.thaw("U1", run.world.now))


def _order(run: Run, give: Callable[[Orders], object]) -> None:
    with run.world.box.gate.unrecorded():
        give(Orders(run.world.flow.ports.journal))


def _throttle(run: Run) -> None:
    for service, operation in (("sagemaker", "*"), ("cloudwatch", "*"), ("application-autoscaling", "*")):
        run.world.box.gate.fail(service, operation, "ThrottlingException", times=20)


FAULTS: Mapping[str, Fault] = {
    "nothing": Fault(),
    "the clock goes forward": Fault(),
    "the clock goes back": Fault(),
    "capacity gone": Fault(_scarce, _plenty, (1, 4)),
    "capacity gone, and a fallback": Fault(
        _scarce, _plenty, (1, 4), tags={"rightsizer:fallback-config": SMALL}, same=False
    ),
    "quota gone": Fault(_no_quota, _heal, (1, 4)),
    "throttled in the evening": Fault(_throttle, _heal, (0, 0.2)),
    "throttled in the morning": Fault(_throttle, _heal, (-0.8, -0.1)),
    "role lost in the evening": Fault(_deny("sagemaker:*"), _heal, (0, 0.1)),
    "alarms may not be written": Fault(_deny("cloudwatch:*"), _heal, (0, 4), may_end=HANDED, same=False),
    "autoscaling may not be written": Fault(
        _deny("application-autoscaling:Put*"), _heal, (0, 4), may_end=HANDED, same=False
    ),
    "role lost at night": Fault(_deny("sagemaker:*"), _heal, (1, 4)),
    "create denied": Fault(_deny("sagemaker:CreateEndpoint"), _heal, (1, 4)),
    "its owner edits it in the evening": Fault(_edit, at=(-5, -4.9), may_end=HANDED, same=False),
    "its owner deletes it in the evening": Fault(_delete, at=(0, 0.1), may_end=HANDED, owner_deletes=True, same=False),
    "its owner deletes it in the morning": Fault(
        _delete, at=(-0.6, -0.2), may_end=HANDED, owner_deletes=True, same=False
    ),
    "its owner creates it again": Fault(_create(f"{NAME}-config"), at=(1, 4), may_end=HANDED, same=False),
    "its owner creates another one": Fault(_create(OTHER), at=(1, 4), may_end=HANDED, same=False),
    "its owner edits it in the morning": Fault(_edit, at=(-0.6, 0.5), may_end=HANDED, same=False),
    "its owner deletes an alarm": Fault(_edit_alarm, at=(1, 4), same=False),
    "the name is still deleting": Fault(_create_and_delete, at=(-1.05, -0.75), may_end=HANDED),
    "its configuration is gone": Fault(
        _lose_config, at=(1, 4), may_end=frozenset({HoursState.HANDED_OVER}), same=False
    ),
    "a model is gone": Fault(_lose_model, at=(1, 4), may_end=frozenset({HoursState.HANDED_OVER}), same=False),
    "a model is another": Fault(_other_model, at=(1, 4), may_end=frozenset({HoursState.HANDED_OVER}), same=False),
    "no channel takes a message": Fault(_mute, _plenty, (1, 4), told_by=41),
    "the answer to a delete is lost": Fault(_lose_answer, at=(-5.2, -5.1)),
    "the endpoint is shown late": Fault(_late_looks(4), at=(-5.2, -5.1)),
    "alarms and autoscaling are shown late": Fault(_late_looks(6, "alarms", "scaling"), at=(-5.2, -5.1)),
    "a delete is not finished": Fault(lambda run: fail_a_delete(run.world), at=(-5.2, -5.1)),
    "killed at a write of the evening": Fault(at=(-0.01, -0.01), kills=True),
    "killed at a write of the morning": Fault(at=(-0.76, -0.76), kills=True),
    "a wake": Fault(_wake, at=(0, 4)),
    "a freeze": Fault(_freeze(False), _thaw, at=(-5.2, -1), healed=1),
    "a hard freeze": Fault(_freeze(True), _thaw, at=(-5.2, -1), healed=1),
}


@dataclass(frozen=True)
class Night:
    """A fault, and the seed of everything else."""

    fault: str
    seed: int


def nights(count: int) -> list[Night]:
    """So many nights, each fault as often as the others."""
    names = list(FAULTS)
    return [Night(names[number % len(names)], number // len(names)) for number in range(count)]


def night(case: Night) -> list[str]:
    """The laws that broke in this night, a sentence each."""
    fault, dice = FAULTS[case.fault], random.Random(f"{case.fault}{case.seed}")
    evening = {"the clock goes forward": SPRING, "the clock goes back": AUTUMN}.get(case.fault, PLAIN)
    with hours_world(evening=evening, more_tags={"rightsizer:hours": DAILY, **fault.tags}) as w:
        opening = parse_hours(DAILY).next_opening(evening)
        assert opening is not None
        run = Run(w, dice, opening.start, evening + 5 * MINUTE)
        run.meddle(lambda sagemaker: _further_configs(sagemaker))
        before = whole(w.box)
        w.box.gate.after = lambda call: _watch(run, call)
        early, late = fault.at
        begins = (run.closes if early >= 0 else run.opens) + dice.uniform(early, late) * HOUR
        _live(run, begins, lambda: fault.begins(run))
        if fault.kills:
            w.box.gate.kill(case.seed // 2 + 1, after=case.seed % 2 == 1)
        else:
            _kill(run)
        _live(run, run.opens + fault.told_by * MINUTE, lambda: _who_waits_was_told(run, fault), kills=not fault.kills)
        healed = 0.0 if fault.ends is _nothing else fault.healed
        _live(run, run.opens + healed * HOUR, lambda: fault.ends(run))
        _live(run, run.opens + (healed + 3) * HOUR, lambda: None)
        with w.box.gate.unrecorded():
            w.box.gate.after = None
            return [*run.broken, *_laws(run, fault, before)]


def _further_configs(sagemaker: Any) -> None:
    body = sagemaker.describe_endpoint_config(EndpointConfigName=f"{NAME}-config")
    row = body["ProductionVariants"][0]
    sagemaker.create_endpoint_config(
        EndpointConfigName=SMALL, ProductionVariants=[{**row, "InstanceType": "ml.g4dn.xlarge"}]
    )
    sagemaker.create_endpoint_config(EndpointConfigName=OTHER, ProductionVariants=[{**row, "InitialInstanceCount": 1}])


def _kill(run: Run) -> None:
    """The process dies before or after one of the next writes."""
    run.world.box.gate.kill(run.dice.randint(1, 40), after=run.dice.random() < 0.5)


def _live(run: Run, until: datetime, then: Callable[[], object], *, kills: bool = True) -> None:
    """Ticks with gaps, twice, and events in between, until then; the process dies now and again."""
    w = run.world
    if kills and run.dice.random() < 0.7 and until > w.now:
        _kill(run)
    while w.now < until:
        lost = 2 if run.dice.random() < 0.08 else 1
        w.box.clock.advance(min(lost * 5 * MINUTE, until - w.now))
        for _ in range(2 if run.dice.random() < 0.15 else 1):
            _invoke(run, lambda: w.flow.tick(w.now))
        if run.dice.random() < 0.2:
            _invoke(run, lambda: w.flow.advance_endpoint(NAME, w.now))
        _never_gone(run)
    then()


def _invoke(run: Run, do: Callable[[], object]) -> None:
    try:
        do()
    except (Killed, RightsizerError):
        run.world.box.gate._kill = None


def _record(run: Run) -> HoursRecord | None:
    with run.world.box.gate.unrecorded():
        return run.world.flow.ports.book.load(NAME)


def _watch(run: Run, call: Call) -> None:
    """Nothing is deleted before everything is stored and the lock is held."""
    if call.operation != "DeleteEndpoint" or call.error is not None:
        return
    record = _record(run)
    if record is None or record.before is None or not record.holds_lock:
        run.broken.append(f"it was deleted at {run.world.now:%H:%M}, and nothing of it was stored")
    elif not commands_by_hand(record, run.world.now):
        run.broken.append("it was deleted, and nobody could bring it back by hand")


def _never_gone(run: Run) -> None:
    """At no moment is it gone without a record that brings it back, or that tells a person how."""
    if run.world.exists() or run.deleted_by_its_owner:
        return
    record = _record(run)
    if record is None or record.before is None or record.state is HoursState.RUNNING:
        run.broken.append(f"at {run.world.now:%H:%M} it is gone, and the record says {record and record.state}")
    elif not any(
        "create-endpoint --region eu-west-1 --cli-input-json" in line
        for line in commands_by_hand(record, run.world.now)
    ):
        run.broken.append(f"at {run.world.now:%H:%M} it is gone, and nobody could bring it back by hand")


def _serves(run: Run) -> bool:
    """Also while it is updated: the fleet before serves on."""
    return run.world.exists() and run.world.box.status(NAME) in ("InService", "Updating", "SystemUpdating")


def _who_waits_was_told(run: Run, fault: Fault) -> None:
    if _serves(run) or fault.owner_deletes:
        return
    said = [text for _, text in run.world.told if "aws sagemaker" in text or "aws cloudwatch" in text]
    if not said:
        run.broken.append(f"it does not serve at {run.world.now:%H:%M}, and nobody was told how to help")


def _laws(run: Run, fault: Fault, before: Mapping[str, Any]) -> Iterator[str]:
    record = _record(run)
    if record is None:
        if not _serves(run):
            yield "it is gone, and there is no record of it"
        return
    if record.state not in fault.may_end:
        yield f"it ended as {record.state}: {record.reason}"
    if record.state is HoursState.RUNNING and not _serves(run) and not fault.owner_deletes:
        yield "the record says that it runs, and it does not"
    if record.state is HoursState.RUNNING and fault.same and _serves(run):
        now = whole(run.world.box)
        yield from (f"{key} was {before[key]} and is {now[key]}" for key in before if before[key] != now[key])
    if record.state is HoursState.HANDED_OVER:
        yield from _handed_over(run, record)
    yield from _left_over(run, record)


def _left_over(run: Run, record: HoursRecord) -> Iterator[str]:
    """Locks, alarms and stopped times that a night must not leave behind."""
    if record.holds_lock != (run.world.flow.ports.journal.holder_of(NAME) == record.id):
        yield f"it is {record.state}, and the lock says otherwise"
    if record.state is HoursState.RUNNING and _serves(run):
        off = [name for name, enabled, _ in whole(run.world.box)["alarms"] if not enabled and name != "off"]
        if off:
            yield f"the actions of {off} are still off"
    if any(time.end is None for time in record.stopped_times) and _serves(run):
        yield "it serves, and its stopped time has no end"


def _handed_over(run: Run, record: HoursRecord) -> Iterator[str]:
    if not any("handed over" in subject for subject, _ in run.world.told):
        yield "it was handed over, and nobody was told"
    if not isinstance(record.before, EndpointBefore):
        yield "it was handed over, and nothing of it is stored"
    if not run.world.exists() and not any("create-endpoint " in line for line in record.remaining):
        yield "it is gone, and no command brings it back"
