"""Autoscaling as a return meets it: stored before it is taken away, given back where the return does not arrive.

Between the end of a change and its return weeks may pass, in which the owner edits bounds and adds policies. What the
change had settled is then as foreign to them as what it had stored.
"""

from dataclasses import replace
from datetime import datetime

from rightsizer.autoscaling import policies
from rightsizer.autoscaling.scheduled_actions import Due, caught_up
from rightsizer.changes.reconcile import given_back
from rightsizer.domain.change import Change, Course, Entry
from rightsizer.domain.live_state import Sight
from rightsizer.domain.plan import Met, Step, StepKind
from rightsizer.ports.changes import Changer

MET = "met"
"""The journal line that says since when the return knows what it met."""


def meet(changer: Changer, change: Change, sight: Sight, now: datetime) -> Change:
    """The change with autoscaling and alarms as they are now, while its return has taken nothing away yet.

    Raises ReadError when the alarms could not be seen: nothing is taken away that could not be given back.
    """
    if change.course is not Course.BACK or not change.plan.clear or sight.scaling is None or not given_back(change):
        return change
    arns = [p["PolicyARN"] for t in sight.scaling for p in t.policies if p.get("PolicyType") == "StepScaling"]
    alarms = tuple(dict(a) for a in changer.alarms_pointing_at(arns)) if arns else ()
    note = Entry(now, MET, "noted", "autoscaling is stored as it is before the way back takes it away")
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
