"""Why an endpoint is not stopped now, each as a code and a sentence.

In doubt it runs: a night that is paid for costs less than a morning without the endpoint.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from rightsizer.autoscaling import policies, scheduled_actions
from rightsizer.changes.clone import key_refusals
from rightsizer.changes.hours.stop_input import StopInput, reservation_of
from rightsizer.changes.preflight import MISSING, image_difference, replaced_config_refusal
from rightsizer.changes.preflight.deployment import is_movable
from rightsizer.domain.endpoint import MODE_TAG, Mode, has_digest
from rightsizer.domain.hardware import is_scarce
from rightsizer.domain.hours_record import queries, watched_endpoints
from rightsizer.domain.office_hours import FALLBACK_TAG, HOURS_TAG
from rightsizer.domain.ownership import owner_of
from rightsizer.domain.plan import ACTIONS
from rightsizer.domain.proposal import decider_name
from rightsizer.domain.reason import Code, Reason, time_text

PASSING = frozenset(
    {
        Code.FROZEN,
        Code.INCIDENT,
        Code.NOT_IN_SERVICE,
        Code.CHANGED_SINCE,
        Code.TOO_BUSY,
        Code.NO_DATAPOINTS,
        Code.READ_FAILED,
        Code.THROTTLED,
    }
)
"""Refusals that end by themselves: nobody is told of them, and it is looked at again soon."""

CHILD = re.compile(r"(?:ALARM|OK|INSUFFICIENT_DATA)\(\s*(?:\"([^\"]+)\"|([^)]+?))\s*\)")
"""A function of an alarm rule, by name or ARN, with or without quotes (CloudWatch API reference, PutCompositeAlarm)."""


def stop_refusals(inputs: StopInput) -> tuple[Reason, ...]:
    """Every reason why the endpoint is not stopped now; empty where it may be. Total."""
    return tuple(reason for check in _CHECKS for reason in check(inputs))


def _switch(inputs: StopInput) -> Iterator[Reason]:
    if inputs.switch.frozen:
        yield Reason(Code.FROZEN, f"changes are frozen by {decider_name(inputs.switch.by)}, so no endpoint is stopped")
    if inputs.limits.dry_run:
        text = "the stack was deployed with MayChange=nothing or read-only, so it stops no endpoint; MayChange=tagged "
        yield Reason(Code.PERMISSION_MISSING, f"{text}allows it")
    if inputs.limits.misread:
        text = (
            f"a setting cannot be understood, and nothing is stopped until it is put right: {inputs.limits.misread[0]}"
        )
        yield Reason(Code.BAD_SETTING, text)
    for alarm in inputs.incident_alarms:
        if alarm.state in ("ALARM", MISSING):
            said = "is firing" if alarm.state == "ALARM" else "does not exist, so nobody knows of an incident"
            yield Reason(Code.INCIDENT, f"the incident alarm {alarm.name} {said}")


def _owner(inputs: StopInput) -> Iterator[Reason]:
    if inputs.tags.get(MODE_TAG) == Mode.OFF:
        yield Reason(Code.MODE_OFF, f"its tag {MODE_TAG} says off, so it is left alone")
    if owner := owner_of(inputs.tags):
        text = (
            f"{owner} owns the endpoint and would find it missing; remove the tag {HOURS_TAG}, or let its owner stop it"
        )
        yield Reason(Code.OWNED_BY_STACK, text)
    reserved = sorted(key for key in inputs.tags if key.lower().startswith("aws:"))
    if reserved:
        text = f"it has tags that only AWS may set ({', '.join(reserved)}), so they could not be put back"
        yield Reason(Code.OWNED_BY_STACK, text)


def _under_way(inputs: StopInput) -> Iterator[Reason]:
    if inputs.endpoint.status != "InService" or inputs.endpoint.pending_config:
        text = f"the endpoint is {inputs.endpoint.status}"
        more = f" and deploys {inputs.endpoint.pending_config}" if inputs.endpoint.pending_config else ""
        yield Reason(Code.NOT_IN_SERVICE, f"{text}{more}; only one that serves, with nothing under way, is stopped")
    if any(v.current_count != v.desired_count for v in inputs.endpoint.variants):
        yield Reason(Code.NOT_IN_SERVICE, "a variant is being scaled; it is looked at again when that is over")
    if inputs.holder:
        text = f"change {inputs.holder} holds the endpoint: a change, its probation or a shadow test is not over"
        yield Reason(Code.CHANGED_SINCE, text)
    if inputs.ordered_back:
        text = f"the rollback of proposal {inputs.ordered_back} is ordered and goes first"
        yield Reason(Code.CHANGED_SINCE, text)


def _kind(inputs: StopInput) -> Iterator[Reason]:
    body = inputs.config.body if inputs.config else {}
    if inputs.endpoint.asynchronous or body.get("AsyncInferenceConfig"):
        yield Reason(
            Code.OTHER_KIND,
            "an asynchronous endpoint may scale to zero while its queue is empty; a delete drops the queue",
        )
    if inputs.components or any(not row.get("ModelName") for row in inputs.rows):
        yield Reason(Code.OTHER_KIND, "it holds inference components, which scale to zero without a delete")
    if body.get("ShadowProductionVariants"):
        yield Reason(Code.OTHER_KIND, "it has a shadow variant, so a test of it is under way")
    if any(row.get("ServerlessConfig") for row in inputs.rows):
        yield Reason(Code.OTHER_KIND, "a serverless variant costs nothing while nobody calls")
    if inputs.monitors:
        text = (
            f"Model Monitor schedules watch it ({', '.join(inputs.monitors)}): they have to be deleted before it is,"
            " and rightsizer deletes and creates none, since a new one starts jobs under a role of yours; "
        )
        yield Reason(Code.NOT_APPLICABLE, text + "delete them (a stopped one is in the way too), or remove its hours")
    if inputs.endpoint.capture_stopped:
        text = "somebody stopped its data capture, and an endpoint that is created again would capture"
        yield Reason(Code.NOT_APPLICABLE, text)


def _config(inputs: StopInput) -> Iterator[Reason]:
    if inputs.config is None:
        text = f"configuration {inputs.endpoint.config_name} does not exist any more, so it could not be created again"
        yield Reason(Code.CONFIGURATION_REPLACED, text)
    elif inputs.config.created_at > inputs.endpoint.modified_at:
        yield replaced_config_refusal(inputs.config.name)
    for config in (inputs.config, inputs.fallback):
        if config is not None:
            yield from key_refusals(config.name, str(config.body.get("KmsKeyId") or ""), inputs.ref.account)


def _models(inputs: StopInput) -> Iterator[Reason]:
    """What a creation loads must be what runs: the models that ran, and the files that they named then."""
    wanted = dict.fromkeys(str(row["ModelName"]) for row in inputs.rows if row.get("ModelName"))
    missing = [name for name in wanted if name not in inputs.models]
    if missing:
        text = f"models of its configuration do not exist any more: {', '.join(missing)}"
        yield Reason(Code.CONFIGURATION_REPLACED, f"{text}; it runs without them, but could not be created again")
    for model in (inputs.models[name] for name in wanted if name in inputs.models):
        if model.missing:
            text = f"there is no model data at {model.missing[0]} any more, which model {model.name} names"
            yield Reason(Code.CONFIGURATION_REPLACED, f"{text}; it could not be created again")
        if model.written_at is not None and model.written_at > inputs.endpoint.modified_at:
            text = f"the model data of {model.name} was written on {time_text(model.written_at)}, after the last "
            text += "deployment, so the morning would bring another model; deploy it, and it is stopped by its hours"
            yield Reason(Code.CONFIGURATION_REPLACED, text)


def _autoscaling(inputs: StopInput) -> Iterator[Reason]:
    yield from policies.autoscaling_refusals(inputs.scaling, inputs.limits.rewire_alarms, inputs.wired)
    yield from scheduled_actions.unreadable_actions(inputs.scaling)
    if inputs.denied:
        text = f"IAM denies our role {', '.join(inputs.denied)}, without which it could not be brought back"
        yield Reason(Code.PERMISSION_MISSING, text)


def _alarms(inputs: StopInput) -> Iterator[Reason]:
    """Actions go off as a whole: an alarm that watches more must not fall silent, a composite one stays on."""
    for alarm in (a for a in inputs.alarms if _pages(a)):
        name, others = alarm["AlarmName"], sorted(watched_endpoints(alarm) - {inputs.ref.name})
        if others or queries(alarm, inputs.ref.name):
            what = f"endpoint {others[0]}" if others else "other endpoints by a query"
            text = f"the alarm {name} also watches {what}, and would be silent for both at night; "
            yield Reason(Code.ALARM_NOT_OK, f"{text}give each endpoint an alarm of its own")
    for name, through in _paging_composites(inputs):
        text = f"the composite alarm {name} would page through {through} while it is stopped"
        yield Reason(Code.ALARM_NOT_OK, text)
    odd = sorted(str(a["AlarmName"]) for a in inputs.alarms if a.get("UnknownFields"))
    if odd:
        yield Reason(Code.UNKNOWN_FIELD, f"alarms with fields that this program does not know: {', '.join(odd)}")


def _pages(alarm: Mapping[str, Any]) -> bool:
    return bool(alarm.get("ActionsEnabled", True) and any(alarm.get(key) for key in ACTIONS))


def _paging_composites(inputs: StopInput) -> Iterator[tuple[str, str]]:
    """Composite alarms with actions that the night may fire, each with the alarm through which; also through others."""
    fires = {str(a["AlarmName"]): a.get("TreatMissingData") == "breaching" for a in inputs.alarms}
    left = list(inputs.composites)
    while True:
        hits = [(c, hit) for c in left if (hit := _hit(str(c.get("AlarmRule", "")), fires))]
        if not hits:
            return
        for composite, through in hits:
            left.remove(composite)
            fires[str(composite.get("AlarmName"))] = True
            if _pages(composite):
                yield str(composite.get("AlarmName")), through


def _hit(rule: str, fires: Mapping[str, bool]) -> str:
    """The first alarm of the rule by which it may become true at night; empty where there is none."""
    parts = (quoted or bare for quoted, bare in CHILD.findall(rule))
    names = (part.rpartition(":alarm:")[2] if part.startswith("arn:") else part for part in parts)
    odd = "INSUFFICIENT_DATA" in rule or "NOT" in rule
    return next((name for name in names if name in fires and (fires[name] or odd)), "")


def _images(inputs: StopInput) -> Iterator[Reason]:
    for name, resolved in (pair for v in inputs.endpoint.variants for pair in v.resolved_images):
        sight = inputs.registry.get(name)
        if sight is not None and sight.gone:
            text = f"the image {name} is not in its registry any more, so the morning could not start it; push it again"
            yield Reason(Code.MOVING_TAG, text)
            return
        if has_digest(name):
            continue
        if is_movable(name) or not resolved.rpartition("@")[2].startswith("sha256:"):
            text = f"the image {name} is named by a tag that may move, so the morning could bring other code; "
            yield Reason(Code.MOVING_TAG, text + "name it by its digest or a version")
            return
    if found := image_difference(inputs.endpoint, inputs.registry, True):
        yield found


def _requests(inputs: StopInput) -> Iterator[Reason]:
    grace = inputs.limits.hours.grace
    if not inputs.requests_known:
        text = "CloudWatch does not show for the last minutes that its instances ran, so silence proves nothing"
        yield Reason(Code.NO_DATAPOINTS, text)
    if inputs.last_request is not None and inputs.now - inputs.last_request < grace:
        minutes = (inputs.now - inputs.last_request) // timedelta(minutes=1)
        text = f"requests came {minutes} minutes ago, and the grace time is {grace // timedelta(minutes=1)} minutes"
        yield Reason(Code.TOO_BUSY, text)


def _capacity(inputs: StopInput) -> Iterator[Reason]:
    named, types = inputs.tags.get(FALLBACK_TAG, ""), set[str]()
    for row in inputs.rows:
        count = _count(inputs, row)
        pools = [str(pool.get("InstanceType") or "") for pool in row.get("InstancePools") or ()]
        kinds = pools or [kind for kind in (str(row.get("InstanceType") or ""),) if kind]
        types |= set(kinds)
        if pools and all((inputs.quotas.get(kind) or 0) < count + inputs.asleep.get(kind, 0) for kind in pools):
            text = (
                f"the quota for endpoint usage of no instance pool ({', '.join(pools)}) is known to be at least {count}"
            )
            yield Reason(Code.NO_QUOTA, text)
        scarce = bool(kinds) and all(map(is_scarce, kinds))  # it needs a fallback of its owner, or a reservation
        if (problem := _reservation_problem(inputs, row)) and not named:
            yield Reason(Code.CAPACITY, f"{problem}; name a configuration of another type by the tag {FALLBACK_TAG}")
        if scarce and not reservation_of(row) and not named:
            text = (
                f"{', '.join(kinds)} is scarce, and a morning may find none; name a configuration of another type by "
            )
            yield Reason(Code.CAPACITY, f"{text}the tag {FALLBACK_TAG}, or reserve capacity")
    yield from _fallback(inputs, named, types)
    yield from _quota(inputs, _counts(inputs, inputs.rows))


def _quota(inputs: StopInput, needs: Mapping[str, int], what: str = "") -> Iterator[Reason]:
    for kind, count in needs.items():
        limit, asleep = inputs.quotas.get(kind), inputs.asleep.get(kind, 0)
        if limit is None or limit < count + asleep:
            said = "is not known" if limit is None else f"is {limit}"
            more = f", beside {asleep} of endpoints that sleep now" if asleep else ""
            text = f"the quota '{kind} for endpoint usage' {said} and the morning needs {count}{what}{more}"
            yield Reason(Code.NO_QUOTA, text)


def _counts(inputs: StopInput, rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Instances by type that the rows need; instance pools, which name no type of the row, are asked about apart."""
    needs = dict[str, int]()
    for row in rows:
        if kind := str(row.get("InstanceType") or ""):
            needs[kind] = needs.get(kind, 0) + _count(inputs, row)
    return needs


def _count(inputs: StopInput, row: Mapping[str, Any]) -> int:
    """Instances that a variant needs in the morning: it is created at the configuration's count, and set to today's."""
    live = next((v.desired_count for v in inputs.endpoint.variants if v.name == row["VariantName"]), 0)
    return max(live, int(row.get("InitialInstanceCount") or 0))


def _reservation_problem(inputs: StopInput, row: Mapping[str, Any]) -> str:
    """Why the training plan of a variant starts no instance in the morning; empty where it does, or none is named."""
    if not (arn := reservation_of(row)):
        return ""
    plan = inputs.reservations.get(arn)
    if plan is None:
        return f"the reservation {arn} of its configuration cannot be read, so nobody knows whether the morning has it"
    if plan.status != "Active":
        return f"the training plan {arn} is {plan.status} and starts no instance"
    if plan.ends_at is None or (inputs.opens_at is not None and plan.ends_at <= inputs.opens_at):
        ends = f"ends on {time_text(plan.ends_at)}" if plan.ends_at is not None else "ends at no known time"
        return f"the training plan {arn} {ends}, and the next opening needs it"
    return ""


def _model_names(rows: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    return {(str(row.get("VariantName")), str(row.get("ModelName"))) for row in rows}


def _fallback(inputs: StopInput, named: str, types: set[str]) -> Iterator[Reason]:
    if not named:
        return
    if inputs.fallback is None:
        yield Reason(Code.BAD_TAG, f"the tag {FALLBACK_TAG} names configuration {named}, which does not exist")
        return
    rows = inputs.fallback.body.get("ProductionVariants") or ()
    variants = {row.get("VariantName") for row in rows}
    if variants != {row.get("VariantName") for row in inputs.rows}:
        yield Reason(Code.BAD_TAG, f"the fallback configuration {named} has other variants than the endpoint")
    if {row.get("InstanceType") for row in rows} & types:
        yield Reason(Code.BAD_TAG, f"the fallback configuration {named} has the same instance type as the endpoint")
    if _model_names(rows) != _model_names(inputs.rows):
        text = f"the fallback configuration {named} names other models than the endpoint, so a morning would bring them"
        yield Reason(Code.BAD_TAG, text)
    for row in rows:
        kind = str(row.get("InstanceType") or "")
        if problem := _reservation_problem(inputs, row):
            yield Reason(Code.CAPACITY, f"of the fallback configuration {named}: {problem}")
        if is_scarce(kind) and not reservation_of(row):
            yield Reason(Code.BAD_TAG, f"the fallback configuration {named} is of {kind}, which is scarce as well")
    yield from _quota(inputs, _counts(inputs, rows), f" for the fallback configuration {named}")


type StopCheck = Callable[[StopInput], Iterator[Reason]]

_CHECKS: Sequence[StopCheck] = (
    _switch,
    _owner,
    _under_way,
    _kind,
    _config,
    _models,
    _autoscaling,
    _alarms,
    _images,
    _requests,
    _capacity,
)
