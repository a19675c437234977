"""The next action of a change, from its journal and the live state.

Level-triggered: each list of a plan is a goal, and the first step that AWS does not show yet is the next one. So it
does not matter how often, when, or after which crash this is asked. Law 2: InService is not success; law 3: what is
needed for the rollback goes last; law 4: every path ends new, old or handed over.

There are three courses: towards the new configuration and watching it, back to the old one, and closing. Right before
the first write that affects the endpoint, the facts that the plan was made from must still hold. Roll-back alarms warm
up for minutes, and a step may be tried for an hour. Meanwhile autoscaling and people move counts, an owner edits a
policy, the window closes, an incident begins.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from rightsizer.changes.reconcile.drift import (
    BUSY,
    additions_of_owner,
    busy_action,
    close_rolled_back,
    differences,
    foreign_configs,
    hand_over,
    is_given_back,
    is_reopened,
    leftover_configs,
    lost_action,
    may_have_changed_autoscaling,
    may_have_turned,
    old_config,
    targets_of_owner,
    undo_commands,
)
from rightsizer.changes.reconcile.steps import (
    approval_age_reason,
    attempt_step,
    expiry_action,
    first_action,
    may_be_updating,
    may_show_until,
    unseen_update_wait,
    unsettled_action,
    was_update_rolled_back,
)
from rightsizer.domain.change import Change, ChangeState, Course, FailureClass
from rightsizer.domain.live_state import EndpointSight, Gone, LiveState, ProofVerdict, VariantSight
from rightsizer.domain.next_action import Finish, NextAction, Steer, Wait
from rightsizer.domain.plan import PlanKind, Step, StepKind, region_option
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import decider_name
from rightsizer.domain.reason import Code, Reason, time_text

__all__ = [
    "approval_age_reason",
    "differences",
    "is_given_back",
    "leftover_configs",
    "may_be_updating",
    "may_have_changed_autoscaling",
    "may_have_turned",
    "may_show_until",
    "next_action",
    "rollback_action",
    "undo_commands",
    "was_update_rolled_back",
]

ALARMS_READY = timedelta(minutes=30)
EARLY = timedelta(minutes=15)
"""Until the first and the second look after a deployment that roll-back alarms watched."""


def next_action(change: Change, live: LiveState, now: datetime, switch: Switch) -> NextAction:
    """The next action of a planned, open change.

    Pure and total.
    """
    if switch.frozen and switch.hard:
        return Wait(now + timedelta(minutes=5), f"frozen hard by {decider_name(switch.by)}: no step at all is taken")
    endpoint = live.endpoint
    if change.course is not Course.CLOSE:
        outside = lost_action(change, endpoint)
        if outside is not None:
            return outside
    moving = isinstance(endpoint, EndpointSight) and (endpoint.status in BUSY or bool(endpoint.pending_config))
    if isinstance(endpoint, EndpointSight) and moving and not _is_abandoned(change):
        return busy_action(change, endpoint, now)
    if change.course is Course.CLOSE or isinstance(endpoint, Gone):
        return _close_action(change, live, now)
    if change.course is Course.BACK:
        return rollback_action(change, live, endpoint, now)
    if change.turned_at is None:
        return _forward_action(change, live, endpoint, now, switch)
    return _watch_action(change, live, endpoint, now)


def _is_abandoned(change: Change) -> bool:
    """Handed over: nothing is waited for any more, what can be put back is put back."""
    return change.course is Course.CLOSE and change.ending is ChangeState.HANDED_OVER


def _forward_action(
    change: Change, live: LiveState, endpoint: EndpointSight, now: datetime, switch: Switch
) -> NextAction:
    """Forward, before the new configuration has arrived."""
    plan = change.plan
    if _has_arrived(change, live, endpoint):
        text = f"{change.ref.name} runs what was asked{_other_counts_text(change, endpoint)}; now it has to serve"
        return Steer(Reason(Code.UNPROVEN, text), turned=True)
    if plan.turn is not None and endpoint.config_name == plan.new_config:
        return _wrong_configuration_action(change, endpoint)
    unseen = unseen_update_wait(change, plan.turn, endpoint, now)
    if unseen is not None:
        return unseen
    if plan.turn is not None and was_update_rolled_back(change, plan.turn, endpoint):
        text = endpoint.failure_reason or "AWS gave no reason"
        return close_rolled_back(Code.ROLLED_BACK, text, FailureClass.UNKNOWN)
    if change.asked_back_by:
        return close_rolled_back(
            Code.ROLLED_BACK, f"{decider_name(change.asked_back_by)} asked for the rollback", FailureClass.ASKED
        )
    late = expiry_action(change, now)
    if late is not None:
        return late
    if switch.frozen:
        if not may_have_changed_autoscaling(change):
            return Wait(now + timedelta(minutes=15), f"frozen by {decider_name(switch.by)}: no forward step is taken")
        return close_rolled_back(
            Code.FROZEN, "frozen between two steps; autoscaling goes back as it was", FailureClass.NONE
        )
    move = _prepare_action(change, live, endpoint, now)
    if move is not None:
        return move
    return attempt_step(change, plan.turn, now) if plan.turn is not None else _steer_to_update(change)


def _steer_to_update(change: Change) -> Steer:
    """Note the update of a change that deploys nothing: every step before it is done."""
    text = f"autoscaling of {change.ref.name} is as asked; now it has to serve"
    if change.plan.kind is PlanKind.DELETE:
        text = f"{change.ref.name} is marked for deletion; from now on it is watched"
    return Steer(Reason(Code.UNPROVEN, text), turned=True)


def _prepare_action(change: Change, live: LiveState, endpoint: EndpointSight, now: datetime) -> NextAction | None:
    """Everything before the turn, in its order: autoscaling is not taken away while alarms warm up."""
    plan = change.plan
    move = first_action(change, live, plan.prepare, now)
    if move is None and plan.alarms:
        move = _alarm_wait(change, live, now)
    move = move or unsettled_action(change, live, endpoint, now, may_have_changed_autoscaling(change))
    return move or first_action(change, live, (*plan.clear, *(plan.settle if plan.turn is None else ())), now)


def _has_arrived(change: Change, live_state: LiveState, endpoint: EndpointSight) -> bool:
    """Law 2: in service, with what was asked, nothing pending, each variant at its count.

    Where the deployment keeps the live counts, autoscaling may have moved them since the plan.
    """
    turn = change.plan.turn
    if turn is None or endpoint.status != "InService" or endpoint.pending_config or not live_state.has_effect_of(turn):
        return False
    live = {v.name: v for v in endpoint.variants}
    return all(
        (v := live.get(w.name)) is not None
        and v.current_count == v.desired_count
        and (change.plan.is_keeping_counts or v.desired_count == w.count or _is_owners_count(change, v, endpoint))
        for w in change.plan.after
    )


def _is_owners_count(change: Change, variant: VariantSight, endpoint: EndpointSight) -> bool:
    """Whether a count that was not asked is the owner's: they set it on the new configuration since it arrived.

    UpdateEndpoint without RetainAllVariantProperties brings the count of the configuration, so that another one that
    is running whole was set since.
    """
    return bool(change.plan.new_config) and (variant.desired_count >= 1 or endpoint.asynchronous)


def _other_counts_text(change: Change, endpoint: EndpointSight) -> str:
    """A clause about the counts that somebody set since the deployment arrived; empty where there are none."""
    asked = {v.name: v.count for v in change.plan.after}
    moved = [v for v in endpoint.variants if v.desired_count != asked.get(v.name, v.desired_count)]
    if not moved or change.plan.is_keeping_counts:
        return ""
    text = ", ".join(f"{v.name} has {v.desired_count} and {asked[v.name]} were asked" for v in moved)
    return f", with counts that somebody set since ({text})"


def _wrong_configuration_action(change: Change, endpoint: EndpointSight) -> NextAction:
    counts = ", ".join(f"{v.name} {v.current_count} of {v.desired_count}" for v in endpoint.variants)
    text = f"{change.ref.name} carries the new configuration, but not the counts that were asked: {counts}"
    return Steer(Reason(Code.CHANGED_SINCE, text), Course.BACK, failure=FailureClass.OUTSIDE)


def _alarm_wait(change: Change, live: LiveState, now: datetime) -> NextAction | None:
    """Roll-back alarms must be OK before the start."""
    states = {name: a.state for name, a in (live.alarms or {}).items() if name in change.plan.alarms}
    waiting = [name for name, state in states.items() if state != "OK"]
    if not waiting:
        return None
    put = {step.key for step in change.plan.prepare if step.kind is StepKind.PUT_ALARM}
    began = max((e.at for e in change.journal if e.step in put), default=change.created_at)
    if any(states[name] == "ALARM" for name in waiting) or now - began > ALARMS_READY:
        text = f"the roll-back alarm {waiting[0]} is {states[waiting[0]]} before the start, so it would protect nothing"
        return close_rolled_back(Code.ALARM_NOT_OK, text, FailureClass.ALARM)
    text = f"alarm {waiting[0]} is {states[waiting[0]]} since {time_text(began)}; it must be OK before the start, "
    return Wait(now + timedelta(minutes=2), f"{text}and is waited for until {began + ALARMS_READY:%H:%M}")


def _watch_action(change: Change, live: LiveState, endpoint: EndpointSight, now: datetime) -> NextAction:
    """Forward, after the new configuration has arrived: autoscaling, then proof."""
    if change.plan.new_config and endpoint.config_name != change.plan.new_config:
        text = f"somebody brought {change.ref.name} back to {endpoint.config_name} after the change"
        return close_rolled_back(Code.ROLLED_BACK, text, FailureClass.OUTSIDE)
    if change.state is not ChangeState.APPLIED:
        text = f"{change.ref.name} runs what was asked; it is not proven yet"
        if change.plan.settle:
            text = f"{change.ref.name} runs what was asked, with its autoscaling; it is not proven yet"
        if change.plan.kind is PlanKind.DELETE:
            text = f"{change.ref.name} is marked for deletion; nothing else was changed, and any request ends it"
        return first_action(change, live, change.plan.settle, now) or Steer(Reason(Code.UNPROVEN, text), applied=True)
    if change.asked_back_by:
        text = f"{decider_name(change.asked_back_by)} asked for the rollback"
        return Steer(Reason(Code.ROLLED_BACK, text), Course.BACK, failure=FailureClass.ASKED)
    verdict = live.verdict
    if verdict is None:
        return Wait(now + timedelta(hours=1), "nothing is known yet about the requests served")
    return _verdict_action(change, verdict, now)


def _verdict_action(change: Change, verdict: ProofVerdict, now: datetime) -> NextAction:
    """What follows from what was seen since the change arrived."""
    match verdict.judgement:
        case "bad":
            return Steer(verdict.reason, Course.BACK, failure=verdict.failure)
        case "proven" if change.plan.kind is PlanKind.DELETE:
            return Steer(verdict.reason, Course.CLOSE, ChangeState.HANDED_OVER, remaining=(_delete_command(change),))
        case "given-up" if change.plan.kind is PlanKind.DELETE:
            return Steer(verdict.reason, Course.CLOSE, ChangeState.ROLLED_BACK)
        case "proven" | "given-up" if change.plan.kind is PlanKind.SHADOW_TEST:
            return Steer(verdict.reason, Course.BACK, failure=verdict.failure)
        case "proven":
            return Steer(verdict.reason, Course.CLOSE, ChangeState.PROVEN)
        case "given-up":
            return Steer(verdict.reason, Course.CLOSE, ChangeState.APPLIED)
        case "not-yet":
            return Wait(_next_probation_look(change, now), verdict.reason.sentence)


def _delete_command(change: Change) -> str:
    """What the owner of an idle endpoint runs; the program has no permission for it."""
    return f"aws sagemaker delete-endpoint{region_option(change.ref.region)} --endpoint-name {change.ref.name}"


def _next_probation_look(change: Change, now: datetime) -> datetime:
    """Hourly in the first day, then every second day: a change costs at most 40 invocations.

    After a deployment the first two looks come sooner. Whether AWS publishes metrics of the new configuration while it
    deploys is not known: where it does not, no roll-back alarm could fire, and these looks give the first
    verdict.
    """
    since = now - (change.turned_at or now)
    if change.plan.new_config and change.plan.alarms and since < 2 * EARLY:
        return now + EARLY
    return now + (timedelta(hours=1) if since < timedelta(hours=24) else timedelta(hours=48))


def rollback_action(change: Change, live: LiveState, endpoint: EndpointSight, now: datetime) -> NextAction:
    """Towards the old configuration."""
    plan = change.plan
    if plan.back is None or (live.has_effect_of(plan.back) and not endpoint.pending_config):
        reason = change.reason or Reason(Code.ROLLED_BACK, f"{change.ref.name} is back on what it ran before")
        return Steer(reason, Course.CLOSE, ChangeState.ROLLED_BACK, change.failure, returned=True)
    unseen = unseen_update_wait(change, plan.back, endpoint, now)
    if unseen is not None:
        return unseen
    if was_update_rolled_back(change, plan.back, endpoint):
        text = f"the rollback was refused by its own deployment: {endpoint.failure_reason or 'AWS gave no reason'}"
        return hand_over(Code.WAY_BACK_FAILED, text, FailureClass.UNKNOWN, plan.back.command(change.ref.region))
    way = tuple(s for s in plan.prepare if s.subject == plan.back_config)
    back = _with_first_instances(plan.back, endpoint)
    return first_action(change, live, (*way, *plan.clear), now) or attempt_step(change, back, now)


def _with_first_instances(back: Step, endpoint: EndpointSight) -> Step:
    """The rollback, with the counts of its own configuration where nothing runs whose count could be kept."""
    if not back.params.get("RetainAllVariantProperties") or any(v.desired_count for v in endpoint.variants):
        return back
    return replace(back, params={**back.params, "RetainAllVariantProperties": False})


def _close_action(change: Change, live: LiveState, now: datetime) -> NextAction:
    """Put autoscaling right for what the endpoint carries now, take away what was temporary, and finish."""
    plan, endpoint = change.plan, live.endpoint
    ending = change.ending or ChangeState.HANDED_OVER
    carries_new = isinstance(endpoint, EndpointSight) and (
        endpoint.config_name == plan.new_config
        if plan.new_config
        else ending in (ChangeState.PROVEN, ChangeState.APPLIED) or _has_counts_handed_over(change, ending)
    )
    if ending in (ChangeState.ROLLED_BACK, ChangeState.REFUSED) and plan.new_config and carries_new:
        text = f"{change.ref.name} took the new configuration after all; it goes back to {old_config(change)}"
        return Steer(Reason(Code.ROLLED_BACK, text), Course.BACK, failure=change.failure)
    goals: list[Step] = []
    touched = (
        may_have_changed_autoscaling(change) and ending is not ChangeState.REFUSED
    )  # AWS refused what a refused one tried
    if isinstance(endpoint, EndpointSight) and touched and not _is_autoscaling_settled(change, endpoint, carries_new):
        goals += _missing_goals(
            change, live, now, plan.settle if carries_new or _has_failed_rollback(change, endpoint) else plan.restore
        )
    theirs = additions_of_owner(change, live) if goals and ending is ChangeState.ROLLED_BACK else ()
    if theirs:
        text = f"the autoscaling that was added carries {', '.join(theirs)} of somebody else by now, and is left"
        lines = tuple(step.command(change.ref.region) for step in goals)
        reason = Reason(Code.CHANGED_SINCE, text)
        return Steer(reason, Course.CLOSE, ChangeState.HANDED_OVER, FailureClass.OUTSIDE, remaining=lines)
    goals += plan.tidy
    open_goals = [g for g in goals if not (change.leaves_to_person(g) or change.leaves_to_person(live.resolve_step(g)))]
    move = first_action(change, live, open_goals, now)
    if move is not None:
        return move
    return Finish(ending, change.reason or Reason(Code.PROVEN, f"{change.ref.name} is {ending.value}"))


def _has_counts_handed_over(change: Change, ending: ChangeState) -> bool:
    """Whether counts that were set without a configuration stay with a person: their autoscaling is the new one."""
    stands = change.turned_at is not None and change.returned_at is None
    return ending is ChangeState.HANDED_OVER and change.plan.turn is not None and stands


def _is_autoscaling_settled(change: Change, endpoint: EndpointSight, carries_new: bool) -> bool:
    """Whether autoscaling was given back, and what it is now is the owner's: of this change, or of a release since.

    A change that was over may find that somebody else went back long ago: then this return changed nothing.
    """
    if not is_given_back(change):
        return False
    plan = change.plan
    theirs = is_reopened(change) and bool(plan.new_config) and all(e.step != _key_of(plan.back) for e in change.journal)
    return carries_new or theirs or bool(foreign_configs(change, endpoint))


def _has_failed_rollback(change: Change, endpoint: EndpointSight) -> bool:
    """Whether a return took autoscaling away and did not arrive: what it met is given back, not what was stored."""
    return change.met is not None and endpoint.config_name not in (old_config(change), change.plan.back_config)


def _missing_goals(change: Change, live: LiveState, now: datetime, goals: tuple[Step, ...]) -> tuple[Step, ...]:
    """The goals without scalable targets that the owner registered again since they were taken away."""
    theirs = targets_of_owner(change, live, now)
    alarms = StepKind.PUT_ALARM  # they point at policies, and there are others now
    return tuple(s for s in goals if s.subject not in theirs and not (theirs and s.kind is alarms))


def _key_of(step: Step | None) -> str:
    return step.key if step is not None else ""
