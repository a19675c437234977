"""What a rollback deploys, decided again when it begins, so that it is large enough for the present fleet.

Where that cannot be had (the configuration cannot be cloned, or AWS refuses so many), the stored rollback stands: going
back too small is better than staying on what proved bad.

Autoscaling as a rollback meets it is stored before it is taken away, and given back where the rollback does not arrive.
Between the end of a change and its rollback weeks may pass, in which the owner edits bounds and adds policies. What the
change had settled is then as foreign to them as what it had stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from rightsizer.autoscaling import policies
from rightsizer.autoscaling.scheduled_actions import DueChange, change_due_now, steps_due_now
from rightsizer.changes import clone, guardrail, rollback_size
from rightsizer.changes.plan import create_step, update_step
from rightsizer.changes.plan.capacity import capacity_step
from rightsizer.changes.reconcile import is_given_back, was_update_rolled_back
from rightsizer.domain.change import Change, Course, Entry, FailureClass, JournalEvent, StepResult
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import ConfigSight, EndpointSight, Gone, LiveState
from rightsizer.domain.plan import AutoscalingBeforeRollback, Plan, PlanKind, Step, StepKind, VariantCount
from rightsizer.domain.reason import Code, Reason


@dataclass(frozen=True, slots=True)
class RollbackInput:
    """Facts of AWS and the catalogue about a rollback, beside the live state."""

    quotas: Mapping[str, int]
    """Instances by type; a type that is absent is unknown."""
    catalogue: Catalogue
    source: ConfigSight | None = None
    """The configuration that ran before the change; None where it is not there, or is not needed."""


def settled_change(change: Change, live: LiveState, now: datetime) -> Change | None:
    """The change, where nothing is left to decide about its rollback; None where it is.

    Nothing is left once AWS was asked for it. Where AWS refused the larger one, the stored one stands for good.
    """
    plan, endpoint = change.plan, live.endpoint
    if change.course is not Course.BACK or plan.back is None or plan.kind is not PlanKind.CHANGE or _is_settled(change):
        return change
    if isinstance(endpoint, Gone) or endpoint.status != "InService" or endpoint.pending_config:
        return change
    if live.has_effect_of(plan.back) or (plan.new_config and endpoint.config_name != plan.new_config):
        return change
    if plan.grown and (_is_refused(change) or was_update_rolled_back(change, plan.back, endpoint)):
        text = "the larger rollback was refused; it is as large as when the change was planned"
        return _note_plan(change, stored_rollback(plan), "failed", text, now)
    return change if change.last_entry(plan.back, "intended", "done", "failed") is not None else None


def is_quota_needed(change: Change, endpoint: EndpointSight, now: datetime) -> bool:
    """Whether the quotas bound what the rollback deploys: how it rolls, or how many instances it needs."""
    plan, before = change.plan, change.before
    if before is None or plan.back is None:
        return False
    if is_rolling(plan.back) and plan.turn is not None and is_rolling(plan.turn):
        return True
    return not plan.is_keeping_counts and not _is_large_enough(change, endpoint, now)


def needed_counts(
    change: Change, endpoint: EndpointSight, quotas: Mapping[str, int], now: datetime
) -> tuple[VariantCount, ...]:
    """The instances that the rollback needs, where it has to be made larger; empty where it is large enough."""
    plan, before = change.plan, change.before
    if before is None or plan.is_keeping_counts or _is_large_enough(change, endpoint, now):
        return ()
    wanted = rollback_size.rollback_counts(change_due_now(change, now).change, endpoint, quotas)
    return () if wanted == (plan.grown or before.variants) else wanted


def _is_large_enough(change: Change, endpoint: EndpointSight, now: datetime) -> bool:
    """Whether the stored rollback carries the fleet of now, whatever the quotas are."""
    variant_counts = change.before.variants if change.before else ()
    return (
        not change.plan.grown
        and rollback_size.rollback_counts(change_due_now(change, now).change, endpoint, {}) == variant_counts
    )


def limit_batches(change: Change, endpoint: EndpointSight, quotas: Mapping[str, int]) -> Change:
    """The change with a rollback that rolls in batches for which the quota has room beside the fleet of now."""
    plan, before = change.plan, change.before
    back = plan.back
    if back is None or before is None or not is_rolling(back):
        return change
    wanted = sum(v.count for v in plan.grown or before.variants)
    deployment = _deployment(change, endpoint, None if plan.is_keeping_counts else wanted, quotas)
    limited = replace(back, params={**back.params, "DeploymentConfig": deployment} if deployment else _plain_step(back))
    return replace(change, plan=replace(plan, back=limited))


def _deployment(
    change: Change, endpoint: EndpointSight, wanted: int | None, quotas: Mapping[str, int]
) -> dict[str, Any]:
    """How the rollback is deployed: as the turn was, with the room that the quota leaves now.

    `wanted` are its instances; None: as many as are live.
    """
    turn, before = change.plan.turn, change.before
    forward = turn.params.get("DeploymentConfig", {}) if turn is not None else {}
    if turn is None or before is None or not is_rolling(turn):
        return {}
    live, kind = sum(max(v.current_count, v.desired_count) for v in endpoint.variants), before.variants[0]
    quota = quotas.get(kind.instance_type)
    same = all(v.instance_type == kind.instance_type for v in change.plan.after)
    headroom = quota - live if quota is not None and same else quota
    return guardrail.rollback_deployment(forward, live, live if wanted is None else wanted, headroom)


def keep_owner_edits(change: Change, live: LiveState, now: datetime) -> Change:
    """The change with the bounds that its owner raised since, and with a line about every edit, once."""
    if change.plan.is_keeping_counts:
        return change  # the rollback keeps them too
    due = change_due_now(change, now).change
    edits = rollback_size.owner_edits(due, live)
    text = f"autoscaling was edited since the change ({', '.join(edits)}); the rollback gives back what was stored"
    if not edits or any(entry.step == JournalEvent.OWNER_EDITS for entry in change.journal):
        return change
    restore = rollback_size.raise_bounds(replace(due, plan=replace(due.plan, restore=change.plan.restore)), live)
    if restore != change.plan.restore:
        text += ", with bounds as large as yours"
    note = Entry(now, JournalEvent.OWNER_EDITS, "noted", text[:500])
    return replace(change, plan=replace(change.plan, restore=restore), journal=(*change.journal, note))


def enlarge(
    change: Change, endpoint: EndpointSight, wanted: tuple[VariantCount, ...], rollback: RollbackInput, now: datetime
) -> Change:
    """The change with a rollback that runs `wanted`, or with a line why the stored one stands."""
    plan = _enlarge_plan(change, endpoint, wanted, rollback)
    said = ", ".join(f"{v.name} {v.count} x {v.instance_type}" for v in wanted)
    if not isinstance(plan, Plan):
        text = f"the fleet grew to need {said}, and the rollback cannot be cloned: {plan.sentence}"
        return _note_plan(change, change.plan, "failed", text, now)
    text = f"the fleet or its bounds grew since the plan; the rollback runs {said}"
    return _note_plan(change, plan, "noted", text, now)


def _enlarge_plan(
    change: Change, endpoint: EndpointSight, wanted: tuple[VariantCount, ...], rollback: RollbackInput
) -> Plan | Reason:
    plan, before = change.plan, change.before
    assert before is not None
    first_back = plan.first_back or plan.back
    if not plan.new_config:
        old = {v.name: v.count for v in before.variants}
        moved = [v for v in wanted if v.count != old[v.name] or v.name in _named_variants(first_back)]
        return replace(plan, back=capacity_step(change.ref.name, moved), grown=wanted, first_back=first_back)
    if rollback.source is None:  # the deployment of the stored one says so itself, and hands over
        return Reason(Code.CONFIGURATION_REPLACED, f"configuration {before.config_name} does not exist any more")
    tags = {clone.CHANGE_TAG: change.id}
    made = clone.clone_config(rollback.source, clone.Wanted(wanted), rollback.catalogue, tags, endpoint.capture_stopped)
    if not isinstance(made, clone.ClonedConfig):
        return made[0]
    others = tuple(step for step in plan.prepare if step.subject != made.name)
    deployment = _deployment(change, endpoint, sum(v.count for v in wanted), rollback.quotas)
    return replace(
        plan,
        prepare=(*others, create_step(made)),
        back=update_step(change.ref.name, made.name, deployment),
        back_config=made.name,
        grown=wanted,
        first_back=first_back,
    )


def stored_rollback(plan: Plan) -> Plan:
    """The plan with the rollback of its beginning."""
    if plan.first_back is None:
        return plan
    config = str(plan.first_back.params.get("EndpointConfigName", ""))
    return replace(plan, back=plan.first_back, back_config=config, grown=(), first_back=None)


def is_rolling(step: Step) -> bool:
    """Whether a deployment replaces the instances in batches."""
    return "RollingUpdatePolicy" in step.params.get("DeploymentConfig", {})


def _plain_step(step: Step) -> dict[str, Any]:
    return {key: value for key, value in step.params.items() if key != "DeploymentConfig"}


def _is_settled(change: Change) -> bool:
    """Whether the stored rollback was chosen for good."""
    return any(entry.step == JournalEvent.WAY_BACK and entry.status == "failed" for entry in change.journal)


def _is_refused(change: Change) -> bool:
    """Whether AWS refuses to make or to deploy what the grown rollback needs: for good, or for want of a permission.

    The stored rollback needs no configuration, so a role that lost `CreateEndpointConfig` can still go back.
    """
    plan = change.plan
    steps = [s for s in plan.prepare if s.kind is StepKind.CREATE_CONFIG and s.subject == plan.back_config]
    lasts = [change.last_entry(step, "done", "failed") for step in (*steps, plan.back) if step is not None]
    return any(last is not None and _is_hopeless(last) for last in lasts)


def _is_hopeless(last: Entry) -> bool:
    """Whether trying the step again would only lose time."""
    return last.result is StepResult.REFUSED or (
        last.result is StepResult.RETRY and last.failure is FailureClass.PERMISSION
    )


def _named_variants(step: Step | None) -> frozenset[str]:
    rows = step.params.get("DesiredWeightsAndCapacities", ()) if step is not None else ()
    return frozenset(row["VariantName"] for row in rows)


def _note_plan(change: Change, plan: Plan, status: Literal["failed", "noted"], text: str, now: datetime) -> Change:
    entry = Entry(now, JournalEvent.WAY_BACK, status, text[:500])
    return replace(change, plan=plan, journal=(*change.journal, entry))


def is_taking_autoscaling(change: Change, live: LiveState) -> bool:
    """Whether the rollback is about to take autoscaling away, and has taken nothing away yet."""
    return (
        change.course is Course.BACK and bool(change.plan.clear) and live.scaling is not None and is_given_back(change)
    )


def with_autoscaling(change: Change, live: LiveState, alarms: Sequence[Mapping[str, Any]], now: datetime) -> Change:
    """The change with the autoscaling that its rollback meets, and the alarms of its step policies."""
    note = Entry(now, JournalEvent.MET, "noted", "autoscaling is stored as it is before the rollback takes it away")
    journal = change.journal if change.met is not None else (*change.journal, note)
    met = AutoscalingBeforeRollback(now, live.scaling or (), tuple(dict(a) for a in alarms))
    return replace(change, met=met, journal=journal)


def change_with_recorded_autoscaling(due: DueChange, now: datetime) -> DueChange:
    """The change with the autoscaling recorded before its rollback, at the bounds that are due now.

    A view of one look, as `change_due_now`; the same where no rollback took anything away.
    """
    change = due.change
    if change.met is None or is_given_back(change):
        return due
    caught = steps_due_now(
        _autoscaling_steps_before_rollback(change), change.met.scaling, change.met.at, now, all_actions=True
    )
    said = {step.text: text for step in caught.steps if (text := caught.said.get(step.key))}
    return DueChange(replace(change, plan=replace(change.plan, settle=caught.steps)), {**due.said, **said})


def owner_additions(change: Change) -> tuple[str, ...]:
    """Command lines that put again what the owner added before the rollback, and what it does not give back."""
    ours = {step.key for step in change.plan.restore}
    steps = _autoscaling_steps_before_rollback(change)
    theirs = (step for step in steps if step.kind is not StepKind.REGISTER_TARGET and step.key not in ours)
    return tuple(step.command(change.ref.region) for step in theirs)


def _autoscaling_steps_before_rollback(change: Change) -> tuple[Step, ...]:
    met = change.met
    return policies.restore_steps(met.scaling, met.alarms, met.scaling) if met is not None else ()
