"""An update whose answer was lost may still show for an hour; what AWS refuses is tried again or given up."""

from datetime import timedelta

import pytest

from rightsizer.changes.reconcile.steps import ATTEMPTS, SHOWS, may_show_until
from rightsizer.domain.change import Change, ChangeState, FailureClass, StepResult
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding
from rightsizer.errors import PermissionMissingError, ReadError, WriteRefusedError
from tests.changes.account import NAME, OLD, OLD_TYPE
from tests.changes.memory import NIGHT, World, an_option, autoscaled, world

UPDATE, REGISTER = StepKind.UPDATE_ENDPOINT, StepKind.REGISTER_TARGET
MINUTE = timedelta(minutes=1)
SUFFERS = {
    "finding": Finding.UNDER_PROVISIONED,
    "reason": Reason(Code.UNDER_PROVISIONED, "under-provisioned: it waits"),
}


def asked(w: World, *, reached: bool = False) -> Change:
    """The change asked for its update once, and the answer was lost; `reached`: AWS acts on it."""
    if reached:
        w.account.loses = lambda step: step.kind is UPDATE
    else:
        w.refuse(UPDATE, ReadError("updating chat: Read timeout"))
    w.start()
    change = w.until(lambda change: any(entry.result is StepResult.UNANSWERED for entry in change.journal))
    w.heal()
    w.account.loses = lambda step: False
    return change


def updates(w: World) -> int:
    return len(w.account.writes(UPDATE))


def assert_withdrawn(w: World, ending: ChangeState) -> None:
    """Nothing was deployed, and a person was told the reason."""
    change, shown = w.change, w.shown()
    assert (change.state, updates(w), w.account.config_name) == (ending, 0, OLD)
    assert change.reason is not None
    assert change.reason.code is Code.NEWER_JUDGEMENT
    assert shown.state in (ProposalState.WITHDRAWN, ProposalState.ROLLED_BACK)
    assert "under-provisioned" in shown.outcome
    assert any("under-provisioned" in text for _, text in w.told)
    assert w.kept.holder_of(NAME) == ""


def test_after_a_freeze_a_lost_update_is_not_asked_again_against_a_newer_judgement() -> None:
    w = world()
    asked(w)
    w.freeze()
    w.judged(**SUFFERS)
    w.run((SHOWS + 10 * MINUTE).total_seconds() / 3600)
    w.thaw()
    w.run(1)
    assert_withdrawn(w, ChangeState.REFUSED)


@pytest.mark.parametrize("judge", [True, False])
def test_within_its_hour_a_lost_update_that_aws_shows_goes_on(judge: bool) -> None:
    w = world()
    asked(w, reached=True)
    if judge:
        w.judged(**SUFFERS)
    assert (w.run(12).state, updates(w)) == (ChangeState.PROVEN, 1), w.change.outcome


def test_within_its_hour_a_lost_update_that_aws_does_not_show_is_neither_given_up_nor_asked_again() -> None:
    w = world()
    at = asked(w).journal[-1].at
    w.judged(**SUFFERS)
    w.run(0.9)
    assert (w.change.is_closed, updates(w)) == (False, 0)
    assert f"may still show until {at + SHOWS:%H:%M} UTC, and is not asked again" in w.change.outcome
    w.run(0.3)
    assert_withdrawn(w, ChangeState.REFUSED)


def test_within_its_hour_a_lost_update_that_every_judgement_allows_is_asked_again() -> None:
    w = world()
    asked(w)
    assert (w.run(12).state, updates(w)) == (ChangeState.PROVEN, 1), w.change.outcome


def test_autoscaling_that_was_taken_away_is_not_kept_away_for_the_hour_of_a_lost_update() -> None:
    w = world(scaling=autoscaled())
    asked(w)
    w.judged(**SUFFERS)
    w.run(1 / 3)
    assert_withdrawn(w, ChangeState.ROLLED_BACK)
    assert [(target.minimum, target.maximum) for target in w.account.targets.values()] == [(1, 4)]


def test_after_its_hour_the_ground_is_compared_again_before_a_lost_update_is_asked_again() -> None:
    w = world()
    asked(w)
    w.freeze()
    w.run((SHOWS + 10 * MINUTE).total_seconds() / 3600)
    w.account.scale(3)
    w.thaw()
    w.run(0.5)
    assert (w.change.state, updates(w)) == (ChangeState.REFUSED, 0)
    assert "the fleet moved since the plan" in w.change.outcome


@pytest.mark.parametrize("code", ["InternalFailure", "ServiceUnavailable"])
def test_an_error_of_aws_itself_is_no_refusal_of_the_update(code: str) -> None:
    w = world()
    w.refuse(UPDATE, WriteRefusedError("updating chat", code, "We hit a snag"))
    w.start()
    change = w.until(lambda change: any(entry.status == "failed" for entry in change.journal))
    assert [entry.result for entry in change.journal if entry.status == "failed"] == [StepResult.UNANSWERED]
    assert may_show_until(change, w.now) is not None


QUOTA = (
    "The account-level service limit 'ml.g5.4xlarge for endpoint usage' is 3 Instances, with current utilization of 3 "
    "Instances. Please use AWS Service Quotas to request an increase for this quota."
)
PLAIN = an_option()
COUNT = an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 1))
BOUNDS = an_option(kind=OptionKind.AUTOSCALING, target=Target(OLD_TYPE, 2, minimum=1, maximum=2))


def scenario(option: Option) -> World:
    return world(option, count=3, scaling=autoscaled(1, 4) if option is BOUNDS else None)


def serving(w: World) -> tuple[object, ...]:
    account = w.account
    bounds = [(target.minimum, target.maximum) for target in account.targets.values()]
    return account.config_name, account.status, dict(account.counts), bounds, account.known_alarms


@pytest.mark.parametrize(
    ("option", "kind", "code", "text"),
    [
        (COUNT, StepKind.SET_CAPACITY, "ResourceLimitExceeded", QUOTA),
        (BOUNDS, REGISTER, "LimitExceededException", "too many targets"),
        (PLAIN, StepKind.CREATE_CONFIG, "ResourceLimitExceeded", "too many configurations"),
        (PLAIN, StepKind.CREATE_CONFIG, "ValidationException", "The weight of the variant is not valid"),
    ],
)
def test_what_aws_refuses_before_the_turn_leaves_everything_as_it_was_and_is_told(
    option: Option, kind: StepKind, code: str, text: str
) -> None:
    w = scenario(option)
    before = serving(w)
    w.refuse(kind, WriteRefusedError("writing", code, text))
    w.start()
    change = w.run(72)
    assert (change.state, w.shown().state) == (ChangeState.ROLLED_BACK, ProposalState.ROLLED_BACK), change.outcome
    assert serving(w) == before
    assert sum(entry.detail == kind.value for entry in change.journal) == 1, "it is asked once"
    assert (list(w.kept.open_changes()), change.remaining) == ([], ())
    (told,) = w.told
    assert text in told[1], "AWS's words name the quota and how to raise it"


@pytest.mark.parametrize(
    ("option", "kind", "code", "text"),
    [
        (COUNT, StepKind.SET_CAPACITY, "ValidationException", "Cannot update in-progress endpoint"),
        (BOUNDS, REGISTER, "ConcurrentUpdateException", "an update runs"),
    ],
)
def test_what_aws_refuses_for_a_moment_is_asked_again_and_proven(
    option: Option, kind: StepKind, code: str, text: str
) -> None:
    w = scenario(option)
    w.refuse(kind, WriteRefusedError("writing", code, text), 2)
    w.start()
    change = w.run(72)
    assert change.state is ChangeState.PROVEN, change.outcome
    assert sum(entry.detail == kind.value for entry in change.journal) == 3


@pytest.mark.parametrize("refused", [True, False], ids=["for good", "for want of a permission"])
def test_autoscaling_that_may_not_be_registered_again_is_handed_over_with_every_line_and_the_cause(
    refused: bool,
) -> None:
    w = world(scaling=autoscaled(1, 4, NIGHT))
    w.start()
    w.upto(UPDATE)
    missing = PermissionMissingError("application-autoscaling:RegisterScalableTarget", "registering")
    w.refuse(REGISTER, WriteRefusedError("registering", "LimitExceededException", "too many") if refused else missing)
    change = w.run(72)
    verbs = [line.split()[2] for line in change.remaining]
    assert change.state is ChangeState.HANDED_OVER
    assert verbs == ["register-scalable-target", "put-scaling-policy", "put-scheduled-action"]
    assert change.failure in (FailureClass.QUOTA, FailureClass.PERMISSION, FailureClass.UNKNOWN)
    assert any("AUTOSCALING IS MISSING" in text for _, text in w.told)
    assert not refused or "was refused: too many" in change.outcome
    assert w.account.known_alarms == {}


def schedule(name: str, when: str, **bounds: int) -> dict[str, object]:
    return {**NIGHT, "ScheduledActionName": name, "Schedule": when, "Timezone": "UTC", "ScalableTargetAction": bounds}


MORNING = (
    schedule("morning", "cron(10 9 ? * MON-FRI *)", MinCapacity=3, MaxCapacity=6),
    schedule("launch", "at(2026-11-02T09:12:00)", MaxCapacity=8),
    schedule("evening", "cron(30 19 * * ? *)", MinCapacity=1, MaxCapacity=4),
)
"""The first two are due while a change that begins at nine has taken autoscaling away."""


def registered(w: World) -> list[tuple[int, int]]:
    return [(target.minimum, target.maximum) for target in w.account.targets.values()]


@pytest.mark.parametrize("ending", ["success", "alarm"])
def test_actions_that_were_due_meanwhile_have_set_their_bounds_after_the_change(ending: str) -> None:
    w = world(scaling=autoscaled(1, 4, *MORNING))
    w.account.endings = [ending]
    w.start()
    change = w.run(7)
    names = {row["ScheduledActionName"] for target in w.account.targets.values() for row in target.scheduled}
    assert change.state is (ChangeState.PROVEN if ending == "success" else ChangeState.ROLLED_BACK)
    assert registered(w) == [(3, 8)]
    assert names == {"morning", "evening"}, "an action whose only time has passed is not put again"
    assert "launch of endpoint/chat/variant/AllTraffic was due on Mon 2 Nov 2026, 09:12 UTC" in change.outcome
    assert "bounds of 3 to 8 are registered, not 1 to 4" in change.outcome


def test_what_could_be_refused_for_ever_has_an_end() -> None:
    w = world()
    w.refuse(UPDATE, WriteRefusedError("updating", "ValidationException", "Cannot update in-progress endpoint"))
    w.start()
    change = w.run(72)
    assert change.state is ChangeState.ROLLED_BACK
    assert sum(entry.status == "intended" and entry.detail == UPDATE.value for entry in change.journal) == ATTEMPTS
