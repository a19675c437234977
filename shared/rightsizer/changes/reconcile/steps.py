"""What happens to one step of a plan: done, tried again or given up, and obstacles right before a write."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from rightsizer.changes.reconcile.drift import (
    GONE_AFTER,
    added_targets,
    close_rolled_back,
    forward_obstacle,
    may_have_changed_autoscaling,
    may_have_written,
    next_look,
    targets_of_owner,
    targets_registered_again,
)
from rightsizer.domain.change import Change, ChangeState, Course, Entry, FailureClass, JournalEvent, StepResult
from rightsizer.domain.component import ComponentSight
from rightsizer.domain.live_state import MOVING, EndpointSight, LiveState
from rightsizer.domain.next_action import Do, NextAction, Replan, Steer, Wait
from rightsizer.domain.plan import PlanKind, Step, StepKind, command, has_places
from rightsizer.domain.preflight import ACTION, pass_role_command, role_of_caller
from rightsizer.domain.proposal import PATIENCE
from rightsizer.domain.reason import Code, Reason, time_text

RETRY_MIN = (1, 3, 10, 20, 30)
"""Minutes until a step that failed for a passing reason is tried again."""
ATTEMPTS = 6
NO_ROOM = (
    "; where copies are missing, no instance has room for them and none came: AWS has no capacity of the type now, the"
    " quota is used up, or the maximum of managed instance scaling is reached"
)
"""Why copies that AWS took on do not run; the command is handed over, for they may run later."""
COPIES_LIMIT = timedelta(hours=4)
"""Twice what one copy may take: an hour to load, an hour to answer (InferenceComponentStartupParameters)."""
LAG = timedelta(minutes=3)
"""An accepted update may take this long to show (inferred)."""
SETTLES = timedelta(minutes=1)
"""Application Auto Scaling is eventually consistent."""
SHOWS = timedelta(hours=1)
"""An update of the endpoint that does not show after this was not made, whatever its answer was (inferred)."""


def first_action(change: Change, live: LiveState, goals: Iterable[Step], now: datetime) -> NextAction | None:
    """The first goal that AWS does not show yet, as a move; None when all are shown."""
    for step in goals:
        if _is_moving(live, step):
            return _moving_component_action(change, step, now)
        stands = step_obstacle(change, live, step, now) if step.kind is StepKind.UPDATE_COMPONENT else None
        if stands is not None:
            return give_up_step(change, step, FailureClass.UNKNOWN, stands) if isinstance(stands, str) else stands
        if not live.has_effect_of(step):
            if change.course is Course.FORWARD and (theirs := forward_obstacle(change, live, step, now)):
                return _stop_for_owner(change, theirs)
            return attempt_step(change, live.resolve_step(step), now, step.subject in live.configs_differ)
    return None


def _stop_for_owner(change: Change, theirs: str) -> Steer:
    """The end of a change whose next step would write over what the owner set since."""
    if may_have_written(change):
        return close_rolled_back(Code.CHANGED_SINCE, theirs, FailureClass.OUTSIDE)
    return Steer(Reason(Code.CHANGED_SINCE, theirs), Course.CLOSE, ChangeState.REFUSED, FailureClass.OUTSIDE)


def _is_moving(live_state: LiveState, step: Step) -> bool:
    if step.kind is StepKind.UPDATE_COMPONENT:
        live = live_state.components.get(step.component)
        return live is not None and live.is_moving
    return step.kind is StepKind.SET_COPIES and live_state.copies.get(step.subject) == MOVING


def _moving_component_action(change: Change, step: Step, now: datetime) -> NextAction:
    """Wait for a component that is being changed; a person gets one that never ends, with the line of its old copies.

    Where nothing was written yet nobody has anything to do for us: the change is refused.

    Its age counts from the last line of the journal, since a wait writes none.
    """
    began = max((e.at for e in change.journal if e.status != "failed"), default=change.created_at)
    name, limit = step.component, time_limit(step, COPIES_LIMIT)
    if now - began < limit:
        return Wait(min(next_look(change, now), began + limit), f"component {name} is being changed")
    hours = (now - began).total_seconds() / 3600
    text = f"component {name} is being changed for {hours:.1f} h, longer than any change of it may take"
    if change.course is Course.FORWARD and not may_have_written(change):
        text += ", and nothing was written to it by this program"
        return Steer(Reason(Code.TIMEOUT, text), Course.CLOSE, ChangeState.REFUSED, FailureClass.OUTSIDE)
    mine = (s for s in change.plan.restore if s.kind is step.kind and s.component == name)
    shown = command("sagemaker", "DescribeInferenceComponent", {"InferenceComponentName": name}, change.ref.region)
    reason = Reason(Code.TIMEOUT, f"{text}; once it is InService or Failed, it can be set as it was")
    lines = (shown, next(mine, step).command(change.ref.region))
    return Steer(reason, Course.CLOSE, ChangeState.HANDED_OVER, FailureClass.TIMEOUT, remaining=lines)


def attempt_step(change: Change, step: Step, now: datetime, config_differs: bool = False) -> NextAction:
    """Do a step, wait before it is tried again, or give it up."""
    tried, last = change.attempts(step), change.last_entry(step, "done", "failed")
    if lacks := _missing_need(change, step):
        return give_up_step(change, step, change.failure, f"{lacks}{_last_refusal(change)}")
    if step.kind is StepKind.CREATE_CONFIG and config_differs:
        text = f"a configuration {step.subject} with other content exists"
        return give_up_step(change, step, FailureClass.UNKNOWN, text)
    if last is not None and last.status == "done" and timedelta(0) <= now - last.at < SETTLES:
        return Wait(last.at + SETTLES, f"{step.key} was accepted and does not show yet")
    if last is None or last.status == "done":
        done = sum(1 for e in change.journal if e.step == step.key and e.status == "done")
        if done < ATTEMPTS and tried < ATTEMPTS:
            return Do(step)
        text = f"it never shows{NO_ROOM if step.kind is StepKind.SET_COPIES else ''}"
        return give_up_step(change, step, FailureClass.UNKNOWN, text, said="was accepted")
    if last.result is StepResult.REFUSED or tried >= (1 if _is_hopeless(change) else ATTEMPTS):
        return give_up_step(change, step, last.failure, last.answer)
    due = last.at + timedelta(minutes=RETRY_MIN[min(tried, len(RETRY_MIN)) - 1])
    return Do(step) if now >= due else Wait(due, f"{step.key} failed for now ({last.detail}); it is tried again")


def _is_hopeless(change: Change) -> bool:
    """Handed over for want of a permission: each goal that is left is tried once, so that people know soon."""
    return change.ending is ChangeState.HANDED_OVER and change.failure is FailureClass.PERMISSION


def _missing_need(change: Change, step: Step) -> str:
    """What the step needs and was given up, so that AWS is not asked; empty where nothing lacks."""
    if step.kind in (StepKind.PUT_POLICY, StepKind.PUT_SCHEDULED) and _was_registration_given_up(change, step):
        return "its scalable target could not be registered"
    if step.kind is StepKind.PUT_ALARM and has_places(step):
        return "a policy that it starts could not be made"
    return ""


def _last_refusal(change: Change) -> str:
    """The last refusal of AWS itself, for the outcome of what could not be asked after it."""
    refused = [e for e in change.journal if e.result is StepResult.REFUSED]
    return f" ({refused[-1].step} was refused: {refused[-1].answer})" if refused else ""


def _was_registration_given_up(change: Change, step: Step) -> bool:
    """Whether the registration that the step needs was given up."""
    plan = change.plan
    mine = [
        s for s in (*plan.settle, *plan.restore) if s.kind is StepKind.REGISTER_TARGET and s.subject == step.subject
    ]
    return any(change.leaves_to_person(s) for s in mine)


def give_up_step(change: Change, step: Step, kind: FailureClass, text: str, said: str = "was refused") -> NextAction:
    """A step that AWS refuses for good, or `said`. Before the turn nothing is lost; after it a person has to help."""
    reason = Reason(Code.REFUSED_BY_AWS, f"{step.key} {said}: {text}{_remedy(step, text)}")
    forward = change.course is Course.FORWARD and change.turned_at is None
    if forward:
        return Steer(reason, Course.CLOSE, ChangeState.ROLLED_BACK, kind)
    tidying = step.kind is StepKind.DELETE_ALARMS and change.ending is not None
    ending = change.ending if tidying else ChangeState.HANDED_OVER
    return Steer(reason, Course.CLOSE, ending, kind, remaining=(step.command(change.ref.region),))


def _remedy(step: Step, text: str) -> str:
    """The command that allows what AWS refused, where it is the passing of an execution role."""
    role = str(step.params.get("ExecutionRoleArn") or "")
    if step.kind is not StepKind.CREATE_CONFIG or not role or ACTION not in text:
        return ""
    return f"; an operator allows it with: {pass_role_command(role_of_caller(text), role)}"


def step_obstacle(change: Change, live_state: LiveState, step: Step, now: datetime) -> Steer | Wait | str | None:
    """Obstacle of the step: a next action, or the words for giving up; None without one."""
    live, forward = live_state.components.get(step.component), change.course is Course.FORWARD
    if live is None and forward:
        text = f"component {step.component} was deleted by somebody"
        return close_rolled_back(Code.VANISHED, text, FailureClass.OUTSIDE)
    if live is None or live.is_moving or live_state.has_effect_of(step):
        return None
    if live.unknown_fields:
        fields = ", ".join(sorted(live.unknown_fields))
        return f"component {live.name} has fields that this program does not know: {fields}"
    last = change.last_entry(step, "done", "intended", "failed")
    if last is not None and last.status == "done" and now - last.at < LAG:
        return Wait(last.at + LAG, f"{step.key} was accepted and does not show yet")
    if not _was_rolled_back(change, step, live):
        return None
    said = live.failure_reason or f"component {live.name} has its old specification again, and AWS gave no reason"
    if forward:
        return close_rolled_back(Code.ROLLED_BACK, said, FailureClass.UNKNOWN)
    return f"its roll was taken back by AWS: {said}"


def _was_rolled_back(change: Change, step: Step, live: ComponentSight) -> bool:
    """Whether AWS accepted the step, or may have, and took it back."""
    last = change.last_entry(step, "done", "intended", "failed")
    if last is None or last.was_rejected:
        return False
    return last.status == "done" or (bool(live.failure_reason) and live.modified_at > last.at)


def time_limit(step: Step, otherwise: timedelta) -> timedelta:
    """Time that a component's update may take: the limit of its rolling policy and two hours; else `otherwise`."""
    policy = (step.params.get("DeploymentConfig") or {}).get("RollingUpdatePolicy") or {}
    limit = policy.get("MaximumExecutionTimeoutInSeconds")
    return timedelta(seconds=limit) + timedelta(hours=2) if limit else otherwise


def accepted_entry(change: Change, turn: Step | None) -> Entry | None:
    """The last journal entry of the update, if AWS accepted it or its answer was lost.

    None if it was not sent or was refused.
    """
    last = change.last_entry(turn, "intended", "done", "failed") if turn is not None else None
    return None if last is not None and last.was_rejected else last


def may_show_until(change: Change, now: datetime) -> datetime | None:
    """Until when the last update of the endpoint counts as made though AWS does not show it.

    None where AWS refused it, where the time is over, and for a plan without an update.
    """
    last = accepted_entry(change, change.plan.turn)
    return last.at + SHOWS if last is not None and now - last.at < SHOWS else None


def was_update_rolled_back(change: Change, turn: Step, endpoint: EndpointSight) -> bool:
    """Whether the update was accepted once, and the endpoint is back where it was.

    LastModifiedTime moved, and the call is known to have been accepted or there is a reason that was not there before
    the change. A quick refusal can look like "never left InService", so the mark is taken right before the call.
    """
    tried = change.last_entry(turn, "intended", "done", "failed")
    if tried is None or not _has_moved(change, endpoint):
        return False
    maybe = tried.status == "intended" or tried.result in (StepResult.RETRY, StepResult.UNANSWERED)
    return tried.status == "done" or (maybe and _has_new_reason(change, endpoint))


def unseen_update_wait(change: Change, turn: Step | None, endpoint: EndpointSight, now: datetime) -> Wait | None:
    """Wait while an update just sent may not show yet: no verdict and no order before that."""
    last = accepted_entry(change, turn)
    if (
        turn is None
        or last is None
        or now - last.at >= LAG
        or (_has_moved(change, endpoint) and _has_new_reason(change, endpoint))
    ):
        return None
    return Wait(last.at + LAG, f"{turn.operation} of {change.ref.name} was asked and does not show yet")


def _has_moved(change: Change, endpoint: EndpointSight) -> bool:
    return change.turn_mark is not None and endpoint.modified_at > change.turn_mark


def _has_new_reason(change: Change, endpoint: EndpointSight) -> bool:
    """Whether AWS gives a reason that it did not give before the change: one of a year ago may still stand there."""
    old = change.before.failure_reason if change.before else ""
    return endpoint.failure_reason not in ("", old)


REPLANS = 5
"""So often a plan is made again; a fleet that moves more than that is asked about another day."""


def approval_age_reason(change: Change, now: datetime) -> Reason | None:
    """Reason that the approval is too old, with the cause of the wait; None while good."""
    if now < change.expires_at:
        return None
    text = f"it waited {PATIENCE.days} days from its approval of {time_text(change.approved_at)}"
    return Reason(Code.EXPIRED, f"{text} and could not start: {change.outcome}")


def expiry_action(change: Change, now: datetime) -> Steer | None:
    """The end of a change whose approval became too old before the endpoint's own update was made; else None.

    Asked where AWS shows no update. What was written before it (alarms, autoscaling) is taken back.
    """
    late = approval_age_reason(change, now)
    if late is None or may_be_updating(change, now):
        return None
    if may_have_changed_autoscaling(change):
        return give_back_action(late.code, late.sentence, FailureClass.NONE)
    return Steer(late, Course.CLOSE, ChangeState.REFUSED)


def may_be_updating(change: Change, now: datetime) -> bool:
    """Whether the update may still show, where AWS shows none; of a plan without one, whether a step was made."""
    return may_have_written(change) if change.plan.turn is None else may_show_until(change, now) is not None


def unsettled_action(
    change: Change, live: LiveState, endpoint: EndpointSight, now: datetime, touched: bool
) -> NextAction | None:
    """Why the next write must not follow now; None when it may. `touched`: autoscaling was taken away already.

    An update that may still show is not asked again either: an endpoint with its autoscaling waits for it.
    """
    if change.plan.kind is PlanKind.DELETE:
        return None
    found = _find_obstacle(change, live, endpoint, now, touched)
    until = may_show_until(change, now)
    if found is None or until is None or touched:
        return found
    why = found.why if isinstance(found, Wait) else found.reason.sentence
    text = f"{why}; the update that was asked already may still show until {until:%H:%M} UTC, and is not asked again"
    return Wait(until, text)


def _find_obstacle(
    change: Change, live: LiveState, endpoint: EndpointSight, now: datetime, touched: bool
) -> Wait | Steer | Replan | None:
    """What of the endpoint differs from the plan, or an incident or a window that holds it."""
    held = _hold_action(change, live, touched) if live.hold is not None else None
    if held is not None:
        return held
    moved = _count_differences(change, endpoint)
    if touched:
        taken = _registration_action(change, live, now) if live.scaling is not None else None
        return give_back_action(Code.CHANGED_SINCE, moved, FailureClass.OUTSIDE) if moved else taken
    moved = moved or _autoscaling_differences(change, live)
    if not moved:
        return None
    plans = sum(1 for entry in change.journal if entry.step == JournalEvent.PLAN)
    if plans > REPLANS:
        text = f"{moved}; it was planned {plans} times and moved each time"
        return refuse_action(Code.CHANGED_SINCE, text, FailureClass.OUTSIDE)
    return Replan(Reason(Code.CHANGED_SINCE, moved))


def _registration_action(change: Change, live: LiveState, now: datetime) -> Steer | Wait | None:
    """A target that we deregistered and that is there: still listed for a moment, or the owner's anew."""
    theirs = targets_of_owner(change, live, now)
    if theirs:
        text = f"somebody registered autoscaling of {min(theirs)} again, which is left as it is"
        return close_rolled_back(Code.CHANGED_SINCE, text, FailureClass.OUTSIDE)
    listed = targets_registered_again(change, live)
    until = max(listed.values(), default=now) + GONE_AFTER
    return Wait(until, f"autoscaling of {min(listed)} is still listed after it was taken away") if listed else None


def _hold_action(change: Change, live: LiveState, touched: bool) -> Steer | Wait | None:
    """Wait, since nothing may begin now; a change that began in its window is finished, but not into an incident."""
    assert live.hold is not None
    reason = live.hold.reason
    if touched:
        return (
            give_back_action(reason.code, reason.sentence, FailureClass.NONE) if reason.code is Code.INCIDENT else None
        )
    return Wait(min(live.hold.until, change.expires_at), reason.sentence)


def _count_differences(change: Change, endpoint: EndpointSight) -> str:
    """How counts and weights differ from those of the plan; empty where they do not, or where the turn keeps them."""
    if (
        change.before is None
        or change.plan.turn is None
        or change.plan.kind is not PlanKind.CHANGE
        or change.plan.is_keeping_counts
    ):
        return ""
    planned = {v.name: (v.count, v.weight) for v in change.before.variants}
    live = {v.name: (v.desired_count, v.desired_weight) for v in endpoint.variants}
    if planned == live:
        return ""
    was, now = (", ".join(f"{n} {c} x weight {w:g}" for n, (c, w) in rows.items()) for rows in (planned, live))
    return f"the fleet moved since the plan: it was {was} and is {now}"


def _autoscaling_differences(change: Change, live: LiveState) -> str:
    """What of autoscaling is not as the plan would give it back, or is there where the plan adds its own; or empty."""
    added = added_targets(change)
    taken = [target.resource_id for target in live.scaling or () if target.resource_id in added]
    if taken:
        return f"somebody registered autoscaling of {taken[0]} since the plan"
    if change.before is None or not change.plan.clear:
        return ""
    edits = live.edits(change.plan.restore, change.before.scaling)
    return f"autoscaling was edited since the plan: {', '.join(edits)}" if edits else ""


def give_back_action(code: Code, text: str, failure: FailureClass) -> Steer:
    """Close the change as rolled back, with its autoscaling restored."""
    return close_rolled_back(code, f"{text}; autoscaling goes back as it was", failure)


def refuse_action(code: Code, text: str, failure: FailureClass) -> Steer:
    """Close the change as refused: the endpoint felt nothing yet."""
    return Steer(Reason(code, text), Course.CLOSE, ChangeState.REFUSED, failure)
