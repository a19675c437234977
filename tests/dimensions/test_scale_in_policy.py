"""The scale-in policy: one property of the configuration, and counts that stay as they are live."""

from dataclasses import replace

from rightsizer.dimensions.scale_in_policy import ScaleInPolicy
from rightsizer.domain.option import ScaleIn, Target
from rightsizer.domain.reason import Code
from tests.changes.test_preflight import LIVE, VARIANT, preflight_input
from tests.dimensions.kit import TYPE, planned, said


def test_each_strategy_has_its_own_words() -> None:
    moves = Target(TYPE, 1, scale_in=ScaleIn("AllTraffic", "CONSOLIDATION"))
    idle = Target(TYPE, 1, scale_in=ScaleIn("AllTraffic", "IDLE_RELEASE"))
    assert [said(ScaleInPolicy(), target)[0] for target in (moves, idle)] == [
        "move copies together to empty instances",
        "give back empty instances only",
    ]


def test_as_many_instances_are_started_as_run_at_that_moment() -> None:
    grown = replace(LIVE, variants=(replace(VARIANT, current_count=3, desired_count=5),))
    found = ScaleInPolicy().with_live_counts(preflight_input(endpoint=grown))
    assert found.option.target.instance_count == 5


def test_there_is_no_plan_without_a_policy() -> None:
    assert planned(ScaleInPolicy(), Target(TYPE, 1)) is Code.NOT_APPLICABLE
