"""Steps of a stop and of a start, made from the stored record, and whether AWS already shows what one brings about.

DeleteEndpoint deregisters the scalable targets of the variants (SageMaker refuses the delete where the caller may not),
and with them go policies and scheduled actions; alarms stay and lose the policies that they started.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rightsizer.autoscaling.policies import restore_steps
from rightsizer.autoscaling.scheduled_actions import steps_due_now
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.hours_record import EndpointBefore, HoursRecord, alarm_step, config_command, model_command
from rightsizer.domain.live_state import Gone, LiveState
from rightsizer.domain.plan import Step, StepKind, region_option

ALARMS_AT_ONCE = 100
"""Names in one DisableAlarmActions or EnableAlarmActions request (CloudWatch API reference)."""


@dataclass(frozen=True, slots=True)
class LiveHours:
    """Everything that was looked at for one decision about an endpoint with office hours."""

    state: LiveState
    config_exists: bool = True
    """Whether the configuration that it is created from is there."""
    config_replaced: bool = False
    """Whether somebody made that configuration anew with other content since everything was stored."""
    fallback_exists: bool = False
    """Whether the fallback is there as it was stored."""
    model_problem: str = ""
    """Why its models do not let it be created as before; empty where they do, or were not looked at."""
    tags: dict[str, str] = field(default_factory=dict)
    """Tags of the endpoint; empty where it is gone."""


def silence_steps(before: EndpointBefore) -> tuple[Step, ...]:
    """Steps that switch the actions of its alarms off."""
    return tuple(_alarm_steps(StepKind.SILENCE_ALARMS, before))


def sound_steps(before: EndpointBefore) -> tuple[Step, ...]:
    """Steps that switch the actions on again that were on."""
    return tuple(_alarm_steps(StepKind.SOUND_ALARMS, before))


def delete_step(ref: EndpointRef) -> Step:
    """The one step that deletes what serves, or what could not be created."""
    return Step(StepKind.DELETE_ENDPOINT, ref.name, {"EndpointName": ref.name})


def step_key(kind: StepKind, ref: EndpointRef) -> str:
    """The key of the step that creates or deletes the endpoint, from whatever configuration."""
    return Step(kind, ref.name).key


def create_step(ref: EndpointRef, before: EndpointBefore, config: str) -> Step:
    """The step that creates the endpoint again under its name, with all its tags."""
    tags = [{"Key": key, "Value": value} for key, value in sorted(before.tags.items())]
    params = {"EndpointName": ref.name, "EndpointConfigName": config} | ({"Tags": tags} if tags else {})
    return Step(StepKind.CREATE_ENDPOINT, ref.name, params)


def settle_steps(ref: EndpointRef, before: EndpointBefore, now: datetime) -> tuple[Step, ...]:
    """Steps after it is in service: counts and weights, autoscaling as due now, alarms re-wired and switched on."""
    steps = restore_steps(before.scaling, (), before.scaling)
    due = steps_due_now(steps, before.scaling, before.taken_at, now, all_actions=True).steps
    wired = (alarm_step(alarm, before) for alarm in before.wired)
    return (*_capacity_steps(ref, before), *due, *wired, *sound_steps(before))


def has_effect(step: Step, live: LiveState) -> bool:
    """Whether AWS already shows what the step would bring about."""
    match step.kind:
        case StepKind.SILENCE_ALARMS | StepKind.SOUND_ALARMS:
            if live.alarms is None:
                return False  # not looked at
            wanted = step.kind is StepKind.SOUND_ALARMS
            found = [live.alarms.get(name) for name in step.params["AlarmNames"]]
            return all(a is None or bool(a.body.get("ActionsEnabled", True)) is wanted for a in found)
        case StepKind.DELETE_ENDPOINT:
            return isinstance(live.endpoint, Gone)
        case StepKind.CREATE_ENDPOINT:
            return not isinstance(live.endpoint, Gone)
        case StepKind.SET_CAPACITY:
            return _has_capacity(step, live)
        case StepKind.PUT_ALARM if live.alarms is not None and step.subject not in live.alarms:
            return True  # its owner deleted it meanwhile
        case _:
            return live.has_effect_of(step)


def commands_by_hand(record: HoursRecord, now: datetime, live: LiveState | None = None) -> tuple[str, ...]:
    """Commands by which a person brings the endpoint back, in order; those that `live` shows done are left out."""
    before, ref = record.before, record.ref
    if before is None:
        return ()
    region, where = ref.region, region_option(ref.region)
    create, delete = create_step(ref, before, before.config_name).command(region), delete_step(ref).command(region)
    serving = f"aws sagemaker wait endpoint-in-service{where} --endpoint-name {ref.name}"
    deleted = f"aws sagemaker wait endpoint-deleted{where} --endpoint-name {ref.name}"
    config = f"# only where the configuration is gone: {config_command(before, region)}"
    gone = "# only where the model is gone: "
    models = tuple(f"{gone}{model_command(model, region)}" for model in before.models)
    settle = tuple(s.command(region) for s in settle_steps(ref, before, now) if live is None or not has_effect(s, live))
    status = "" if live is None or isinstance(live.endpoint, Gone) else live.endpoint.status
    match status:
        case "":
            return *models, config, create, serving, *settle
        case "Failed":
            return delete, deleted, *models, config, create, serving, *settle
        case "Creating" | "Deleting":
            again = f"# only where it ends as Failed, or is gone: {delete} ; {deleted} && {create}"
            return serving, again, *settle
        case _:
            return settle


def missing_part(record: HoursRecord, live: LiveHours, now: datetime) -> str:
    """Request and subject of the first step after which it would be as stored; empty where it is as stored."""
    wanted = settle_steps(record.ref, record.before, now) if record.before is not None else ()
    return next((f"{s.operation} {s.subject}" for s in wanted if not has_effect(s, live.state)), "")


def _alarm_steps(kind: StepKind, before: EndpointBefore) -> Iterable[Step]:
    names = before.silenced
    for start in range(0, len(names), ALARMS_AT_ONCE):
        some = list(names[start : start + ALARMS_AT_ONCE])
        yield Step(kind, some[0], {"AlarmNames": some})


def _capacity_steps(ref: EndpointRef, before: EndpointBefore) -> Iterable[Step]:
    """One request sets the weights of all variants or the count of one (UpdateEndpointWeightsAndCapacities)."""
    if len(before.variants) > 1:
        rows = [{"VariantName": v.name, "DesiredWeight": v.weight} for v in before.variants]
        yield _capacity_step(ref, rows)
    for variant in before.variants:
        yield _capacity_step(ref, [{"VariantName": variant.name, "DesiredInstanceCount": variant.count}])


def _capacity_step(ref: EndpointRef, rows: Sequence[dict[str, object]]) -> Step:
    what = ref.name if len(rows) > 1 else f"{ref.name} {rows[0]['VariantName']}"
    return Step(StepKind.SET_CAPACITY, what, {"EndpointName": ref.name, "DesiredWeightsAndCapacities": list(rows)})


def _has_capacity(step: Step, live: LiveState) -> bool:
    """Counts of a variant that has its autoscaling again are that one's to move."""
    if isinstance(live.endpoint, Gone):
        return False
    scaled = {target.variant_name for target in live.scaling or ()}
    variants = {variant.name: variant for variant in live.endpoint.variants}
    for row in step.params["DesiredWeightsAndCapacities"]:
        found = variants.get(row["VariantName"])
        if found is None:
            return False
        count = row.get("DesiredInstanceCount", found.desired_count)
        if found.name not in scaled and found.desired_count != count:
            return False
        if "DesiredWeight" in row and found.desired_weight != row["DesiredWeight"]:
            return False
    return True


def created_by_us(record: HoursRecord) -> bool:
    """Whether the present start created the endpoint."""
    return record.before is not None and record.may_be_done(create_step(record.ref, record.before, ""))
