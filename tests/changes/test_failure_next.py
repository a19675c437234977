"""What follows a failure: the class it is remembered by, another option, the pools, a later try, or the same bare."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.changes.failure import (
    Refusal,
    drop_metrics_config,
    failure_of_code,
    failure_to_remember,
    is_given_up,
    is_unanswered,
    next_try,
    retry_chosen_type,
    with_failure_class,
)
from rightsizer.domain.change import (
    Change,
    ChangeState,
    Course,
    Entry,
    FailureClass,
    JournalEvent,
    StepResult,
    read_failure,
)
from rightsizer.domain.history import PastEnd
from rightsizer.domain.next_action import Steer
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.plan import Before, Plan, Step, StepKind, VariantCount
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.errors import ReadError, RightsizerError, WriteRefusedError
from tests import samples

NOW = datetime(2026, 11, 2, 10, tzinfo=UTC)
OLD, NEW, OTHER = "ml.g5.4xlarge", "ml.g5.xlarge", "ml.g5.2xlarge"
CHOSEN = samples.option(target=Target(NEW, 1))
STAND_IN = samples.option(target=Target(OTHER, 2), saving_usd_per_month=Decimal(321), by_itself=True)
RAN = Before("old", NOW, "", (VariantCount("v", OLD, 1, 1.0),))


def lacking(**changes: Any) -> Change:
    """A change that was rolled back since its type had no capacity."""
    rows: dict[str, Any] = {
        "option": CHOSEN,
        "before": RAN,
        "failure": FailureClass.CAPACITY,
        "state": ChangeState.RETURNING,
        "course": Course.CLOSE,
        "ending": ChangeState.ROLLED_BACK,
        "plan": Plan(new_config="new"),
        "journal": (Entry(NOW, "create_config new", "done"),),
        "turn_mark": NOW,
        "lease_until": NOW,
        "reason": Reason(Code.ROLLED_BACK, "no capacity"),
        "looks": 7,
    }
    return samples.change(NOW, **(rows | changes))


def again(change: Change, *ranking: Option) -> Change | None:
    return next_try(change, ChangeState.ROLLED_BACK, NOW, ranking)


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException"])
def test_a_missing_permission_is_asked_again_since_somebody_may_grant_it(code: str) -> None:
    assert failure_of_code(code, "") == Refusal(FailureClass.PERMISSION, True)
    said = "User: x is not authorized to perform: kms:CreateGrant"
    assert failure_of_code("ValidationException", said) == Refusal(FailureClass.PERMISSION, True)


def test_an_error_of_aws_itself_has_no_class_and_leaves_open_what_was_done() -> None:
    assert failure_of_code("InternalFailure", "") == Refusal(FailureClass.UNKNOWN, True)
    assert failure_of_code("ConcurrentUpdateException", "") == Refusal(FailureClass.UNKNOWN, True)
    assert is_unanswered("InternalFailure")
    assert not is_unanswered("ConcurrentUpdateException"), "a refusal: nothing was done"


def test_a_move_that_ends_by_awss_text_gets_the_class_of_its_words() -> None:
    reason = Reason(Code.ROLLED_BACK, "Unable to provision requested ML compute capacity")
    move = Steer(reason, ending=ChangeState.ROLLED_BACK, failure=FailureClass.UNKNOWN)
    assert with_failure_class(move) == replace(move, failure=FailureClass.CAPACITY)
    lost = replace(move, reason=replace(reason, code=Code.WAY_BACK_FAILED))
    said = "capacity: Unable to provision requested ML compute capacity"
    assert with_failure_class(lost) == Steer(
        Reason(Code.WAY_BACK_FAILED, said), ending=ChangeState.ROLLED_BACK, failure=FailureClass.CAPACITY
    )


def test_a_move_that_has_its_class_or_is_our_own_keeps_it() -> None:
    reason = Reason(Code.ROLLED_BACK, "Unable to provision requested ML compute capacity")
    for move in (
        Steer(reason, failure=FailureClass.ALARM),
        Steer(replace(reason, code=Code.FROZEN), failure=FailureClass.UNKNOWN),
    ):
        assert with_failure_class(move) == move


@pytest.mark.parametrize(
    ("ended", "state", "failure", "kept"),
    [
        (PastEnd.TESTED, ChangeState.HANDED_OVER, FailureClass.CAPACITY, FailureClass.UNKNOWN),
        (PastEnd.TESTED, ChangeState.HANDED_OVER, FailureClass.ERRORS, FailureClass.ERRORS),
        (PastEnd.TESTED, ChangeState.HANDED_OVER, FailureClass.MEMORY, FailureClass.MEMORY),
        (PastEnd.TESTED, ChangeState.ROLLED_BACK, FailureClass.CAPACITY, FailureClass.CAPACITY),
        (PastEnd.ROLLED_BACK, ChangeState.HANDED_OVER, FailureClass.CAPACITY, FailureClass.CAPACITY),
    ],
)
def test_what_failed_while_a_test_went_back_is_not_held_against_the_type(
    ended: PastEnd, state: ChangeState, failure: FailureClass, kept: FailureClass
) -> None:
    assert failure_to_remember(lacking(state=state, failure=failure), ended) == kept.value


@pytest.mark.parametrize("failure", [FailureClass.NONE, FailureClass.OUTSIDE])
def test_a_change_that_went_back_before_it_served_for_nothing_of_its_own_is_given_up(failure: FailureClass) -> None:
    gone = lacking(state=ChangeState.ROLLED_BACK, failure=failure, reason=None)
    assert is_given_up(gone)
    assert not is_given_up(replace(gone, turned_at=NOW)), "its type served"
    assert not is_given_up(replace(gone, state=ChangeState.HANDED_OVER))
    assert not is_given_up(replace(gone, failure=FailureClass.CAPACITY)), "which its type did"


def test_an_alarm_that_was_not_ok_before_the_start_teaches_nothing_whatever_the_class() -> None:
    unready = lacking(state=ChangeState.ROLLED_BACK, failure=FailureClass.ALARM)
    assert not is_given_up(unready)
    assert is_given_up(replace(unready, reason=Reason(Code.ALARM_NOT_OK, "in ALARM")))


def test_the_next_try_starts_from_nothing_and_keeps_what_was_done_under_its_number() -> None:
    change = lacking()
    due = NOW + timedelta(hours=6)
    said = (
        "try 1 ended for want of capacity; the next is on Mon 2 Nov 2026, 16:00 UTC, "
        "from the pools ml.g5.xlarge and ml.g5.4xlarge"
    )
    pools = replace(CHOSEN, kind=OptionKind.INSTANCE_POOLS, target=replace(CHOSEN.target, pools=(NEW, OLD)))
    assert again(change) == replace(
        change,
        option=pools,
        before=None,
        plan=Plan(),
        state=ChangeState.PLANNED,
        course=Course.FORWARD,
        ending=None,
        journal=(
            Entry(NOW, "try 1: create_config new", "done"),
            Entry(NOW, JournalEvent.AGAIN, "noted", said),
        ),
        next_due=due,
        not_before=due,
        lease_until=None,
        turn_mark=None,
        failure=FailureClass.NONE,
        reason=None,
        outcome=said,
        looks=0,
        tries=1,
    )


def test_the_second_wait_is_a_day_and_there_is_no_fourth_try() -> None:
    second = again(lacking(tries=1))
    assert second is not None
    assert (second.tries, second.next_due) == (2, NOW + timedelta(days=1))
    assert again(lacking(tries=2)) is None


def test_another_type_is_tried_after_an_hour_with_its_own_saving() -> None:
    found = again(lacking(), CHOSEN, STAND_IN)
    assert found is not None
    assert (found.option, found.saving_usd_per_month) == (STAND_IN, Decimal(321))
    assert found.not_before == found.next_due == NOW + timedelta(hours=1)
    assert found.outcome == (
        "try 1 ended for want of capacity; the next is on Mon 2 Nov 2026, 11:00 UTC, with the next option, 2 x"
        " ml.g5.2xlarge"
    )
    alone = again(lacking(saving_usd_per_month=Decimal(7)))
    assert alone is not None
    assert alone.saving_usd_per_month == Decimal(7), "the chosen type keeps what was promised"


@pytest.mark.parametrize(
    "over",
    [
        {"failure": FailureClass.HEALTH_CHECK},
        {"before": None},
        {"turned_at": NOW},
        {"asked_back_by": "a person"},
        {"remaining": ("aws sagemaker",)},
    ],
)
def test_only_a_rollback_for_want_of_capacity_that_nobody_asked_for_is_tried_again(over: dict[str, Any]) -> None:
    assert again(lacking(**over), CHOSEN, STAND_IN) is None
    assert next_try(lacking(), ChangeState.HANDED_OVER, NOW, (CHOSEN, STAND_IN)) is None


@pytest.mark.parametrize(
    "unfit",
    [
        replace(STAND_IN, by_itself=False),
        replace(STAND_IN, in_place=False),
        replace(STAND_IN, kind=OptionKind.INSTANCE_POOLS),
        replace(STAND_IN, target=Target(NEW, 2)),
        replace(STAND_IN, target=Target(OLD, 2)),
    ],
    ids=["not by itself", "another endpoint", "another kind", "the type that lacked", "the type that runs"],
)
def test_an_option_that_may_not_stand_in_is_passed_over(unfit: Option) -> None:
    found = again(lacking(), CHOSEN, unfit)
    assert found is not None
    assert found.option.kind is OptionKind.INSTANCE_POOLS
    passed = again(lacking(), CHOSEN, unfit, STAND_IN)
    assert passed is not None
    assert passed.option == STAND_IN


def test_only_what_ranks_behind_the_type_that_lacked_may_stand_in() -> None:
    for ranking in ((STAND_IN, CHOSEN), (STAND_IN,)):
        found = again(lacking(), *ranking)
        assert found is not None
        assert found.option.kind is OptionKind.INSTANCE_POOLS
    pooled = replace(CHOSEN, kind=OptionKind.INSTANCE_POOLS)
    found = again(lacking(option=pooled), CHOSEN, STAND_IN)
    assert found is not None
    assert found.option == pooled, "the pools were tried already"


@pytest.mark.parametrize(
    ("option", "ran"),
    [
        (CHOSEN, (VariantCount("v", OLD, 1, 1.0), VariantCount("w", OLD, 1, 1.0))),
        (replace(CHOSEN, target=Target(NEW, 1, pools=(NEW, OTHER))), RAN.variants),
        (replace(CHOSEN, kind=OptionKind.SCALE_TO_ZERO), RAN.variants),
        (CHOSEN, (VariantCount("v", "", 1, 1.0),)),
        (CHOSEN, (VariantCount("v", OLD, 2, 1.0),)),
        (CHOSEN, (VariantCount("v", NEW, 1, 1.0),)),
    ],
    ids=["two variants", "pools", "another kind", "serverless", "another count", "the same type"],
)
def test_where_the_old_type_cannot_be_a_second_pool_the_same_is_tried_later(
    option: Option, ran: tuple[VariantCount, ...]
) -> None:
    found = again(lacking(option=option, before=replace(RAN, variants=ran)))
    assert found is not None
    assert found.option == option
    assert found.outcome == "try 1 ended for want of capacity; the next is on Mon 2 Nov 2026, 16:00 UTC"


NO_QUOTA, NOT_SOLD = Reason(Code.NO_QUOTA, "the quota is 0"), Reason(Code.NOT_SOLD, "not sold here")


@pytest.mark.parametrize(("tries", "hours"), [(1, 6), (2, 24), (3, 24)])
def test_a_stand_in_that_cannot_be_had_gives_way_to_the_chosen_type(tries: int, hours: int) -> None:
    change = lacking(option=STAND_IN, tries=tries, saving_usd_per_month=Decimal(321))
    due = NOW + timedelta(hours=hours)
    said = f"the quota is 0; ml.g5.xlarge is tried again on {time_text(due)}"
    assert retry_chosen_type(change, CHOSEN, [NO_QUOTA, NOT_SOLD], NOW) == replace(
        change,
        option=CHOSEN,
        saving_usd_per_month=CHOSEN.saving_usd_per_month,
        journal=(*change.journal, Entry(NOW, JournalEvent.AGAIN, "noted", said)),
        next_due=due,
        not_before=due,
        lease_until=None,
        outcome=said,
    )


def test_without_a_stand_in_or_for_another_refusal_nothing_is_planned_around() -> None:
    change = lacking(option=STAND_IN, tries=1)
    assert retry_chosen_type(replace(change, tries=0), CHOSEN, [NO_QUOTA], NOW) is None
    assert retry_chosen_type(replace(change, option=CHOSEN), CHOSEN, [NO_QUOTA], NOW) is None
    assert retry_chosen_type(change, None, [NO_QUOTA], NOW) is None
    assert retry_chosen_type(change, CHOSEN, [NO_QUOTA, Reason(Code.FROZEN, "frozen")], NOW) is None
    assert retry_chosen_type(change, CHOSEN, [NOT_SOLD], NOW) is not None


OFF = {"EnableEnhancedMetrics": False, "EnableDetailedObservability": False}
STEP = Step(StepKind.CREATE_CONFIG, "new", {"EndpointConfigName": "new", "MetricsConfig": OFF})
ALARM = Step(StepKind.PUT_ALARM, "a", {})
REFUSED = WriteRefusedError("create_config", "ValidationException", 'Unknown parameter "metricsconfig"')


def test_where_metrics_config_is_refused_and_all_off_the_configuration_is_made_without_it() -> None:
    change = lacking(plan=Plan(prepare=(ALARM, STEP), new_config="new"))
    made, detail = drop_metrics_config(change, STEP, REFUSED)
    bare = replace(STEP, params={"EndpointConfigName": "new"})
    assert made == replace(change, plan=replace(change.plan, prepare=(ALARM, bare)))
    said = f"MetricsConfig is refused here, so it is left out: {REFUSED}"
    assert read_failure(detail) == (StepResult.RETRY, FailureClass.UNKNOWN, said)


@pytest.mark.parametrize("field", ["EnableDetailedObservability", "EnableEnhancedMetrics", "MetricsConfig"])
def test_each_field_of_it_may_be_the_one_that_aws_names(field: str) -> None:
    refused = WriteRefusedError("create_config", "Validation", f"Unknown parameter {field}")
    assert drop_metrics_config(lacking(plan=Plan(prepare=(STEP,))), STEP, refused)[1]


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (STEP, WriteRefusedError("create_config", "ValidationException", "The role is not valid")),
        (STEP, WriteRefusedError("create_config", "AccessDeniedException", "MetricsConfig")),
        (STEP, ReadError("MetricsConfig: read timeout")),
        (replace(STEP, kind=StepKind.UPDATE_ENDPOINT), REFUSED),
        (replace(STEP, params={"EndpointConfigName": "new"}), REFUSED),
        (replace(STEP, params={"MetricsConfig": OFF | {"EnableEnhancedMetrics": True}}), REFUSED),
    ],
    ids=["another field", "another code", "no refusal", "another step", "without it", "the owner's, switched on"],
)
def test_any_other_refusal_leaves_the_change_as_it_is(step: Step, error: RightsizerError) -> None:
    change = lacking(plan=Plan(prepare=(step,)))
    assert drop_metrics_config(change, step, error) == (change, "")
