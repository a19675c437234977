"""The limits of changing come from one JSON parameter; what cannot be understood names the key."""

import ast
import json
from dataclasses import fields, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rightsizer.bootstrap import evaluation
from rightsizer.changes.start_limits import is_open
from rightsizer.domain.office_hours import HoursLimits
from rightsizer.domain.option import OptionKind
from rightsizer.domain.policy import ADDABLE, TYPE_AND_COUNT, ChangeLimits
from rightsizer.errors import SettingsError
from rightsizer.settings import Settings, change_limits, from_environment
from tests.house.source import nodes


def test_without_the_parameter_the_limits_are_the_careful_ones() -> None:
    assert change_limits("{}") == ChangeLimits()
    assert from_environment({}).limits.alarm_prefix == "rightsizer-"


def test_every_limit_can_be_set() -> None:
    found = change_limits(
        '{"window": "mon-fri 09:00-17:30 Europe/Berlin", "cooldown_hours": 12, "changes_per_day": 3,'
        ' "usd_per_day": 99.5, "probation_hours": 2, "proof_requests": 500, "proof_days": 7, "bake_minutes": 5,'
        ' "incident_alarms": ["a", "b"]}'
    )
    assert (found.window.zone, found.window.days) == ("Europe/Berlin", frozenset(range(5)))
    assert (found.window.start, found.window.end) == (time(9), time(17, 30))
    assert (found.cooldown, found.probation) == (timedelta(hours=12), timedelta(hours=2))
    assert (found.changes_per_day, found.usd_per_day) == (3, Decimal("99.5"))
    assert (found.proof_requests, found.proof_limit, found.bake_s) == (500, timedelta(days=7), 300)
    assert found.incident_alarms == ("a", "b")


def test_dimensions_reach_the_evaluation_and_the_change_alike() -> None:
    known = from_environment({"RIGHTSIZER_LIMITS": '{"dimensions": ["schedule", "routing"]}'})
    added = frozenset({OptionKind.SCHEDULE, OptionKind.ROUTING})
    assert known.limits.by_itself == TYPE_AND_COUNT | added
    assert evaluation.policy_of(known).by_itself == known.limits.by_itself
    assert evaluation.policy_of(from_environment({})).by_itself == TYPE_AND_COUNT | ADDABLE
    closed = from_environment({"RIGHTSIZER_LIMITS": '{"dimensions": []}'})
    assert evaluation.policy_of(closed).by_itself == closed.limits.by_itself == TYPE_AND_COUNT


def test_a_window_is_wall_time_of_its_zone_with_the_summer_in_it() -> None:
    window = change_limits('{"window": "daily 09:00-10:00 Europe/Berlin"}').window
    assert is_open(window, datetime(2026, 7, 1, 7, 30, tzinfo=UTC))
    assert is_open(window, datetime(2026, 12, 1, 8, 30, tzinfo=UTC))
    assert not is_open(window, datetime(2026, 12, 1, 7, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    ("days", "meant"), [("sat-mon", {5, 6, 0}), ("mon,wed", {0, 2}), ("daily", set()), ("fri", {4})]
)
def test_days_may_be_ranges_and_lists(days: str, meant: set[int]) -> None:
    assert change_limits(f'{{"window": "{days} 00:00-06:00"}}').window.days == meant


@pytest.mark.parametrize("hours", ["09:00-09:05", "09:00-09:09", "23:58-00:07"])
def test_a_window_that_the_ticks_may_miss_is_refused_with_what_would_do(hours: str) -> None:
    (problem,) = from_environment({"RIGHTSIZER_LIMITS": json.dumps({"window": f"daily {hours}"})}).misread
    assert "it should last 10 minutes or more: changes begin at ticks, 5 minutes apart, which may miss it" in problem


@pytest.mark.parametrize("hours", ["09:00-09:10", "23:55-00:05", "09:00-09:00", "09:00-08:59"])
def test_a_window_that_the_ticks_surely_meet_is_taken(hours: str) -> None:
    assert from_environment({"RIGHTSIZER_LIMITS": json.dumps({"window": f"daily {hours}"})}).misread == ()


def test_the_environment_carries_the_limits_and_the_least_saving_together() -> None:
    found = from_environment(
        {
            "RIGHTSIZER_LIMITS": '{"minimum_saving_usd": 120, "changes_per_day": 2}',
            "RIGHTSIZER_ALARM_PREFIX": "stack-",
            "RIGHTSIZER_CHANGE_UNTAGGED": "true",
            "RIGHTSIZER_EDIT_USER_ALARMS": "true",
        }
    )
    assert (found.minimum_saving_usd, found.limits.changes_per_day) == (Decimal(120), 2)
    assert (found.limits.alarm_prefix, found.limits.change_untagged, found.limits.rewire_alarms) == (
        "stack-",
        True,
        True,
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "not JSON"),
        ("[1]", "JSON object"),
        ('{"windows": "x"}', "'windows'"),
        ('{"window": "noon"}', "mon-fri 09:00-17:00"),
        ('{"window": "mon-fri 9-17"}', "mon-fri 09:00-17:00"),
        ('{"window": "mon-fri 09:00-17:00 Mars/Base"}', "no time zone 'Mars/Base'"),
        ('{"cooldown_hours": -1}', "cooldown_hours"),
        ('{"usd_per_day": "NaN"}', "usd_per_day"),
        ('{"changes_per_day": true}', "changes_per_day"),
        ('{"probation_hours": 48}', "between 1 h and 24 h"),
        ('{"incident_alarms": "one"}', "list of alarm names"),
        ('{"dimensions": "schedule"}', "autoscaling, routing, schedule"),
        ('{"dimensions": ["delete"]}', "autoscaling, routing, schedule"),
        ('{"dimensions": [1]}', "autoscaling, routing, schedule"),
        ('{"minimum_saving_usd": "much"}', "minimum_saving_usd"),
        ('{"lookback_days": 13}', "lookback_days: 13; it should be a whole number of days from 14 to 63"),
        ('{"lookback_days": 64}', "lookback_days: 64; it should be a whole number of days from 14 to 63"),
        ('{"lookback_days": 21.5}', "lookback_days: 21.5; it should be a whole number"),
        ('{"lookback_days": true}', "lookback_days: True; it should be a whole number"),
        ('{"tests_per_month": 32}', "tests_per_month: 32; it should be a whole number from 0 to 31"),
        ('{"tests_per_month": "4"}', "tests_per_month: '4'; it should be a whole number"),
    ],
)
def test_nonsense_is_named(text: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        change_limits(text)


@pytest.mark.parametrize("days", [14, 42, 63])
def test_the_look_back_of_limits_is_that_of_every_judgement(days: int) -> None:
    known = from_environment({"RIGHTSIZER_LOOKBACK_DAYS": "14", "RIGHTSIZER_LIMITS": f'{{"lookback_days": {days}}}'})
    assert known.lookback_days == days
    assert evaluation.policy_of(known).lookback_days == days


@pytest.mark.parametrize("tests", [0, 4, 31])
def test_the_shadow_tests_of_limits_are_those_of_every_judgement(tests: int) -> None:
    known = from_environment({"RIGHTSIZER_LIMITS": f'{{"tests_per_month": {tests}}}'})
    assert known.misread == ()
    assert evaluation.policy_of(known).tests_per_month == tests


NONSENSE = {
    "window": "nonsense",
    "cooldown_hours": "soon",
    "changes_per_day": None,
    "usd_per_day": -1,
    "probation_hours": 48,
    "proof_requests": 1e300,
    "proof_days": [],
    "grace_days": 0,
    "bake_minutes": 61,
    "incident_alarms": "one",
    "dimensions": ["delete"],
    "minimum_saving_usd": "much",
    "lookback_days": 13,
    "tests_per_month": 1.5,
    "holidays": ["soon"],
    "stop_grace_minutes": 1,
    "wakes_per_day": -1,
    "longest_wake_hours": 0,
    "windows": "mon-fri 09:00-17:00",
}


@pytest.mark.parametrize(("key", "value"), NONSENSE.items())
def test_a_limit_that_cannot_be_understood_is_named_and_the_others_count(key: str, value: Any) -> None:
    sound = {"bake_minutes": 5} if key != "bake_minutes" else {"proof_requests": 7}
    found = from_environment({"RIGHTSIZER_LIMITS": json.dumps({key: value, **sound})})
    (problem,) = found.limits.misread
    assert key in problem
    assert found.misread == found.limits.misread
    safest: dict[str, Any] = {"dimensions": frozenset()} if key == "dimensions" else {}
    usual = replace(ChangeLimits(), misread=found.misread, **safest)
    set_too: dict[str, Any] = {"bake_s": 300} if key != "bake_minutes" else {"proof_requests": 7}
    assert found.limits == replace(usual, **set_too)


def test_office_hours_have_their_holidays_and_bounds_among_the_limits() -> None:
    text = '{"holidays": ["2026-12-25"], "stop_grace_minutes": 45, "wakes_per_day": 1, "longest_wake_hours": 2}'
    found = change_limits(text).hours
    assert found == HoursLimits(frozenset({date(2026, 12, 25)}), timedelta(minutes=45), 1, timedelta(hours=2))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"holidays": "2026-12-25"}', "list of days"),
        ('{"holidays": ["25.12.2026"]}', "list of days"),
        ('{"stop_grace_minutes": 1}', "at least 10"),
        ('{"longest_wake_hours": 1000}', "between 0.5 and 72"),
    ],
)
def test_bounds_of_the_office_hours_that_make_no_sense_are_named(text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        change_limits(text)


def test_all_the_limits_may_be_nonsense_at_once_and_each_is_named() -> None:
    found = from_environment({"RIGHTSIZER_LIMITS": json.dumps(NONSENSE)})
    assert len(found.misread) == len(NONSENSE)
    assert replace(found.limits, misread=()) == ChangeLimits(dimensions=frozenset())


@pytest.mark.parametrize("text", ["{nonsense}", "[1]", "7", "[" * 100_000])
def test_limits_that_are_no_object_are_named(text: str) -> None:
    assert "RIGHTSIZER_LIMITS" in from_environment({"RIGHTSIZER_LIMITS": text}).misread[0]


@pytest.mark.parametrize("name", ["09:00+01:00-17:00", "25:00-26:00"])
def test_a_window_of_no_wall_time_is_named(name: str) -> None:
    assert from_environment({"RIGHTSIZER_LIMITS": json.dumps({"window": f"daily {name}"})}).misread


@pytest.mark.parametrize(
    ("name", "value", "safest"),
    [
        ("lookback_days", "13", 14),
        ("lookback_days", "64", 14),
        ("lookback_days", "\u0661\u0664", 14),
        ("minimum_saving_usd", "NaN", Decimal(50)),
        ("minimum_saving_usd", "-1", Decimal(50)),
        ("proposal_days", "0", 14),
        ("tests_per_month", "many", 4),
        ("tests_per_month", "32", 4),
        ("proposal_days", "soon", 14),
        ("change_untagged", "perhaps", False),
        ("edit_user_alarms", "2", False),
        ("grouped_alarm", "x", False),
        ("dry_run", "maybe", True),
        ("functions", "sweep", {}),
    ],
)
def test_a_setting_that_cannot_be_understood_takes_its_safest_value_and_is_named(
    name: str, value: str, safest: Any
) -> None:
    found = from_environment({f"RIGHTSIZER_{name.upper()}": value})
    assert getattr(found, name) == safest
    (problem,) = found.misread
    assert f"RIGHTSIZER_{name.upper()} is {value!r}" in problem
    assert found.limits.misread == found.misread


def test_settings_that_are_understood_are_not_complained_about() -> None:
    assert from_environment({}).misread == ()
    assert from_environment({"RIGHTSIZER_DRY_RUN": "true", "RIGHTSIZER_LIMITS": "{}"}).limits.misread == ()


def test_every_setting_is_read_by_code() -> None:
    root = Path(__file__).parents[1]
    sources = [*(root / "shared" / "rightsizer").rglob("*.py"), *(root / "functions").rglob("*.py")]
    read = {node.attr for path in sources for node in nodes(path) if isinstance(node, ast.Attribute)}
    assert {each.name for each in fields(Settings)} - read == set()


def test_every_key_of_limits_is_documented() -> None:
    page = (Path(__file__).parents[1] / "docs" / "policy.md").read_text()
    with pytest.raises(SettingsError) as told:
        change_limits('{"unknown": 1}')
    keys = str(told.value).partition("it may have ")[2].split(", ")
    assert len(keys) > 12
    assert [key for key in keys if f"`{key}`" not in page] == []
