"""The laws of changing, as checks of one account after a change that was killed, disturbed or left alone."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from rightsizer.model.change import Change, ChangeState
from rightsizer.model.observation import ScalableTarget
from rightsizer.model.proposal import ProposalState
from rightsizer.model.sight import EndpointSight, Gone
from rightsizer.model.step import Step, StepKind
from tests.changing.world import NAME, World

SERVICES = frozenset({"sagemaker", "application-autoscaling", "cloudwatch"})
SHOWN = {
    ChangeState.PROVEN: ProposalState.PROVEN,
    ChangeState.APPLIED: ProposalState.APPLYING,
    ChangeState.ROLLED_BACK: ProposalState.ROLLED_BACK,
    ChangeState.HANDED_OVER: ProposalState.HANDED_OVER,
    ChangeState.REFUSED: ProposalState.WITHDRAWN,
}


def broken(w: World, before: Mapping[str, Any]) -> Iterator[str]:
    """Every law that does not hold, in a sentence."""
    change = w.change
    yield from _written_before_done(w)
    if not change.closed:
        yield f"the change is still open: {change.state.value}, {change.outcome}"
        return
    yield from _endpoint(w, change, before)
    yield from _alarms(w, change)
    yield from _books(w, change)
    if w.shown().state is not SHOWN[change.state]:
        yield f"the change is {change.state.value}, the proposal {w.shown().state.value}"
    if change.state is ChangeState.HANDED_OVER and not w.told:
        yield "it was handed over, and nobody was told"


def snapshot(w: World) -> dict[str, Any]:
    """What counts as old."""
    live = w.live()
    counts = {v["VariantName"]: v["DesiredInstanceCount"] for v in live["ProductionVariants"]}
    variants = [v["VariantName"] for v in live["ProductionVariants"]]
    return {
        "config": live["EndpointConfigName"],
        "counts": counts,
        "scaling": plain(w.apply.changer.scaling(NAME, variants)),
        "alarm": _actions(w, w.apply.changer.scaling(NAME, variants)),
    }


def plain(targets: tuple[ScalableTarget, ...]) -> list[Any]:
    """Autoscaling without what AWS makes up anew."""
    made_up = {"PolicyARN", "Alarms", "CreationTime", "ScheduledActionARN"}
    return [
        (
            t.resource_id,
            t.dimension,
            t.minimum,
            t.maximum,
            {k: v for k, v in t.suspended.items() if v},
            [{k: v for k, v in p.items() if k not in made_up} for p in t.policies],
            [{k: v for k, v in s.items() if k not in made_up} for s in t.scheduled],
        )
        for t in targets
    ]


def _actions(w: World, targets: tuple[ScalableTarget, ...]) -> list[str]:
    """The customer's alarm, its policy ARNs by name."""
    names = {p["PolicyARN"]: p["PolicyName"] for t in targets for p in t.policies}
    seen = w.apply.changer.alarms(("burst-now",))
    return [names.get(a, a) for alarm in seen.values() for a in alarm.body.get("AlarmActions", [])]


def _written_before_done(w: World) -> Iterator[str]:
    """Law 4: the request before each write to what serves is a write of the journal."""
    calls = [c for c in w.box.calls if c.error is None or c.service in SERVICES]
    for earlier, call in pairwise(calls):
        repeated = (earlier.service, earlier.operation) == (call.service, call.operation)
        if call.writes and call.service in SERVICES and not repeated and earlier.service != "dynamodb":
            yield f"{call.action} was not announced in the journal (before it came {earlier.action})"


def _endpoint(w: World, change: Change, before: Mapping[str, Any]) -> Iterator[str]:
    endpoint = w.apply.changer.endpoint(NAME)
    if isinstance(endpoint, Gone):
        if change.state is not ChangeState.HANDED_OVER and change.state is not ChangeState.REFUSED:
            yield f"the endpoint is gone, and the change is {change.state.value}"
        return
    live = w.apply.changer.scaling(NAME, [v.name for v in endpoint.variants])
    match change.state:
        case ChangeState.PROVEN | ChangeState.APPLIED:
            if change.plan.new_config and endpoint.config_name != change.plan.new_config:
                yield f"it is called {change.state.value} and runs {endpoint.config_name}"
            yield from _missing(w, change, change.plan.settle)
        case ChangeState.ROLLED_BACK | ChangeState.REFUSED:
            yield from _old(w, change, endpoint, live, before)
        case ChangeState.HANDED_OVER:
            if before["scaling"] and not live and not _left(change, StepKind.REGISTER_TARGET):
                yield "autoscaling is gone, and nobody is told how to put it back"
        case _:
            yield f"{change.state.value} is no end"


def _old(
    w: World, change: Change, endpoint: EndpointSight, live: tuple[ScalableTarget, ...], before: Mapping[str, Any]
) -> Iterator[str]:
    counts = {v.name: v.desired_count for v in endpoint.variants}
    if endpoint.config_name not in (before["config"], change.plan.back_config):
        yield f"it is called {change.state.value} and runs {endpoint.config_name}"
    if counts != before["counts"]:
        yield f"the counts are {counts}, and were {before['counts']}"
    if plain(live) != before["scaling"]:
        yield f"autoscaling is {plain(live)}, and was {before['scaling']}"
    if _actions(w, live) != before["alarm"]:
        yield f"the customer's alarm starts {_actions(w, live)}, and started {before['alarm']}"


def _missing(w: World, change: Change, goals: tuple[Step, ...]) -> Iterator[str]:
    from rightsizer.flows.apply_look import Looking

    sight = Looking(w.apply.changer, w.apply.metrics, w.apply.limits).look(change, w.now)
    for step in goals:
        if not sight.shows(step) and step.command not in change.remaining:
            yield f"{step.key} is not as it was planned"


def _alarms(w: World, change: Change) -> Iterator[str]:
    found = w.box.client("cloudwatch").describe_alarms(AlarmNamePrefix="rightsizer-")["MetricAlarms"]
    if found and not _left(change, StepKind.DELETE_ALARMS):
        yield f"{len(found)} temporary alarms are left, and nobody is told"


def _left(change: Change, kind: StepKind) -> bool:
    verb = kind.value.split(":")[1].replace("Register", "register-").replace("Delete", "delete-").lower()[:12]
    return any(verb in line for line in change.remaining)


def _books(w: World, change: Change) -> Iterator[str]:
    entries = [
        e for e in w.ledger.entries(change.created_at, w.now.replace(year=w.now.year + 1)) if e.change_id == change.id
    ]
    proven = [e for e in entries if e.proven]
    if bool(proven) != (change.state is ChangeState.PROVEN):
        yield f"the change is {change.state.value}, and the ledger has {len(proven)} proven entries"
    if change.turned_at is None and entries:
        yield f"nothing was ever deployed, and the ledger has {[e.kind for e in entries]}"
    if len({e.id for e in entries}) != len(entries):
        yield "an entry is booked twice"
