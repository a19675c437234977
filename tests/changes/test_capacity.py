"""Plans that deploy nothing: counts, copies, bounds and hours, each with the way back by the same call."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.autoscaling import policies
from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.changes.plan import capacity
from rightsizer.dimensions import dimension_of
from rightsizer.domain.change import ChangeState
from rightsizer.domain.live_state import MOVING
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import Before, VariantCount
from rightsizer.domain.preflight import PreflightInput
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.schedule import DayCounts
from tests import samples
from tests.changes.account import MONDAY, NAME, NEW_TYPE, OLD, OLD_TYPE
from tests.changes.memory import LIMITS, World, an_option, autoscaled, world

FLEET = (VariantCount("a", OLD_TYPE, 3, 1.0), VariantCount("b", OLD_TYPE, 2, 0.5))
BEFORE = Before(OLD, MONDAY, "", FLEET)
HOURS = an_option(kind=OptionKind.SCHEDULE, target=Target(OLD_TYPE, 2, hourly_counts=(1,) * 8 + (2,) * 12 + (1,) * 4))
COUNT = an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 1))
COPIES = an_option(kind=OptionKind.COPIES, target=Target(OLD_TYPE, 1, copies=(("small", 1), ("large", 2))))


def planned(found: PlannedChange | tuple[Reason, ...]) -> PlannedChange:
    assert isinstance(found, PlannedChange), found
    return found


def why_not(found: PlannedChange | tuple[Reason, ...]) -> Code:
    assert not isinstance(found, PlannedChange)
    (reason,) = found
    return reason.code


def test_counts_move_what_changes_and_go_back_to_what_ran() -> None:
    plan = planned(capacity.plan_count(approved(COUNT, "a"))).plan
    assert plan.turn is not None
    assert plan.back is not None
    assert plan.turn.params["DesiredWeightsAndCapacities"] == [{"VariantName": "a", "DesiredInstanceCount": 1}]
    assert plan.back.params["DesiredWeightsAndCapacities"] == [{"VariantName": "a", "DesiredInstanceCount": 3}]
    assert (plan.new_config, plan.prepare, plan.clear) == ("", (), ())
    same = an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, 3))
    assert why_not(capacity.plan_count(approved(same, "a"))) is Code.CHANGED_SINCE


def approved(option: Any, variant: str = "AllTraffic", **known: Any) -> Approved:
    w = world(option)
    fields = {"proposal": w.proposal, "option": option, "endpoint": w.account.endpoint(NAME), "config": None}
    made = samples.change(MONDAY, option=option, variant=variant)
    seen = PreflightInput(**{"tags": {}, "limits": LIMITS, "scaling": (), **fields, **known})
    nothing: Any = None  # neither a configuration nor the catalogue is read for these
    return Approved(made, seen, nothing, BEFORE, nothing, LIMITS)


def copies(**known: Any) -> PlannedChange | tuple[Reason, ...]:
    return dimension_of(OptionKind.COPIES).plan(approved(COPIES, **known))


def test_copies_that_differ_are_set_and_go_back() -> None:
    plan = planned(copies(copies={"small": 3, "large": 2})).plan
    wanted = [(s.component, s.params["DesiredRuntimeConfig"]["CopyCount"]) for s in (*plan.settle, *plan.restore)]
    assert wanted == [("small", 1), ("small", 3)]
    assert plan.turn is None


@pytest.mark.parametrize("seen", [{"small": 1, "large": 2}, {"small": MOVING, "large": 2}, {"large": 1}])
def test_copies_that_are_as_asked_or_being_changed_or_unknown_give_no_plan(seen: dict[str, int]) -> None:
    assert why_not(copies(copies=seen)) is Code.CHANGED_SINCE


def test_copies_of_an_autoscaled_component_are_left_to_its_bounds() -> None:
    target = replace(autoscaled(), resource_id="inference-component/small")
    assert why_not(copies(copies={"small": 3, "large": 1}, scaling=(target,))) is Code.AUTOSCALED


def refused(w: World) -> str:
    change = w.start()
    assert change.state is ChangeState.REFUSED, change.outcome
    assert w.account.done == []
    return change.outcome


OFFICE = (DayCounts((0, 1, 2, 3, 4), (1,) * 8 + (2,) * 12 + (1,) * 4), DayCounts((5, 6), (1,) * 24))


def test_counts_of_the_week_are_scheduled_actions_on_their_days_and_go_back_to_the_old_count() -> None:
    target = Target(OLD_TYPE, 2, hourly_counts=(1,) * 8 + (2,) * 12 + (1,) * 4, day_counts=OFFICE)
    w = world(an_option(kind=OptionKind.SCHEDULE, target=target), count=2)
    w.start()
    w.run(1)
    (scaled,) = w.account.targets.values()
    wanted = ["cron(0 20 ? * MON-FRI *)", "cron(45 7 ? * MON-FRI *)"]
    assert sorted(row["Schedule"] for row in scaled.scheduled) == wanted
    assert policies.has_only_hourly_counts(scaled)
    w.ask_back()
    assert w.run(6).state is ChangeState.ROLLED_BACK
    assert (w.account.targets, w.account.counts["AllTraffic"][1]) == ({}, 2)


def test_counts_by_the_hour_are_scheduled_actions_and_go_back_to_the_old_count() -> None:
    w = world(HOURS, count=2)
    w.start()
    w.run(1)
    (target,) = w.account.targets.values()
    assert sorted(row["Schedule"] for row in target.scheduled) == ["cron(0 20 * * ? *)", "cron(45 7 * * ? *)"]
    w.ask_back()
    assert w.run(6).state is ChangeState.ROLLED_BACK
    assert (w.account.targets, w.account.counts["AllTraffic"][1]) == ({}, 2)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (Target(OLD_TYPE, 2, hourly_counts=(1, 2)), "needs 24 hourly counts, got 2"),
        (
            Target(OLD_TYPE, 2, hourly_counts=(2,) * 24, day_counts=OFFICE[:1]),
            "needs 24 counts for each day of the week, got 0",
        ),
        (Target(NEW_TYPE, 2, hourly_counts=(1,) * 24), f"a schedule changes no type: {NAME} runs {OLD_TYPE}"),
    ],
)
def test_a_schedule_that_cannot_be_set_is_refused(target: Target, words: str) -> None:
    assert words in refused(world(an_option(kind=OptionKind.SCHEDULE, target=target)))


def test_a_schedule_beside_policies_is_refused() -> None:
    assert "a schedule would fight with its policies" in refused(world(HOURS, scaling=autoscaled(1, 4), count=2))
