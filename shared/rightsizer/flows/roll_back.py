"""The way back, made again when the return begins: it is large enough for the fleet of now.

Where that cannot be had (the configuration cannot be cloned, or AWS refuses so many), the stored way back stands: going
back too small is better than staying on what proved bad.

Autoscaling as a return meets it is stored before it is taken away, and given back where the return does not arrive.
Between the end of a change and its return weeks may pass, in which the owner edits bounds and adds policies. What the
change had settled is then as foreign to them as what it had stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from rightsizer.autoscaling import policies
from rightsizer.autoscaling.scheduled_actions import Due, as_due, caught_up
from rightsizer.changes import clone, guardrail, rollback_size
from rightsizer.changes.plan.capacity import capacity_step
from rightsizer.changes.plan.config import create, update
from rightsizer.changes.reconcile import given_back, rolled_back
from rightsizer.domain.change import Change, Course, Entry, FailureClass, JournalEvent, StepResult
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import EndpointSight, Gone, Sight
from rightsizer.domain.option import Target
from rightsizer.domain.plan import Met, Plan, PlanKind, Step, StepKind, VariantCount
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import RightsizerError
from rightsizer.ports.changes import Changer
from rightsizer.ports.evaluation import QuotaReader
from rightsizer.telemetry import logger


@dataclass(frozen=True, slots=True)
class Returning:
    """Chooses what the way back deploys, until it is asked for."""

    changer: Changer
    quotas: QuotaReader
    catalogue: Catalogue

    def grown(self, change: Change, sight: Sight, now: datetime) -> Change:
        """The change with a way back that is large enough; the same change where it is, or was asked for already.

        Raises ReadError when the old configuration or the quotas could not be read.
        """
        plan, endpoint = change.plan, sight.endpoint
        if (
            change.course is not Course.BACK
            or plan.back is None
            or plan.kind is not PlanKind.CHANGE
            or _settled(change)
        ):
            return change
        if isinstance(endpoint, Gone) or endpoint.status != "InService" or endpoint.pending_config:
            return change
        if sight.shows(plan.back) or (plan.new_config and endpoint.config_name != plan.new_config):
            return change
        if plan.grown and (_refused(change) or rolled_back(change, plan.back, endpoint)):
            text = "the larger way back was refused; it is as large as when the change was planned"
            return _noted(change, stored(plan), "failed", text, now)
        if change.last(plan.back, "intended", "done", "failed") is not None:
            return change
        change = self._paced(change, endpoint)
        if plan.keeps_counts:
            return change  # the way back keeps them too
        change = self._edited(change, sight, now)
        plan, due = change.plan, as_due(change, now).change
        if not plan.grown and rollback_size.counts(due, endpoint, {}) == (
            change.before.variants if change.before else ()
        ):
            return change  # without a look at the quotas
        wanted = rollback_size.counts(due, endpoint, self._quotas())
        if change.before is None or wanted == (plan.grown or change.before.variants):
            return change
        made = self._plan(change, endpoint, wanted)
        said = ", ".join(f"{v.name} {v.count} x {v.instance_type}" for v in wanted)
        if not isinstance(made, Plan):
            text = f"the fleet grew to need {said}, and the way back cannot be cloned: {made.sentence}"
            return _noted(change, plan, "failed", text, now)
        return _noted(
            change, made, "noted", f"the fleet or its bounds grew since the plan; the way back runs {said}", now
        )

    def _paced(self, change: Change, endpoint: EndpointSight) -> Change:
        """The change with a way back that rolls in batches for which the quota has room beside the fleet of now."""
        plan, before = change.plan, change.before
        back = plan.back
        if back is None or before is None or not rolls(back):
            return change
        wanted = sum(v.count for v in plan.grown or before.variants)
        deployment = self._deployment(change, endpoint, None if plan.keeps_counts else wanted)
        paced = replace(back, params={**back.params, "DeploymentConfig": deployment} if deployment else _plain(back))
        return replace(change, plan=replace(plan, back=paced))

    def _deployment(self, change: Change, endpoint: EndpointSight, wanted: int | None) -> dict[str, Any]:
        """How the way back is deployed: as the turn was, with the room that the quota leaves now.

        `wanted` are its instances; None: as many as are live.
        """
        turn, before = change.plan.turn, change.before
        forward = turn.params.get("DeploymentConfig", {}) if turn is not None else {}
        if turn is None or before is None or not rolls(turn):
            return {}
        live, kind = sum(max(v.current_count, v.desired_count) for v in endpoint.variants), before.variants[0]
        quota = self._quotas().get(kind.instance_type)
        same = all(v.instance_type == kind.instance_type for v in change.plan.after)
        headroom = quota - live if quota is not None and same else quota
        return guardrail.way_back(forward, live, live if wanted is None else wanted, headroom)

    def _edited(self, change: Change, sight: Sight, now: datetime) -> Change:
        """The change with the bounds that its owner raised since, and with a line about every edit, once."""
        edits = rollback_size.edits(as_due(change, now).change, sight)
        text = f"autoscaling was edited since the change ({', '.join(edits)}); the way back gives back what was stored"
        if not edits or any(
            e.step == JournalEvent.WAY_BACK and e.detail.startswith("autoscaling was") for e in change.journal
        ):
            return change
        due = as_due(change, now).change
        restore = rollback_size.raised(replace(due, plan=replace(due.plan, restore=change.plan.restore)), sight)
        if restore != change.plan.restore:
            text += ", with bounds as large as yours"
        return _noted(change, replace(change.plan, restore=restore), "noted", text, now)

    def _quotas(self) -> Mapping[str, int]:
        """By type; unknown where they cannot be read now, since a return must not wait for them."""
        try:
            return self.quotas.endpoint_quotas()
        except RightsizerError as error:
            logger.warning("the quotas are not known for a way back", extra={"why": str(error)})
            return {}

    def _plan(self, change: Change, endpoint: EndpointSight, wanted: tuple[VariantCount, ...]) -> Plan | Reason:
        plan, before = change.plan, change.before
        assert before is not None
        first_back = plan.first_back or plan.back
        if not plan.new_config:
            old = {v.name: v.count for v in before.variants}
            moved = [v for v in wanted if v.count != old[v.name] or v.name in _named(first_back)]
            return replace(plan, back=capacity_step(change.ref.name, moved), grown=wanted, first_back=first_back)
        config = self.changer.config(before.config_name)
        if config is None:  # the deployment of the stored one says so itself, and hands over
            return Reason(Code.CONFIGURATION_REPLACED, f"configuration {before.config_name} does not exist any more")
        tags = {clone.CHANGE_TAG: change.id}
        today = Target(wanted[0].instance_type, wanted[0].count)
        made = clone.clone(config, wanted, today, self.catalogue, tags, endpoint.capture_stopped)
        if not isinstance(made, clone.Clone):
            return made[0]
        others = tuple(step for step in plan.prepare if step.subject != made.name)
        return replace(
            plan,
            prepare=(*others, create(made)),
            back=update(change.ref.name, made.name, self._deployment(change, endpoint, sum(v.count for v in wanted))),
            back_config=made.name,
            grown=wanted,
            first_back=first_back,
        )


def stored(plan: Plan) -> Plan:
    """The plan with the way back of its beginning."""
    if plan.first_back is None:
        return plan
    config = str(plan.first_back.params.get("EndpointConfigName", ""))
    return replace(plan, back=plan.first_back, back_config=config, grown=(), first_back=None)


def rolls(step: Step) -> bool:
    """Whether a deployment replaces the instances in batches."""
    return "RollingUpdatePolicy" in step.params.get("DeploymentConfig", {})


def _plain(step: Step) -> dict[str, Any]:
    return {key: value for key, value in step.params.items() if key != "DeploymentConfig"}


def _settled(change: Change) -> bool:
    """Whether the stored way back was chosen for good."""
    return any(entry.step == JournalEvent.WAY_BACK and entry.status == "failed" for entry in change.journal)


def _refused(change: Change) -> bool:
    """Whether AWS refuses to make or to deploy what the grown way back needs: for good, or for want of a permission.

    The stored way back needs no configuration, so a role that lost `CreateEndpointConfig` can still go back.
    """
    plan = change.plan
    made = [s for s in plan.prepare if s.kind is StepKind.CREATE_CONFIG and s.subject == plan.back_config]
    lasts = [change.last(step, "done", "failed") for step in (*made, plan.back) if step is not None]
    return any(last is not None and _is_hopeless(last) for last in lasts)


def _is_hopeless(last: Entry) -> bool:
    """Whether trying the step again would only lose time."""
    return last.result is StepResult.REFUSED or (
        last.result is StepResult.RETRY and last.failure is FailureClass.PERMISSION
    )


def _named(step: Step | None) -> frozenset[str]:
    rows = step.params.get("DesiredWeightsAndCapacities", ()) if step is not None else ()
    return frozenset(row["VariantName"] for row in rows)


def _noted(change: Change, plan: Plan, status: str, text: str, now: datetime) -> Change:
    entry = Entry(now, JournalEvent.WAY_BACK, "failed" if status == "failed" else "noted", text[:500])
    return replace(change, plan=plan, journal=(*change.journal, entry))


def meet(changer: Changer, change: Change, sight: Sight, now: datetime) -> Change:
    """The change with autoscaling and alarms as they are now, while its return has taken nothing away yet.

    Raises ReadError when the alarms could not be seen: nothing is taken away that could not be given back.
    """
    if change.course is not Course.BACK or not change.plan.clear or sight.scaling is None or not given_back(change):
        return change
    arns = [p["PolicyARN"] for t in sight.scaling for p in t.policies if p.get("PolicyType") == "StepScaling"]
    alarms = tuple(dict(a) for a in changer.alarms_pointing_at(arns)) if arns else ()
    note = Entry(now, JournalEvent.MET, "noted", "autoscaling is stored as it is before the way back takes it away")
    journal = change.journal if change.met is not None else (*change.journal, note)
    return replace(change, met=Met(now, sight.scaling, alarms), journal=journal)


def as_met(due: Due, now: datetime) -> Due:
    """The change with what its return met in the place of what it had settled, with what a schedule set since.

    A view of one look, as `as_due`; the same where no return took anything away.
    """
    change = due.change
    if change.met is None or given_back(change):
        return due
    caught = caught_up(_steps(change), change.met.scaling, change.met.at, now, all_actions=True)
    said = {step.command: told for step in caught.steps if (told := caught.said.get(step.key))}
    return Due(replace(change, plan=replace(change.plan, settle=caught.steps)), {**due.said, **said})


def added(change: Change) -> tuple[str, ...]:
    """Command lines that put again what the owner added before the return, and what the return does not give back."""
    ours = {step.key for step in change.plan.restore}
    return tuple(
        step.command for step in _steps(change) if step.kind is not StepKind.REGISTER_TARGET and step.key not in ours
    )


def _steps(change: Change) -> tuple[Step, ...]:
    met = change.met
    return policies.rebuild(met.scaling, met.alarms, met.scaling) if met is not None else ()
