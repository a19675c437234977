"""Which approval permits the way back, and everything after which a person is asked again."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.option import Target
from rightsizer.domain.preflight import WAY_BACK, RunningFleet, approved_change, is_person
from rightsizer.domain.schedule import DayCounts

AT = datetime(2026, 11, 2, 9, tzinfo=UTC)
OLD, NEW = "ml.g5.12xlarge", "ml.g5.4xlarge"
DONE = PastChange(
    AT + timedelta(hours=2),
    OLD,
    NEW,
    1,
    3,
    PastEnd.PROVEN,
    approved_by="slack:U1",
    approved_at=AT,
    to_config="ours",
)
RUNS, BACK = RunningFleet(NEW, 3, "ours"), Target(OLD, 1)
NOW = AT + timedelta(days=2)


def test_the_approval_permits_exactly_what_ran_before() -> None:
    assert approved_change((DONE,), RUNS, BACK, NOW) is DONE
    stands = replace(DONE, ended=PastEnd.APPLIED, mean_instances=3.0)
    assert approved_change((stands,), RUNS, BACK, AT + WAY_BACK) is stands
    test = replace(DONE, ended=PastEnd.TESTED, approved_by="")
    assert approved_change((DONE, test), RUNS, BACK, NOW) is DONE, "a shadow test left what serves as it was"


@pytest.mark.parametrize(
    "changes",
    [
        {"approved_by": ""},
        {"approved_by": "policy"},
        {"approved_by": "somebody"},
        {"approved_at": None},
        {"approved_at": NOW - WAY_BACK - timedelta(seconds=1)},
        {"approved_at": NOW + timedelta(hours=1)},
        {"ended": PastEnd.ROLLED_BACK},
        {"ended": PastEnd.HANDED_OVER},
        {"ended": PastEnd.RUNNING},
        {"to_config": ""},
        {"to_config": "theirs"},
        {"to_type": "ml.g6.xlarge"},
        {"to_count": 2},
        {"from_type": "ml.g6.xlarge"},
        {"from_count": 2},
        {"from_minimum": 1},
        {"mean_instances": 1.5},
        {"day_counts": (DayCounts((0, 1, 2, 3, 4, 5, 6), (3,) * 24),)},
        {"restores": True},
        {"grows": True},
    ],
    ids=str,
)
def test_of_any_other_change_a_person_is_asked(changes: dict[str, Any]) -> None:
    assert approved_change((replace(DONE, **changes),), RUNS, BACK, NOW) is None


def test_after_another_change_a_person_is_asked() -> None:
    later = (PastEnd.PROVEN, PastEnd.ROLLED_BACK, PastEnd.HANDED_OVER, PastEnd.UPDATE_FAILED)
    for end in later:
        assert approved_change((DONE, replace(DONE, ended=end, approved_by="")), RUNS, BACK, NOW) is None
    assert approved_change((), RUNS, BACK, NOW) is None


@pytest.mark.parametrize(
    "runs",
    [RunningFleet(NEW, 2, "ours"), RunningFleet(NEW, 3, "theirs"), RunningFleet(OLD, 3, "ours")],
)
def test_where_the_owner_changed_something_since_a_person_is_asked(runs: RunningFleet) -> None:
    assert approved_change((DONE,), runs, BACK, NOW) is None


@pytest.mark.parametrize(
    "target",
    [
        Target(OLD, 2),
        Target(NEW, 4),
        Target(OLD, 1, minimum=1, maximum=4),
        Target(OLD, 1, routing="RANDOM"),
        Target(OLD, 1, hourly_counts=(1,) * 24),
    ],
)
def test_for_anything_else_than_the_owners_fleet_a_person_is_asked(target: Target) -> None:
    assert approved_change((DONE,), RUNS, target, NOW) is None


def test_automatic_mode_and_an_unknown_source_are_no_person() -> None:
    assert is_person("slack:U1")
    assert is_person("cli:arn:aws:iam::111122223333:user/ada")
    for by in ("", "policy", "slack:", "somebody", "cron:ada"):
        assert not is_person(by)
