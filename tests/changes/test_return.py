"""The way back: as large as the load needs, beside what others did since, and handed over where it fails."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.changes.reconcile import undo_commands
from rightsizer.domain.change import Change, ChangeState, FailureClass
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code
from rightsizer.errors import InputError, PermissionMissingError, WriteRefusedError
from rightsizer.flows.orders import Orders
from tests.changes.account import NAME, NEW_TYPE, OLD, OLD_TYPE, WHO, Load
from tests.changes.memory import World, an_option, autoscaled, world

UPDATE = StepKind.UPDATE_ENDPOINT


def arrived(w: World, hours: float = 0.5) -> World:
    """The change arrives, and so many hours pass."""
    w.start()
    w.until(lambda change: change.turned_at)
    w.run(hours)
    return w


def asked_back(w: World, hours: float = 6) -> Change:
    w.ask_back()
    return w.run(hours)


def fleet(w: World) -> tuple[str, int]:
    return w.account.instance_type("AllTraffic"), w.account.counts["AllTraffic"][1]


def bounds(w: World) -> tuple[int, int]:
    (target,) = w.account.targets.values()
    return target.minimum, target.maximum


def grew(w: World, count: int, hours: float = 0.5, late: timedelta = timedelta(0)) -> World:
    arrived(w, hours)
    w.advance(late)
    w.account.scale(count)
    return w


def test_a_return_at_the_peak_brings_back_as_many_as_serve_it() -> None:
    w = grew(world(scaling=autoscaled(1, 8)), 6)
    change = asked_back(w)
    assert change.state is ChangeState.ROLLED_BACK
    assert (fleet(w), bounds(w)) == ((OLD_TYPE, 6), (1, 8))
    assert len(w.account.writes(UPDATE)) == 2, "never by way of the stored count"
    text = "the fleet or its bounds grew since the plan; the way back runs AllTraffic 6 x ml.g5.4xlarge"
    assert text in change.outcome


def test_a_proven_change_is_undone_days_later_at_the_size_of_that_day() -> None:
    w = grew(world(scaling=autoscaled(1, 8)), 5, hours=30, late=timedelta(days=9))
    assert w.change.state is ChangeState.PROVEN
    assert (asked_back(w).state, fleet(w)) == (ChangeState.ROLLED_BACK, (OLD_TYPE, 5))


def test_a_fleet_that_did_not_grow_goes_back_by_its_own_configuration() -> None:
    w = grew(world(an_option(target=Target(NEW_TYPE, 2)), scaling=autoscaled(1, 8), count=2), 1)
    assert asked_back(w).state is ChangeState.ROLLED_BACK
    assert (fleet(w), w.account.config_name) == ((OLD_TYPE, 2), OLD)


def test_counts_that_a_person_raised_since_are_not_cut_by_the_way_back() -> None:
    w = grew(world(an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 1)), count=3), 5)
    assert (asked_back(w).state, fleet(w)) == (ChangeState.ROLLED_BACK, (OLD_TYPE, 5))
    assert w.account.writes(StepKind.CREATE_CONFIG) == []


def test_a_count_that_goes_back_is_not_said_to_run_another_configuration_again() -> None:
    w = arrived(world(an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 1)), count=3))
    change = asked_back(w)
    assert (change.state, fleet(w)) == (ChangeState.ROLLED_BACK, (OLD_TYPE, 3))
    assert change.outcome.startswith(f"{NAME} has what it had before this change again, on the same configuration: ")


def test_a_larger_way_back_that_fails_for_capacity_is_followed_by_the_stored_one() -> None:
    w = grew(world(scaling=autoscaled(1, 8)), 6)
    w.account.endings = ["capacity"]
    change = asked_back(w, 12)
    assert (change.state, fleet(w)) == (ChangeState.ROLLED_BACK, (OLD_TYPE, 1))
    assert "the larger way back was refused" in change.outcome


LIMIT = (
    "The account-level service limit 'ml.g5.4xlarge for endpoint usage' is 2 Instances, with a delta of 6 Instances."
)


@pytest.mark.parametrize(
    ("kind", "error", "times"),
    [
        (UPDATE, WriteRefusedError("updating chat", "ResourceLimitExceeded", LIMIT), 1),
        (StepKind.CREATE_CONFIG, PermissionMissingError("sagemaker:CreateEndpointConfig", "cloning"), 99),
    ],
)
def test_a_larger_way_back_that_aws_refuses_is_followed_by_the_stored_one(
    kind: StepKind, error: Any, times: int
) -> None:
    w = grew(world(scaling=autoscaled(1, 8)), 6)
    w.refuse(kind, error, times)
    change = asked_back(w, 12)
    assert (change.state, fleet(w)) == (ChangeState.ROLLED_BACK, (OLD_TYPE, 1))
    assert "the larger way back was refused" in change.outcome


def test_bounds_that_the_owner_raised_since_are_not_cut_by_the_way_back() -> None:
    w = arrived(world(scaling=autoscaled(1, 8)), 30)
    assert w.change.state is ChangeState.PROVEN
    resource, target = next(iter(w.account.targets.items()))
    w.account.targets[resource] = replace(target, minimum=2, maximum=20)
    w.account.scale(12)
    change = asked_back(w)
    assert (change.state, fleet(w), bounds(w)) == (ChangeState.ROLLED_BACK, (OLD_TYPE, 12), (2, 20))
    assert "autoscaling was edited since the change (RegisterScalableTarget" in change.outcome
    assert "with bounds as large as yours" in change.outcome


def test_bounds_changed_alone_and_raised_since_stay_raised_on_the_way_back() -> None:
    option = an_option(kind=OptionKind.AUTOSCALING, target=Target(OLD_TYPE, 1, minimum=1, maximum=2))
    w = arrived(world(option, scaling=autoscaled(1, 8)))
    resource, target = next(iter(w.account.targets.items()))
    w.account.targets[resource] = replace(target, maximum=20)
    assert (asked_back(w).state, bounds(w)) == (ChangeState.ROLLED_BACK, (1, 20))


def test_autoscaling_that_somebody_changed_during_the_probation_is_theirs_and_is_reported() -> None:
    option = an_option(kind=OptionKind.AUTOSCALING, target=Target(OLD_TYPE, 1, minimum=1, maximum=2))
    w = arrived(world(option, scaling=autoscaled(1, 8)))
    resource, target = next(iter(w.account.targets.items()))
    w.account.targets[resource] = replace(target, minimum=2, maximum=9)
    change = w.run(48)
    assert (change.state, bounds(w)) == (ChangeState.PROVEN, (2, 9))
    assert f"somebody changed it meanwhile: RegisterScalableTarget {WHO['ResourceId']}" in change.outcome


def test_a_count_that_its_owner_sets_before_the_first_look_stays_and_is_no_failure() -> None:
    w = world()
    w.start()
    w.upto(UPDATE)
    w.advance(timedelta(minutes=25))
    w.account.scale(3)
    change = w.run(12)
    assert (change.state, fleet(w)) == (ChangeState.PROVEN, (NEW_TYPE, 3)), change.outcome
    assert len(w.account.writes(UPDATE)) == 1
    assert any("AllTraffic has 3 and 1 were asked" in entry.detail for entry in change.journal)


def failed_return(ending: str) -> World:
    """A proven change that somebody undoes, and the deployment of the way back ends so."""
    w = world()
    w.start()
    w.run(6)
    w.account.endings = [ending]
    asked_back(w, 12)
    return w


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        ("health_check", FailureClass.HEALTH_CHECK),
        ("capacity", FailureClass.CAPACITY),
        ("internal", FailureClass.UNKNOWN),
    ],
)
def test_a_way_back_that_fails_is_handed_over_with_its_class(ending: str, kind: FailureClass) -> None:
    w = failed_return(ending)
    change, (past,) = w.change, [p for p in w.past() if p.ended == "handed-over"]
    (noted,) = [n.text for n in w.kept.noted.values() if n.key.endswith("handed-over")]
    assert (change.state, change.failure, past.failure) == (ChangeState.HANDED_OVER, kind, kind.value)
    assert change.reason is not None
    assert change.reason.code is Code.WAY_BACK_FAILED
    for text in (change.outcome, w.told[-1][1], noted):
        assert text.startswith(f"{kind.value}: the way back was refused by its own deployment: ")
    assert [line.split(" --")[0] for line in change.remaining] == ["aws sagemaker update-endpoint"]
    assert (past.back_for, past.has_fallen_short) == ("asked", False), "that is no fault of the change"


@pytest.mark.parametrize("ending", ["capacity", "health_check", "internal"])
def test_a_change_that_served_badly_and_cannot_go_back_is_remembered_for_how_it_served(ending: str) -> None:
    w = arrived(world())
    w.account.load = lambda at, variant, kind: Load(errors=30.0)
    w.account.endings = [ending]
    change = w.run(12)
    (past,) = w.past()
    assert (change.state, past.ended, past.back_for) == (ChangeState.HANDED_OVER, "handed-over", "performance")
    assert past.failure == ending.replace("_", "-").replace("internal", "unknown")
    assert past.has_fallen_short


@pytest.mark.parametrize("name", ["release-42", OLD])
def test_a_release_after_the_change_keeps_its_autoscaling(name: str) -> None:
    w = arrived(world(scaling=autoscaled()), 30)
    assert w.change.state is ChangeState.PROVEN
    w.account.release(name)
    resource, target = next(iter(w.account.targets.items()))
    w.account.targets[resource] = replace(target, minimum=5, maximum=40)
    change = asked_back(w, 24)
    assert change.is_closed
    assert (w.account.config_name, bounds(w)) == (name, (5, 40))


def test_an_order_after_a_release_is_refused_with_what_runs_now() -> None:
    w = arrived(world(scaling=autoscaled()), 30)
    orders: Any = Orders(w.kept, w.account.endpoint)  # type: ignore[arg-type]
    before = w.change
    w.account.release("release-42")
    with pytest.raises(InputError, match="runs configuration release-42, and change"):
        orders.request_rollback(before.id, "U1", w.now)
    w.account.gone = True
    with pytest.raises(InputError, match="does not exist any more"):
        orders.request_rollback(before.id, "U1", w.now)
    assert w.change == before


def test_a_release_with_bounds_of_its_own_during_the_probation_keeps_them() -> None:
    w = world(scaling=autoscaled())
    w.start()
    w.until(lambda change: change.state is ChangeState.APPLIED)
    w.account.release("release-42", 5)
    resource, target = next(iter(w.account.targets.items()))
    w.account.targets[resource] = replace(target, minimum=2, maximum=20)
    change = w.run(24)
    assert (change.state, bounds(w), w.account.known_alarms) == (ChangeState.HANDED_OVER, (2, 20), {})
    assert "its autoscaling is left as it is" in w.told[-1][1]


def test_a_hard_freeze_lists_the_lines_that_bring_the_endpoint_back() -> None:
    w = world(scaling=autoscaled())
    w.start()
    w.upto(UPDATE)
    w.freeze(hard=True)
    lines, before = undo_commands(w.change), len(w.account.done)
    w.run(2)
    assert len(w.account.done) == before
    assert lines[0].startswith("aws sagemaker update-endpoint ")
    assert f'"{OLD}"' in lines[0]
    assert any(line.startswith("aws application-autoscaling register-scalable-target ") for line in lines)
    assert lines[-1].startswith("aws cloudwatch delete-alarms ")


def test_a_closed_change_lists_the_configuration_that_stays() -> None:
    w = arrived(world(), 48)
    last = w.change.journal[-1]
    assert (last.step, last.detail) == ("left", f"configurations that stay and cost nothing: {w.account.config_name}")


def test_an_unproven_change_ends_its_proposal_so_that_the_endpoint_is_asked_about_again() -> None:
    limits = ChangeLimits(probation=timedelta(hours=1), proof_limit=timedelta(days=2))
    w = arrived(world(limits=limits, load=Load(requests=0)), 24 * 5)
    assert (w.change.state, w.change.is_closed) == (ChangeState.APPLIED, True)
    assert [past.ended for past in w.past()] == ["applied"]
    assert w.shown().state is ProposalState.APPLIED
