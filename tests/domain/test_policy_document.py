"""The policy document: which value counts for which endpoint, and that what is wrong in it loosens nothing."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.changes.start_limits import is_open
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.endpoint import Endpoint, Mode, Objective
from rightsizer.domain.environment import Environment, environment_of
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.policy_document import (
    PolicyDocument,
    Section,
    Subject,
    channel_for,
    effective_approvers,
    effective_limits,
    effective_policy,
    find_value,
    lists_of_approvers,
    nearest,
    place_endpoint,
    policy_for_endpoint,
)
from rightsizer.policy_reader import lost_document, read_policy
from tests.policies import document
from tests.recommender import kit

DEV, PRODUCTION = Subject(Environment.DEVELOPMENT), Subject(Environment.PRODUCTION)
LAYERED: dict[str, Any] = {
    "defaults": {"cooldown_hours": 48, "approvers": ["U0DEFAULT"], "channel": "C0DEFAULT", "minimum_saving_usd": 60},
    "environments": {
        "production": {"cooldown_hours": 72, "window": "mon-fri 09:00-17:00", "automatic": False, "four_eyes": True},
        "development": {"minimum_saving_usd": 10, "objective": 900},
    },
    "assign": [
        {"endpoints": "lab-*", "environment": "development"},
        {"tag": "team=research*", "environment": "staging"},
    ],
    "owners": {"Search": {"cooldown_hours": 96, "approvers": ["U0SEARCH", "role/search"], "people": ["U0SEARCH"]}},
}


def endpoint(name: str = "rank", mode: Mode = Mode.AUTO, **tags: str) -> Endpoint:
    plain = replace(kit.endpoint(p95_s=None), mode=mode, tags=tags, objective=Objective(), owner=tags.get("owner", ""))
    return replace(plain, ref=replace(plain.ref, name=name))


@pytest.mark.parametrize(
    ("subject", "hours"),
    [
        (Subject(), 48),
        (DEV, 48),
        (PRODUCTION, 72),
        (Subject(Environment.PRODUCTION, " SEARCH "), 96),
        (Subject(Environment.PRODUCTION, "searching"), 72),
    ],
)
def test_the_owner_comes_before_the_environment_and_both_before_the_defaults(subject: Subject, hours: int) -> None:
    found = effective_limits(ChangeLimits(), document(LAYERED), subject)
    assert found.cooldown == timedelta(hours=hours)
    assert found.misread == ()
    assert found.changes_per_day == ChangeLimits().changes_per_day


def test_what_the_document_does_not_say_is_what_the_stack_says() -> None:
    base = ChangeLimits(changes_per_day=3, cooldown=timedelta(hours=1), dry_run=True, alarm_prefix="mine-")
    assert effective_limits(base, PolicyDocument(), PRODUCTION) == base
    found = effective_limits(base, document(LAYERED), DEV)
    assert (found.changes_per_day, found.dry_run, found.alarm_prefix) == (3, True, "mine-")


def test_windows_savings_and_objectives_differ_by_environment() -> None:
    known = document(LAYERED)
    production, development = (effective_limits(ChangeLimits(), known, each) for each in (PRODUCTION, DEV))
    saturday = kit.NOW + timedelta(days=(5 - kit.NOW.weekday()) % 7)
    assert not is_open(production.window, saturday)
    assert is_open(development.window, saturday)
    assert (production.objective_p95_s, development.objective_p95_s) == (None, 0.9)
    assert effective_policy(Policy(), known, PRODUCTION).minimum_saving_usd == Decimal(60)
    assert effective_policy(Policy(), known, DEV).minimum_saving_usd == Decimal(10)


def test_the_first_rule_that_names_an_endpoint_assigns_it_and_tags_count_after_them() -> None:
    known = document(LAYERED)
    assert known.environment_for("LAB-1", {"team": "research"})[0] is Environment.DEVELOPMENT
    assert known.environment_for("rank", {"Team": "Research-2"}) == (
        Environment.STAGING,
        "policy document, assign[1]",
    )
    assert known.environment_for("rank", {"env": "dev"}) == (Environment.DEVELOPMENT, "tag env=dev")
    assert known.environment_for("rank", {})[0] is Environment.PRODUCTION


def test_an_endpoint_takes_its_environment_and_its_latency_from_the_document() -> None:
    placed = place_endpoint(endpoint("lab-1"), document(LAYERED))
    assert environment_of(placed) == (Environment.DEVELOPMENT, "policy document, assign[0]")
    assert placed.objective == Objective(0.9, source="policy document, environments.development.objective")
    assert policy_for_endpoint(placed, Policy(), document(LAYERED)).minimum_saving_usd == Decimal(10)


def test_a_latency_that_the_endpoints_own_tag_says_comes_first() -> None:
    own = replace(endpoint("lab-1"), objective=Objective(0.2))
    assert place_endpoint(own, document(LAYERED)).objective == Objective(0.2)


def test_as_today_of_an_owner_takes_back_the_latency_of_the_environment() -> None:
    said = {"environments": {"production": {"objective": 300}}, "owners": {"a": {"objective": "as-today"}}}
    assert place_endpoint(endpoint(), document(said)).objective.p95_s == 0.3
    assert place_endpoint(endpoint(owner="a"), document(said)).objective == Objective()


def test_automatic_false_lets_the_tag_auto_ask_and_says_where_that_was_said() -> None:
    placed = place_endpoint(endpoint(), document(LAYERED))
    assert placed.mode is Mode.PROPOSE
    assert placed.asks_because == "policy document, environments.production.automatic is false"
    assert place_endpoint(endpoint(env="dev"), document(LAYERED)).mode is Mode.AUTO
    assert place_endpoint(endpoint(mode=Mode.OFF), document(LAYERED)).mode is Mode.OFF
    assert not effective_limits(ChangeLimits(), document(LAYERED), PRODUCTION).automatic


def test_without_a_document_an_endpoint_stays_as_it_is() -> None:
    assert place_endpoint(endpoint(), PolicyDocument()) == endpoint()
    assert policy_for_endpoint(endpoint(), Policy(), PolicyDocument()) == Policy()


def test_lists_of_approvers_follow_the_same_order() -> None:
    base, known = Approvers(frozenset({"U0STACK"}), "aws:1"), document(LAYERED)
    assert effective_approvers(base, PolicyDocument(), PRODUCTION) == base
    assert effective_approvers(base, known, DEV).entries == {"U0DEFAULT"}
    search = effective_approvers(base, known, Subject(Environment.PRODUCTION, "search"))
    assert (search.entries, search.home) == (frozenset({"U0SEARCH", "role/search"}), "aws:1")
    assert (search.four_eyes, search.owners, search.place) == (True, frozenset({"U0SEARCH"}), "owners.Search.approvers")
    assert {each.entries for each in lists_of_approvers(base, known)} == {
        frozenset({"U0DEFAULT"}),
        frozenset({"U0SEARCH", "role/search"}),
    }


@pytest.mark.parametrize("tag", ["U0ANNA", "role/anna", "arn:aws:iam::111122223333:user/anna"])
def test_an_owner_tag_that_names_a_person_is_an_owner(tag: str) -> None:
    assert effective_approvers(Approvers(), document(LAYERED), Subject(owner=tag)).owners == {tag}
    assert effective_approvers(Approvers(), document(LAYERED), Subject(owner="the anna team")).owners == frozenset()


def test_the_channel_of_the_most_specific_section_that_names_one_is_taken() -> None:
    known = document(LAYERED)
    assert channel_for(known, PRODUCTION, "C0STACK") == "C0DEFAULT"
    assert channel_for(PolicyDocument(), PRODUCTION, "C0STACK") == "C0STACK"
    wrong = read_policy('{"defaults": {"channel": "C0GOOD"}, "owners": {"a": {"channel": "#mine"}}}')
    assert channel_for(wrong, Subject(owner="a"), "C0STACK") == "C0GOOD"


def test_a_broken_value_counts_where_it_stands_and_nowhere_else() -> None:
    said = '{"environments": {"production": {"window": "noon"}, "development": {"cooldown_hours": 3}}}'
    known = read_policy(said)
    production = effective_limits(ChangeLimits(), known, PRODUCTION)
    assert production.misread == known.problems
    assert "environments.production.window" in known.problems[0]
    development = effective_limits(ChangeLimits(), known, DEV)
    assert (development.misread, development.cooldown) == ((), timedelta(hours=3))


def test_a_good_value_of_the_owner_stands_above_a_broken_one_of_the_environment() -> None:
    said = '{"environments": {"production": {"window": "noon"}}, "owners": {"a": {"window": "daily 00:00-00:00"}}}'
    found = effective_limits(ChangeLimits(), read_policy(said), Subject(Environment.PRODUCTION, "a"))
    assert found.misread == ()


def test_a_broken_value_of_the_owner_is_not_replaced_by_the_looser_one_of_the_environment() -> None:
    said = '{"environments": {"production": {"approvers": ["U0ALL"]}}, "owners": {"a": {"approvers": "U0ONE"}}}'
    found = effective_approvers(Approvers(), read_policy(said), Subject(Environment.PRODUCTION, "a"))
    assert (found.entries, bool(found.unreadable)) == (frozenset(), True)


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("four_eyes", "yes"),
        ("automatic", "no"),
        ("dimensions", ["all"]),
        ("tests_per_month", "many"),
        ("changes_per_day", "few"),
        ("usd_per_day", "little"),
    ],
)
def test_a_value_with_a_safest_one_falls_to_it(key: str, wrong: Any) -> None:
    known = document({"defaults": {key: wrong}}, problems=1)
    limits = effective_limits(ChangeLimits(), known, DEV)
    safest = {
        "four_eyes": limits.approvers.four_eyes,
        "automatic": not limits.automatic,
        "dimensions": limits.dimensions == frozenset(),
        "tests_per_month": effective_policy(Policy(), known, DEV).tests_per_month == 0,
        "changes_per_day": limits.changes_per_day == 0,
        "usd_per_day": limits.usd_per_day == 0,
    }
    assert safest[key]
    assert all(not held for name, held in safest.items() if name != key)


def test_a_document_that_cannot_be_read_lets_nothing_begin_and_nobody_decide() -> None:
    known = lost_document("policy document: the parameter /rightsizer/policy does not exist")
    for subject in (Subject(), DEV, Subject(Environment.PRODUCTION, "search")):
        limits = effective_limits(ChangeLimits(approvers=Approvers(frozenset({"U1"}))), known, subject)
        assert limits.misread
        assert limits.approvers.unreadable
        assert not limits.automatic
        assert limits.probation == ChangeLimits().probation
    assert place_endpoint(endpoint(), known).mode is Mode.PROPOSE


def test_where_a_value_was_said_is_told() -> None:
    found = find_value(document(LAYERED), "cooldown_hours", PRODUCTION)
    assert found is not None
    assert (found.value, found.place, found.problem) == (72, "environments.production.cooldown_hours", "")
    assert find_value(document(LAYERED), "bake_minutes", PRODUCTION) is None
    assert Section("defaults").problem("window") == ""


@pytest.mark.parametrize(
    ("word", "meant"),
    [("windwo", "window"), ("Changes-per-day", "changes_per_day"), ("zzz", ""), ("x" * 5000, ""), ("", "")],
)
def test_the_nearest_word_is_named_where_one_is_near(word: str, meant: str) -> None:
    assert nearest(word, ["window", "changes_per_day", "approvers"]) == meant
