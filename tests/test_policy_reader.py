"""The policy document's text: every wrong part is named with its place, and disturbs nothing else."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightsizer.domain.environment import Environment
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.policy_document import (
    PolicyDocument,
    Subject,
    effective_limits,
    effective_policy,
    find_value,
)
from rightsizer.domain.policy_key import KEYS, Fallback
from rightsizer.policy_reader import read_policy
from tests.policies import document

GOOD: dict[str, Any] = {
    "approvers": ["U0SRE", "role/ml-*"],
    "four_eyes": True,
    "automatic": True,
    "objective": 250,
    "minimum_saving_usd": 75.5,
    "dimensions": ["schedule"],
    "tests_per_month": 2,
    "lookback_days": 28,
    "window": "mon-fri 09:00-17:00 Europe/Berlin",
    "cooldown_hours": 36,
    "probation_hours": 12,
    "proof_requests": 500,
    "proof_days": 7,
    "grace_days": 10,
    "bake_minutes": 5,
    "incident_alarms": ["checkout-down"],
    "changes_per_day": 4,
    "usd_per_day": 120,
    "holidays": ["2026-12-25"],
    "hours_zone": "Europe/Berlin",
    "stop_grace_minutes": 45,
    "wakes_per_day": 5,
    "longest_wake_hours": 8,
    "channel": "C0123456789",
}
SCOPED = {key: value for key, value in GOOD.items() if not KEYS[key].is_of_account}
WHOLE: dict[str, Any] = {
    "version": 1,
    "defaults": GOOD,
    "environments": {each.value: SCOPED for each in Environment},
    "owners": {"search": SCOPED | {"people": ["U0ANNA"]}, "ads": SCOPED},
    "assign": [{"endpoints": "lab-*", "environment": "development"}],
}
PLACES = [
    *(("defaults", key) for key in GOOD),
    *(("environments", each.value, key) for each in Environment for key in SCOPED),
    *(("owners", name, key) for name in ("search", "ads") for key in SCOPED),
]
SUBJECTS = [Subject(each, owner) for each in (None, *Environment) for owner in ("", "search", "ads")]
WRONG: list[Any] = ["nonsense!", -1, 1e9, None, {}, [], [1], ["no such thing!"], [[]], {"a": 1}, "", 0.1234567]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_every_key_can_be_said_in_every_place_where_it_counts() -> None:
    assert set(GOOD) == set(KEYS)
    assert document(WHOLE).problems == ()


def broken_at(place: tuple[str, ...], value: Any) -> dict[str, Any]:
    said: Any = json.loads(json.dumps(WHOLE))
    inner = said
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return dict(said)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(WRONG))
def test_a_wrong_value_leaves_every_other_value_in_force_and_loosens_nothing(
    place: tuple[str, ...], wrong: Any
) -> None:
    found = read_policy(json.dumps(broken_at(place, wrong)))
    if not found.problems:
        return  # some of these are right somewhere: 0.1234567 is a number
    (problem,) = found.problems
    assert ".".join(place) in problem
    whole = document(WHOLE)
    for subject in SUBJECTS:
        for key in KEYS:
            before, now = find_value(whole, key, subject), find_value(found, key, subject)
            if now is None or not now.problem:
                assert now == before
            else:
                assert (key, now.place) == (place[-1], ".".join(place))
        assert_no_looser(found, subject)


def assert_no_looser(found: PolicyDocument, subject: Subject) -> None:
    """Where a key cannot be understood it is held, or its value is as safe as the default or safer."""
    limits, policy = effective_limits(ChangeLimits(), found, subject), effective_policy(Policy(), found, subject)
    said = {key: find_value(found, key, subject) for key in KEYS}
    wrong = {key for key, value in said.items() if value is not None and value.problem}
    if any(KEYS[key].fallback is Fallback.HOLD for key in wrong):
        assert limits.misread
    if any(KEYS[key].fallback is Fallback.ASK for key in wrong):
        assert not limits.automatic
    if "minimum_saving_usd" in wrong:
        assert policy.minimum_saving_usd >= Policy().minimum_saving_usd
    if "dimensions" in wrong:
        assert limits.dimensions <= ChangeLimits().dimensions
    if "tests_per_month" in wrong:
        assert policy.tests_per_month <= Policy().tests_per_month
    if "approvers" in wrong:
        assert limits.approvers.unreadable or limits.approvers.entries < {"U0SRE", "role/ml-*", "no such thing!"}
    if "four_eyes" in wrong:
        assert limits.approvers.four_eyes


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_any_json_is_read_without_an_error_and_names_its_problems_on_one_line(said: Any) -> None:
    found = read_policy(json.dumps(said))
    assert all("\n" not in each and each.startswith("policy document") for each in found.problems)
    if not isinstance(said, dict) or not said:
        assert found.problems or said == {}


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["defaults", "environments", "owners", "assign"]), JSON)
def test_any_part_may_be_anything(part: str, value: Any) -> None:
    found = read_policy(json.dumps(WHOLE | {part: value}))
    for subject in SUBJECTS:
        assert_no_looser(found, subject)
    if part != "defaults" and not isinstance(value, dict | list):
        assert found.problems
        assert found.defaults.values == document(WHOLE).defaults.values


@pytest.mark.parametrize(
    "text",
    ["[", "[]", "3", '"x"', "null", "[" * 100_000, "9" * 5000, '{"version": 2}'],
)
def test_a_document_that_is_none_holds_everything(text: str) -> None:
    found = read_policy(text)
    assert len(found.problems) == 1
    assert effective_limits(ChangeLimits(), found, Subject()).misread == found.problems


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("key", sorted(KEYS))
def test_a_number_that_is_none_is_named_at_its_place_and_the_rest_is_read(key: str, value: float) -> None:
    found = document({"defaults": {key: value}, "owners": {"search": {"people": ["U0SRE"]}}}, 1)
    (problem,) = found.problems
    assert problem.startswith(f"policy document, defaults.{key}: ")
    assert ", and should be " in problem
    assert found.owners == document({"owners": {"search": {"people": ["U0SRE"]}}}).owners


def test_an_empty_text_is_an_empty_document() -> None:
    assert read_policy(" \n") == PolicyDocument() == document({}) == document({"version": 1})


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"defaults": {"windwo": "x"}}, "defaults.windwo: there is no such key; did you mean window?"),
        ({"onwers": {}}, "onwers: there is no such key; did you mean owners?"),
        ({"window": "daily 00:00-00:00"}, "window: there is no such key here; write it into defaults"),
        ({"environments": {"prod": {}}}, "environments.prod: there is no such environment"),
        ({"environments": {"prod": {}}}, "did you mean production?"),
        ({"environments": {"production": {"changes_per_day": 1}}}, "it counts the whole account"),
        ({"owners": {"a": {}, "A": {}}}, "upper and lower case only"),
        ({"owners": {"a": {"people": ["a b"]}}}, 'owners.a.people: "a b" names nobody'),
        ({"defaults": {"approvers": ["@bob", "U0MLOPS01", "x y"]}}, '"@bob", "x y" name nobody'),
        ({"defaults": {"holidays": ["2026-12-25", "2026-13-40"]}}, '"2026-13-40" is no day'),
        ({"assign": [{"endpoints": "x", "environment": "prod"}]}, "assign[0]: environment is"),
        ({"assign": [{}, {"tag": "team", "environment": "staging"}]}, "assign[1]: tag is"),
        ({"assign": [{"environment": "production"}]}, "assign[0]: it should have endpoints"),
        ({"assign": [{"tag": "team", "environment": "production"}]}, "should look like team=research"),
        ({"assign": [{"endpoint": "x", "environment": "production"}]}, "did you mean endpoints?"),
        ({"defaults": {"window": "daily 09:00-09:05"}}, "it should last 10 minutes or more"),
        ({"defaults": {"window": "daily 09:00-10:00 Mars/Base"}}, "there is no time zone 'Mars/Base'"),
        ({"defaults": {"tests_per_month": 32}}, "a whole number from 0 to 31; until then 0 holds"),
        ({"defaults": {"approvers": []}}, "of one or more"),
        ({"defaults": {"incident_alarms": ["a"] * 101}}, "at most 100"),
    ],
)
def test_a_problem_names_its_place_what_is_allowed_and_what_holds(said: dict[str, Any], words: str) -> None:
    assert words in " ".join(read_policy(json.dumps(said)).problems)


def test_a_key_that_is_given_twice_counts_neither_time() -> None:
    found = read_policy('{"defaults": {"cooldown_hours": 1, "cooldown_hours": 100}}')
    assert "given twice" in found.problems[0]
    assert effective_limits(ChangeLimits(), found, Subject()).misread


def test_a_misspelt_environment_holds_the_one_that_was_meant_and_no_other() -> None:
    found = read_policy('{"environments": {"prodution": {"cooldown_hours": 3}}}')
    assert effective_limits(ChangeLimits(), found, Subject(Environment.PRODUCTION)).misread
    assert effective_limits(ChangeLimits(), found, Subject(Environment.STAGING)).misread == ()


def test_behind_a_rule_that_cannot_be_understood_everything_is_production() -> None:
    rules = [
        {"endpoints": "a", "environment": "staging"},
        {"endpoint": "b"},
        {"endpoints": "c", "environment": "staging"},
    ]
    found = read_policy(json.dumps({"assign": rules}))
    named = {name: found.environment_for(name, {"env": "dev"})[0] for name in "abc"}
    assert named == {"a": Environment.STAGING, "b": Environment.PRODUCTION, "c": Environment.PRODUCTION}
