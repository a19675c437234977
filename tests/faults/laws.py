"""The laws of changing, as checks of one account after a change that was killed, disturbed or left alone."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from rightsizer.changes.reconcile.drift import LEFT_ALONE
from rightsizer.domain.change import Change, ChangeState, JournalEvent
from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.live_state import EndpointSight, Gone
from rightsizer.domain.plan import PlanKind, Step, StepKind
from rightsizer.domain.proposal import ProposalState
from rightsizer.flows.read_state import StateReader
from sandbox.gate import Call
from sandbox.schedule import next_fire
from tests.changing.world import NAME, World
from tests.faults.components import copies, instances_follow, lasting, of_components, specifications
from tests.faults.images import images, of_images

SERVICES = frozenset({"sagemaker", "application-autoscaling", "cloudwatch"})
SHOWN = {
    ChangeState.PROVEN: ProposalState.PROVEN,
    ChangeState.APPLIED: ProposalState.APPLYING,
    ChangeState.ROLLED_BACK: ProposalState.ROLLED_BACK,
    ChangeState.HANDED_OVER: ProposalState.HANDED_OVER,
    ChangeState.REFUSED: ProposalState.WITHDRAWN,
}


SECONDS = 2 / 3600
"""Hours by which the books may differ: a second invocation comes a second after the first."""
STANDS = frozenset({ChangeState.PROVEN, ChangeState.APPLIED, ChangeState.HANDED_OVER})
"""Ends in which what the change put for good may be there: the alarm that wakes a sleeping endpoint."""


@dataclass(frozen=True)
class After:
    """What is left when it is over."""

    w: World
    before: Mapping[str, Any]
    change: Change
    endpoint: EndpointSight | Gone
    live: tuple[ScalableTarget, ...]


def broken(w: World, before: Mapping[str, Any]) -> Iterator[str]:
    """Every law that does not hold, in a sentence."""
    endpoint = w.apply.changer.endpoint(NAME)
    variants = [] if isinstance(endpoint, Gone) else [v.name for v in endpoint.variants]
    after = After(w, before, w.change, endpoint, w.apply.changer.scaling(NAME, variants))
    for law in LAWS:
        yield from law(after)


def snapshot(w: World) -> dict[str, Any]:
    """What counts as old."""
    live = w.live()
    counts = {v["VariantName"]: v["DesiredInstanceCount"] for v in live["ProductionVariants"]}
    scaling = w.apply.changer.scaling(NAME, list(counts))
    return {
        "config": live["EndpointConfigName"],
        "counts": counts,
        "scaling": plain(scaling),
        "copies": copies(w),
        "specifications": specifications(w),
        "alarm": _actions(w, scaling),
        "images": images(w),
    }


def plain(targets: tuple[ScalableTarget, ...]) -> list[Any]:
    """Autoscaling without what AWS makes up anew, and without tags that only AWS may set."""
    made_up = {"PolicyARN", "Alarms", "CreationTime", "ScheduledActionARN"}
    return [
        (
            t.resource_id,
            t.dimension,
            t.minimum,
            t.maximum,
            {k: v for k, v in t.suspended.items() if v},
            {k: v for k, v in t.tags.items() if not k.startswith("aws:")},
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


def it_ends(after: After) -> Iterator[str]:
    """The journal is closed, or a person has it."""
    if not after.change.is_closed:
        yield f"the change is still open: {after.change.state.value}, {after.change.outcome}"


def the_intent_is_written_first(after: After) -> Iterator[str]:
    """Law 4: the request before each write to what serves is a write of the journal."""
    calls = [c for c in after.w.box.calls if c.error is None or c.service in SERVICES]
    for earlier, call in pairwise(calls):
        repeated = (earlier.service, earlier.operation) == (call.service, call.operation)
        if call.writes and call.service in SERVICES and not repeated and earlier.service != "dynamodb":
            yield f"{call.action} was not announced in the journal (before it came {earlier.action})"


def new_is_what_was_asked(after: After) -> Iterator[str]:
    """Proven and applied: the new configuration, and autoscaling as it was declared for it."""
    change, endpoint = after.change, after.endpoint
    if change.state not in (ChangeState.PROVEN, ChangeState.APPLIED) or after.w.released is not None:
        return
    if isinstance(endpoint, Gone):
        yield f"the endpoint is gone, and the change is {change.state.value}"
        return
    if change.plan.new_config and endpoint.config_name != change.plan.new_config:
        yield f"it is called {change.state.value} and runs {endpoint.config_name}"
    if change.plan.turn is not None:
        yield from _counted(after, {v.name: v.count for v in change.plan.after}, on_new=True)
    tags = {resource: tags for resource, *_, tags, _, _ in after.before["scaling"]}
    for resource, *_, kept, _, _ in plain(after.live):
        if kept != tags.get(resource, {}):
            yield f"the tags of {resource} are {kept}, and were {tags.get(resource, {})}"
    yield from _missing(after, change.plan.settle)


def old_is_what_it_was(after: After) -> Iterator[str]:
    """Rolled back and refused: configuration, counts, autoscaling and the customer's alarm are those of before."""
    w, change, endpoint, before = after.w, after.change, after.endpoint, after.before
    if change.state not in (ChangeState.ROLLED_BACK, ChangeState.REFUSED) or isinstance(endpoint, Gone):
        return
    if w.released is not None:
        return
    if endpoint.config_name not in (before["config"], change.plan.back_config):
        yield f"it is called {change.state.value} and runs {endpoint.config_name}"
    yield from of_components(w, before)
    if copies(w) != {name: n for name, n in before["copies"].items() if name in copies(w)}:
        yield f"the copies are {copies(w)}, and were {before['copies']}"
    yield from _counted(after, before["counts"], on_new=False)
    if _as_scheduled(after, plain(after.live)) != _as_scheduled(after, before["scaling"]):
        yield f"autoscaling is {plain(after.live)}, and was {before['scaling']}"
    if _actions(w, after.live) != before["alarm"]:
        yield f"the customer's alarm starts {_actions(w, after.live)}, and started {before['alarm']}"


def _counted(after: After, wanted: Mapping[str, int], *, on_new: bool) -> Iterator[str]:
    """Each variant has its count, moved with what others asked for and into the bounds of its autoscaling.

    Others may have scaled the fleet before the turn or in the probation. What they asked for on this side stays. What
    they asked for on the other side is carried over: never fewer instances, unless those of this side are larger.
    """
    assert isinstance(after.endpoint, EndpointSight)
    bounds = {t.resource_id: (t.minimum, t.maximum) for t in after.live}
    for variant in after.endpoint.variants:
        low = high = wanted.get(variant.name, variant.desired_count)
        if after.w.grown is not None and variant.name == after.change.variant:
            grown_on_new, count = after.w.grown
            low, high = (count, count) if grown_on_new is on_new else _carried(after, count, low, on_new)
        if instances_follow(after.change):
            low, high = 0 if on_new else 1, max(high, variant.desired_count)
        resource = f"endpoint/{NAME}/variant/{variant.name}"
        for least, most in (*_scheduled(after, resource), bounds.get(resource, (0, high))):
            low, high = min(max(low, least), most), min(max(high, least), most)
        if not low <= variant.desired_count <= high:
            expected = f"{low}" if low == high else f"{low} to {high}"
            yield f"{variant.name} has {variant.desired_count} instances, and should have {expected}"


def _carried(after: After, count: int, planned: int, on_new: bool) -> tuple[int, int]:
    """The fewest and most instances of this side that serve what `count` of the other side served."""
    if after.change.plan.is_keeping_counts:
        return count, count
    decided = after.w.proposal.recommendation
    ratio = after.change.option.target.instance_count / max(1, decided.instance_count)
    each = ratio if on_new else 1 / ratio
    return max(planned, math.ceil(count * min(1.0, each))), max(planned, math.ceil(count * max(1.0, each)))


def the_bounds_are_those_of_the_schedule(after: After) -> Iterator[str]:
    """Where an action of the owner's schedule was due since the approval, the last one that was due set the bounds."""
    for target in after.live if after.w.released is None else ():  # a release has bounds of its own
        action = _last_due(after, target.resource_id)
        if action is None:
            continue
        mine = next((a for a in target.scheduled if a["ScheduledActionName"] == action), None)
        wanted = dict(mine["ScalableTargetAction"]) if mine is not None else {}
        found = {"MinCapacity": target.minimum, "MaxCapacity": target.maximum}
        if mine is not None and found != wanted:
            yield f"the bounds of {target.resource_id} are {found}, and its action {action} set {wanted}"


def _scheduled(after: After, resource: str) -> list[tuple[int, int]]:
    """The bounds that the schedule of this side set one after the other; each moves the count into them."""
    live = [a for t in after.live if t.resource_id == resource for a in t.scheduled]
    bounds = {a["ScheduledActionName"]: a["ScalableTargetAction"] for a in live}
    names = [name for _, name in _due(after, resource)]
    return [(bounds[name]["MinCapacity"], bounds[name]["MaxCapacity"]) for name in names if name in bounds]


def _last_due(after: After, resource: str) -> str | None:
    """Name of the owner's action that was due last since the approval."""
    return next((name for _, name in reversed(_due(after, resource))), None)


def _due(after: After, resource: str) -> list[tuple[datetime, str]]:
    """When which of the owner's actions was due since the approval; suspended ones are not due."""
    fired: list[tuple[datetime, str]] = []
    for known, _, _, _, suspended, _, _, actions in after.before["scaling"]:
        if known != resource or suspended.get("ScheduledScalingSuspended"):
            continue
        for action in actions:
            since, zone = after.change.created_at, ZoneInfo(action.get("Timezone", "UTC"))
            due = next_fire(action["Schedule"], since, since.astimezone(zone))
            while due is not None and due <= after.w.now:
                fired.append((due, action["ScheduledActionName"]))
                due = next_fire(action["Schedule"], since, due.astimezone(zone))
    return sorted(fired)


def _as_scheduled(after: After, rows: list[Any]) -> list[Any]:
    """Autoscaling without the bounds that an action of the owner's schedule has set meanwhile."""
    return [(row[0], row[1], *((None, None) if _last_due(after, row[0]) else row[2:4]), *row[4:]) for row in rows]


def a_freeze_stops_what_goes_forward(after: After) -> Iterator[str]:
    """A minute after a freeze no forward write is made, and after a hard one none; what restores has gone on."""
    w, frozen = after.w, after.w.frozen
    if frozen is None or frozen.holds is None:
        return
    for call in w.box.calls[frozen.holds : frozen.thawed]:
        if call.writes and call.service in SERVICES and (frozen.hard or _forward(after, call)):
            yield f"{call.action} was written while everything was frozen{' hard' if frozen.hard else ''}"
    if frozen.bare and not frozen.hard and after.before["scaling"]:
        yield "for two hours of a freeze the endpoint had no autoscaling"


def _forward(after: After, call: Call) -> bool:
    """Whether a write goes towards what was asked: it is none of the way back, of giving back and of tidying."""
    plan, name = after.change.plan, call.params.get("EndpointConfigName", "")
    match call.operation:
        case "CreateEndpointConfig" | "UpdateEndpoint":
            return bool(name != plan.back_config)
        case "AddTags":
            return True
        case "PutMetricAlarm":
            return call.params["AlarmName"] in plan.alarms
        case "DeregisterScalableTarget" if plan.clear:  # after the turn it is taken away to go back
            return not any(c.operation == "UpdateEndpoint" for c in after.w.box.calls[: call.number - 1])
        case _ if plan.turn is not None:
            return (call.operation, call.params) == (plan.turn.operation, plan.turn.params)
        case _:
            forward = [s for s in plan.settle if s not in plan.restore]
            return any((s.operation, s.params) == (call.operation, call.params) for s in forward)


def handed_over_lists_the_rest(after: After) -> Iterator[str]:
    """Handed over: a person is told, and what is not restored is in the remaining command lines."""
    change, endpoint = after.change, after.endpoint
    if change.state is not ChangeState.HANDED_OVER:
        return
    if not after.w.told:
        yield "it was handed over, and nobody was told"
    if isinstance(endpoint, Gone) or after.w.released is not None:
        return
    if endpoint.config_name == change.plan.new_config or not change.plan.new_config:
        same = plain(after.live) == after.before["scaling"] and copies(after.w) == after.before["copies"]
        if same or not list(_missing(after, change.plan.settle)):
            return
        yield from _missing(after, change.plan.settle)
    elif LEFT_ALONE in change.outcome:
        yield from _missing(after, change.plan.settle)  # nobody moved it in these courses, so it is what we settled
    elif plain(after.live) != after.before["scaling"]:
        yield from _missing(after, change.plan.restore)


def _missing(after: After, goals: tuple[Step, ...]) -> Iterator[str]:
    w, change = after.w, after.change
    live = StateReader(w.apply.changer, w.apply.metrics, w.apply.limits).read_state(change, w.now)
    for step in goals:
        if step.kind is StepKind.REGISTER_TARGET and _last_due(after, str(step.params.get("ResourceId"))):
            continue  # its bounds are those of the schedule, which has a law of its own
        if not live.has_effect_of(step) and not change.leaves_to_person(live.resolve_step(step)):
            yield f"{step.key} is not as it was planned, and nobody is told"


def nothing_of_ours_is_left(after: After) -> Iterator[str]:
    """No temporary alarm, unless its removal is in the remaining command lines."""
    found = after.w.box.client("cloudwatch").describe_alarms(AlarmNamePrefix="rightsizer-")["MetricAlarms"]
    told = any("delete-alarms" in line for line in after.change.remaining)
    kept = {s.subject for s in after.change.plan.settle} if after.change.state in STANDS else set()
    found = [alarm for alarm in found if alarm["AlarmName"] not in kept]
    if found and not told and after.change.is_closed:
        yield f"{len(found)} temporary alarms are left, and nobody is told"


def no_policy_is_foreign(after: After) -> Iterator[str]:
    """No target, policy or scheduled action that neither the snapshot nor the plan knows."""
    change = after.change
    known = {s.key for s in (*change.plan.settle, *change.plan.restore)}
    old = {(resource, row["PolicyName"]) for resource, *_, policies, _ in after.before["scaling"] for row in policies}
    for target in after.live:
        for policy in target.policies:
            name = policy["PolicyName"]
            if (target.resource_id, name) not in old and f"PutScalingPolicy {target.resource_id} {name}" not in known:
                yield f"policy {name} on {target.resource_id} is of nobody"


def the_ledger_tells_the_truth(after: After) -> Iterator[str]:
    """Proven savings only of proven changes, nothing where nothing was deployed, nothing twice."""
    w, change = after.w, after.change
    entries = [e for e in w.ledger.entries(change.created_at, w.now + timedelta(days=1)) if e.change_id == change.id]
    proven = [e for e in entries if e.proven]
    ever = any(e.step == JournalEvent.FINISH and e.detail.startswith("proven") for e in change.journal)
    if bool(proven) != (change.state is ChangeState.PROVEN or ever):
        yield f"the change is {change.state.value}, and the ledger has {len(proven)} proven entries"
    if change.turned_at is None and entries:
        yield f"nothing was ever deployed, and the ledger has {[e.kind for e in entries]}"
    kinds = {e.kind for e in entries}
    if change.state in (ChangeState.PROVEN, ChangeState.APPLIED) and not {"estimated", "switch-cost"} <= kinds:
        yield f"the change is {change.state.value}, and the ledger has only {sorted(kinds)}"
    if change.turned_at is None or change.plan.kind is not PlanKind.CHANGE or not change.is_closed:
        return
    booked = sum(e.hours for e in entries if e.kind == "realised")
    real = ((change.returned_at or w.now) - change.turned_at).total_seconds() / 3600
    if booked > real + SECONDS or (change.returned_at is not None and booked < real - SECONDS):
        yield f"{booked:.3f} h are booked, and the cheaper fleet ran for {real:.3f} h"


def the_proposal_follows(after: After) -> Iterator[str]:
    """What Slack shows is the state of the change."""
    shown = after.w.shown().state
    if after.change.is_closed and shown is not SHOWN[after.change.state]:
        yield f"the change is {after.change.state.value}, the proposal {shown.value}"


def the_locks_are_given_back(after: After) -> Iterator[str]:
    """A closed change holds no endpoint and no model; the lock of another change stays."""
    if not after.change.is_closed:
        return
    if after.w.journal.holder_of(NAME):
        yield "the change is closed, and its endpoint is still locked"
    table = after.w.box.client("dynamodb")
    for model in after.change.models:
        key = {"pk": {"S": f"LOCK#MODEL#{model}"}, "sk": {"S": "LOCK"}}
        holder = table.get_item(TableName="t", Key=key).get("Item", {}).get("change", {}).get("S", "")
        wanted = "c-other" if model == after.w.taken else ""
        if holder != wanted:
            yield f"the change is closed, and model {model} is held by {holder or 'nobody'}"


def nothing_is_deployed_twice(after: After) -> Iterator[str]:
    """AWS accepts each configuration once in a try: what was rolled back, or runs already, is not asked for again."""
    accepted = Counter(
        str(call.params["EndpointConfigName"])
        for call in after.w.box.calls.of("sagemaker", "UpdateEndpoint")
        if call.error is None
    )
    for config, times in accepted.items():
        if times > 1 + after.change.tries:
            yield f"{config} was deployed {times} times in {1 + after.change.tries} tries"


def a_release_after_the_end_is_left_alone(after: After) -> Iterator[str]:
    """What somebody deployed and registered after the change was over is theirs."""
    released = after.w.released
    if released is not None and lasting(after.change, snapshot(after.w)) != lasting(after.change, released):
        yield f"a release left {released}, and now it is {snapshot(after.w)}"


def no_other_code_is_deployed(after: After) -> Iterator[str]:
    if not isinstance(after.endpoint, Gone):
        yield from of_images(after.w, after.before, after.change)


LAWS: tuple[Callable[[After], Iterator[str]], ...] = (
    it_ends,
    the_intent_is_written_first,
    new_is_what_was_asked,
    old_is_what_it_was,
    the_bounds_are_those_of_the_schedule,
    a_freeze_stops_what_goes_forward,
    handed_over_lists_the_rest,
    nothing_of_ours_is_left,
    no_policy_is_foreign,
    the_ledger_tells_the_truth,
    the_proposal_follows,
    the_locks_are_given_back,
    a_release_after_the_end_is_left_alone,
    nothing_is_deployed_twice,
    no_other_code_is_deployed,
)
