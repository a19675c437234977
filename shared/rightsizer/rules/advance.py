"""Given a change and what AWS shows right now, the next move.

Level-triggered: each list of a plan is a goal, and the first step that AWS does not show yet is the next one. So it
does not matter how often, when, or after which crash this is asked. Law 2: InService is not success; law 3: what is
needed for the way back goes last; law 4: every path ends new, old or handed over.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from rightsizer.model.change import Change, ChangeState, Course, FailureClass
from rightsizer.model.limits import Switch
from rightsizer.model.reason import Code, Reason
from rightsizer.model.sight import Do, EndpointSight, Finish, Gone, Move, Sight, Steer, Wait
from rightsizer.model.step import Step, StepKind

LOOKS_MIN = (2, 5, 10, 15, 20, 30, 45, 60)
"""Minutes until the next look while a deployment runs; events bring it forward."""
RETRY_MIN = (1, 3, 10, 20, 30)
"""Minutes until a step that failed for a passing reason is tried again."""
ATTEMPTS = 6
LAG = timedelta(minutes=3)
"""An accepted update may take this long to show (inferred)."""
SETTLES = timedelta(minutes=1)
"""Application Auto Scaling is eventually consistent."""
SLACK = timedelta(hours=2)
MAINTENANCE = timedelta(hours=24)
"""How long AWS's own maintenance (SystemUpdating) is waited for."""
ALARMS_READY = timedelta(minutes=30)
BUSY = frozenset({"Creating", "Updating", "SystemUpdating", "RollingBack"})
SERVING_WRITES = frozenset({StepKind.UPDATE_ENDPOINT, StepKind.SET_CAPACITY, StepKind.SET_COPIES})


def advance(change: Change, sight: Sight, now: datetime, switch: Switch) -> Move:
    """The next move of a planned, open change. Pure and total."""
    if switch.frozen and switch.hard:
        return Wait(now + timedelta(minutes=5), f"frozen hard by {switch.by or 'somebody'}: no step at all is taken")
    endpoint = sight.endpoint
    if change.course is not Course.CLOSE:
        lost = _lost(change, endpoint)
        if lost is not None:
            return lost
    if isinstance(endpoint, EndpointSight) and endpoint.status in BUSY and not _abandoned(change):
        return _busy(change, endpoint, now)
    if change.course is Course.CLOSE or isinstance(endpoint, Gone):
        return _close(change, sight, now)
    if change.course is Course.BACK:
        return _back(change, sight, endpoint, now)
    if change.turned_at is None:
        return _towards(change, sight, endpoint, now, switch)
    return _watch(change, sight, endpoint, now)


def _abandoned(change: Change) -> bool:
    """Handed over: nothing is waited for any more, what can be put back is put back."""
    return change.course is Course.CLOSE and change.ending is ChangeState.HANDED_OVER


def _lost(change: Change, endpoint: EndpointSight | Gone) -> Steer | None:
    """Whether the endpoint is out of our hands."""
    if isinstance(endpoint, Gone) or endpoint.status == "Deleting":
        return _hand_over(Code.VANISHED, f"endpoint {change.ref.name} was deleted by somebody", FailureClass.OUTSIDE)
    status, back = endpoint.status, change.plan.back
    if status == "Failed":
        text = (
            f"endpoint {change.ref.name} is Failed ({endpoint.failure_reason or 'no reason given'}); AWS allows only "
        )
        commands = (
            f"aws sagemaker delete-endpoint --endpoint-name {change.ref.name}",
            f"aws sagemaker create-endpoint --endpoint-name {change.ref.name} "
            f"--endpoint-config-name {_old_config(change)}",
        )
        return _hand_over(Code.UNKNOWN_FAILURE, text + "its deletion and re-creation", FailureClass.UNKNOWN, *commands)
    if status == "UpdateRollbackFailed":
        text = f"the rolling deployment of {change.ref.name} failed, and so did its roll-back; it serves with a mix"
        return _hand_over(Code.UNKNOWN_FAILURE, text, FailureClass.UNKNOWN, *((back.command,) if back else ()))
    if status not in BUSY and status != "InService":
        text = f"endpoint {change.ref.name} is {status}, which this program does not repair"
        return _hand_over(Code.NOT_IN_SERVICE, text, FailureClass.UNKNOWN)
    ours = {"", _old_config(change), change.plan.new_config, change.plan.back_config}
    foreign = {endpoint.config_name, endpoint.pending_config} - ours
    if foreign:
        text = f"somebody deployed configuration {min(foreign)} to {change.ref.name} during the change"
        return _hand_over(Code.CHANGED_SINCE, text, FailureClass.OUTSIDE)
    return None


def _hand_over(code: Code, text: str, failure: FailureClass, *commands: str) -> Steer:
    return Steer(Reason(code, text), Course.CLOSE, ChangeState.HANDED_OVER, failure, remaining=commands)


def _busy(change: Change, endpoint: EndpointSight, now: datetime) -> Move:
    began = max((e.at for e in change.journal if e.status in ("intended", "done")), default=change.created_at)
    limit = MAINTENANCE if endpoint.status == "SystemUpdating" else _deployment_limit(change)
    if now - began > limit:
        hours = (now - began).total_seconds() / 3600
        text = f"endpoint {change.ref.name} is {endpoint.status} for {hours:.1f} h, longer than any deployment may take"
        back = change.plan.back
        return _hand_over(Code.TIMEOUT, text, FailureClass.TIMEOUT, *((back.command,) if back else ()))
    return Wait(_next_look(change, now), f"endpoint {change.ref.name} is {endpoint.status}")


def _deployment_limit(change: Change) -> timedelta:
    return timedelta(seconds=change.plan.deployment_limit_s) + SLACK


def _next_look(change: Change, now: datetime) -> datetime:
    return now + timedelta(minutes=LOOKS_MIN[min(change.looks, len(LOOKS_MIN) - 1)])


def _towards(change: Change, sight: Sight, endpoint: EndpointSight, now: datetime, switch: Switch) -> Move:
    """Forward, before the new configuration has arrived."""
    plan = change.plan
    if _arrived(change, sight, endpoint):
        return Steer(Reason(Code.UNPROVEN, f"{change.ref.name} runs what was asked; now it has to serve"), turned=True)
    if plan.turn is not None and endpoint.config_name == plan.new_config:
        return _misfit(change, endpoint)
    if plan.turn is not None and _rolled_back(change, plan.turn, endpoint):
        text = endpoint.failure_reason or "AWS gave no reason"
        return Steer(Reason(Code.ROLLED_BACK, text), Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.UNKNOWN)
    if change.asked_back_by:
        return _undone(Code.ROLLED_BACK, f"{change.asked_back_by} asked for the way back", FailureClass.ASKED)
    if switch.frozen:
        if not _touched_scaling(change):
            return Wait(now + timedelta(minutes=15), f"frozen by {switch.by or 'somebody'}: no forward step is taken")
        return _undone(Code.FROZEN, "frozen between two steps; autoscaling goes back as it was", FailureClass.NONE)
    forward = (*plan.prepare, *plan.clear, *(plan.settle if plan.turn is None else ()))
    move = _first(change, sight, forward, now)
    if move is not None:
        return move
    if plan.turn is None:
        return Steer(
            Reason(Code.UNPROVEN, f"autoscaling of {change.ref.name} is as asked; now it has to serve"), turned=True
        )
    return _alarms_ready(change, sight, now) or _turn(change, plan.turn, now)


def _undone(code: Code, text: str, failure: FailureClass) -> Steer:
    return Steer(Reason(code, text), Course.CLOSE, ChangeState.ROLLED_BACK, failure)


def _arrived(change: Change, sight: Sight, endpoint: EndpointSight) -> bool:
    """Law 2: in service, with what was asked, nothing pending, each variant at its count."""
    turn = change.plan.turn
    if turn is None or endpoint.status != "InService" or endpoint.pending_config or not sight.shows(turn):
        return False
    live = {v.name: v for v in endpoint.variants}
    return all(
        (v := live.get(w.name)) is not None and v.current_count == v.desired_count == w.count for w in change.plan.after
    )


def _misfit(change: Change, endpoint: EndpointSight) -> Move:
    counts = ", ".join(f"{v.name} {v.current_count} of {v.desired_count}" for v in endpoint.variants)
    text = f"{change.ref.name} carries the new configuration, but not the counts that were asked: {counts}"
    return Steer(Reason(Code.CHANGED_SINCE, text), Course.BACK, failure=FailureClass.OUTSIDE)


def _rolled_back(change: Change, turn: Step, endpoint: EndpointSight) -> bool:
    """Whether the update was accepted once, and the endpoint is back where it was.

    LastModifiedTime moved and there is a reason, or the call is known to have been accepted. A quick refusal can look
    like "never left InService", so the mark is taken right before the call.
    """
    tried = change.last(turn, "intended", "done", "failed")
    if tried is None or change.turn_mark is None or endpoint.modified_at <= change.turn_mark:
        return False
    return tried.status == "done" or (tried.status == "intended" and bool(endpoint.failure_reason))


def _turn(change: Change, turn: Step, now: datetime) -> Move:
    """Ask for the turn, unless it was asked a moment ago and may just not show yet."""
    last = change.last(turn, "intended", "done", "failed")
    if last is not None and last.status == "done" and now - last.at < LAG:
        return Wait(last.at + LAG, f"{turn.operation} of {change.ref.name} was accepted and does not show yet")
    return _attempt(change, turn, now)


def _alarms_ready(change: Change, sight: Sight, now: datetime) -> Move | None:
    """Roll-back alarms must be OK before the start."""
    states = {name: a.state for name, a in (sight.alarms or {}).items() if name in change.plan.alarms}
    waiting = [name for name, state in states.items() if state != "OK"]
    if not waiting:
        return None
    began = max((e.at for e in change.journal if e.step.startswith("PutMetricAlarm")), default=change.created_at)
    if any(states[name] == "ALARM" for name in waiting) or now - began > ALARMS_READY:
        text = f"the roll-back alarm {waiting[0]} is {states[waiting[0]]} before the start, so it would protect nothing"
        return _undone(Code.ALARM_NOT_OK, text, FailureClass.ALARM)
    return Wait(
        now + timedelta(minutes=2), f"alarm {waiting[0]} is {states[waiting[0]]}; it must be OK before the start"
    )


def _watch(change: Change, sight: Sight, endpoint: EndpointSight, now: datetime) -> Move:
    """Forward, after the new configuration has arrived: autoscaling, then proof."""
    if change.plan.new_config and endpoint.config_name != change.plan.new_config:
        text = f"somebody brought {change.ref.name} back to {endpoint.config_name} after the change"
        return Steer(Reason(Code.ROLLED_BACK, text), Course.CLOSE, ChangeState.ROLLED_BACK, FailureClass.OUTSIDE)
    if change.state is not ChangeState.APPLIED:
        text = f"{change.ref.name} runs what was asked, autoscaling included; it is not proven yet"
        return _first(change, sight, change.plan.settle, now) or Steer(Reason(Code.UNPROVEN, text), applied=True)
    if change.asked_back_by:
        text = f"{change.asked_back_by} asked for the way back"
        return Steer(Reason(Code.ROLLED_BACK, text), Course.BACK, failure=FailureClass.ASKED)
    verdict = sight.verdict
    if verdict is None:
        return Wait(now + timedelta(hours=1), "nothing is known yet about the requests served")
    match verdict.judgement:
        case "bad":
            return Steer(verdict.reason, Course.BACK, failure=verdict.failure)
        case "proven":
            return Steer(verdict.reason, Course.CLOSE, ChangeState.PROVEN)
        case "given-up":
            return Steer(verdict.reason, Course.CLOSE, ChangeState.APPLIED)
        case "not-yet":
            return Wait(_probation(change, now), verdict.reason.sentence)


def _probation(change: Change, now: datetime) -> datetime:
    """Hourly in the first day, then every second day: a change costs at most 40 invocations."""
    since = now - (change.turned_at or now)
    return now + (timedelta(hours=1) if since < timedelta(hours=24) else timedelta(hours=48))


def _back(change: Change, sight: Sight, endpoint: EndpointSight, now: datetime) -> Move:
    """Towards the old configuration."""
    plan = change.plan
    if plan.back is None or (sight.shows(plan.back) and not endpoint.pending_config):
        reason = change.reason or Reason(Code.ROLLED_BACK, f"{change.ref.name} is back on what it ran before")
        return Steer(reason, Course.CLOSE, ChangeState.ROLLED_BACK, change.failure, returned=True)
    if _rolled_back(change, plan.back, endpoint):
        text = f"the way back was refused by its own deployment: {endpoint.failure_reason or 'AWS gave no reason'}"
        return _hand_over(Code.UNKNOWN_FAILURE, text, FailureClass.UNKNOWN, plan.back.command)
    return _first(change, sight, plan.clear, now) or _turn(change, plan.back, now)


def _close(change: Change, sight: Sight, now: datetime) -> Move:
    """Put autoscaling right for what the endpoint carries now, take away what was temporary, and finish."""
    plan, endpoint = change.plan, sight.endpoint
    ending = change.ending or ChangeState.HANDED_OVER
    carries_new = isinstance(endpoint, EndpointSight) and (
        endpoint.config_name == plan.new_config if plan.new_config else ending is not ChangeState.ROLLED_BACK
    )
    if ending in (ChangeState.ROLLED_BACK, ChangeState.REFUSED) and plan.new_config and carries_new:
        text = f"{change.ref.name} took the new configuration after all; it goes back to {_old_config(change)}"
        return Steer(Reason(Code.ROLLED_BACK, text), Course.BACK, failure=change.failure)
    goals: list[Step] = []
    settled = change.state is ChangeState.APPLIED and carries_new
    if isinstance(endpoint, EndpointSight) and _touched_scaling(change) and not settled:
        goals += plan.settle if carries_new else plan.restore
    goals += plan.tidy
    open_goals = [g for g in goals if sight.concrete(g).command not in change.remaining]
    move = _first(change, sight, open_goals, now)
    if move is not None:
        return move
    return Finish(ending, change.reason or Reason(Code.PROVEN, f"{change.ref.name} is {ending.value}"))


def _touched_scaling(change: Change) -> bool:
    """Whether we may have taken anything from the customer's autoscaling."""
    ours = {s.key for s in (*change.plan.clear, *change.plan.settle)}
    return any(e.step in ours for e in change.journal)


def _first(change: Change, sight: Sight, goals: Iterable[Step], now: datetime) -> Move | None:
    """The first goal that AWS does not show yet, as a move; None when all are shown."""
    for step in goals:
        if not sight.shows(step):
            return _attempt(change, sight.concrete(step), now, step.subject in sight.configs_differ)
    return None


def _attempt(change: Change, step: Step, now: datetime, config_differs: bool = False) -> Move:
    """Do a step, wait before it is tried again, or give it up."""
    tried, last = change.attempts(step), change.last(step, "done", "failed")
    if step.kind is StepKind.CREATE_CONFIG and config_differs:
        return _give_up(change, step, f"refused:unknown:a configuration {step.subject} with other content exists")
    if last is not None and last.status == "done" and timedelta(0) <= now - last.at < SETTLES:
        return Wait(last.at + SETTLES, f"{step.key} was accepted and does not show yet")
    if last is None or last.status == "done":
        done = sum(1 for e in change.journal if e.step == step.key and e.status == "done")
        return (
            Do(step) if done < ATTEMPTS and tried < ATTEMPTS else _give_up(change, step, "again:unknown:it never shows")
        )
    if last.detail.startswith("refused") or tried >= ATTEMPTS:
        return _give_up(change, step, last.detail)
    due = last.at + timedelta(minutes=RETRY_MIN[min(tried, len(RETRY_MIN)) - 1])
    return Do(step) if now >= due else Wait(due, f"{step.key} failed for now ({last.detail}); it is tried again")


def _give_up(change: Change, step: Step, detail: str) -> Move:
    """A step that AWS refuses for good. Before the turn nothing is lost; after it a person has to help."""
    _, failure, text = (*detail.split(":", 2), "", "")[:3]
    kind = FailureClass(failure) if failure in set(FailureClass) else FailureClass.UNKNOWN
    reason = Reason(Code.REFUSED_BY_AWS, f"{step.key} was refused: {text or detail}")
    forward = change.course is Course.FORWARD and change.turned_at is None
    if forward:
        return Steer(reason, Course.CLOSE, ChangeState.ROLLED_BACK, kind)
    tidying = step.kind is StepKind.DELETE_ALARMS and change.ending is not None
    ending = change.ending if tidying else ChangeState.HANDED_OVER
    return Steer(reason, Course.CLOSE, ending, kind, remaining=(step.command,))


def _old_config(change: Change) -> str:
    return change.before.config_name if change.before else ""
