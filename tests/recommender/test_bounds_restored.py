"""Back from a change of bounds or of hours: which minimum or count is asked for, whatever the settings open."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.domain.usage import DailyUsage, VariantUsage
from tests.recommender import kit
from tests.recommender.kit import judge_digests
from tests.recommender.test_failed_fleets import GOAL, POLICIES, TYPE, day

HOURS = replace(
    POLICIES, minimum=10, maximum=10, policies=(), scheduled=({"ScheduledActionName": "rightsizer-c-1-08"},)
)


def suffering(
    scaling: ScalableTarget,
    *dimensions: OptionKind,
    late: float = 0.5,
    owner: int = 40,
    load: float = 1.0,
    budget: str = "",
) -> Recommendation:
    """The owner's fleet for two weeks; then our change, ten instances, more load and half of the requests late."""
    limits = ChangeLimits(dimensions=frozenset(dimensions))
    policy = Policy(cooldown_hours=0.0, tests_per_month=0, by_itself=limits.by_itself)
    since = [times(day(14 + i, 10.0, late), load) for i in range(3)]
    days = [day(i, float(owner)) for i in range(14)] + since
    at = datetime.combine(since[0].day, time(0, 5), tzinfo=UTC)
    past = PastChange(at, TYPE, TYPE, owner, 10, PastEnd.PROVEN, mean_instances=10.0)
    runs = replace(kit.endpoint(count=10, p95_s=GOAL.p95_s), scaling=(scaling,))
    if budget:
        runs = replace(runs, tags={**runs.tags, "rightsizer:may-grow": budget})
    return judge_digests(
        runs,
        VariantUsage("chat", "AllTraffic", tuple(days)),
        kit.prices(without=tuple(name for name in kit.TYPES if name != TYPE)),
        kit.catalogue(),
        {},
        History((past,)),
        policy,
        at + timedelta(days=3, hours=3),
    )


def times(one: DailyUsage, load: float) -> DailyUsage:
    """The day with so many times the requests, each as slow as before."""
    return replace(
        one,
        requests=tuple((v or 0.0) * load for v in one.requests),
        busy_s=tuple((v or 0.0) * load for v in one.busy_s),
        latency=tuple((at, n * load) for at, n in one.latency),
        latency_total_s=one.latency_total_s * load,
    )


def chosen(found: Recommendation) -> Option:
    assert found.chosen_option is not None
    return found.chosen_option


def test_the_owners_minimum_comes_back_and_their_maximum_stays() -> None:
    found = suffering(POLICIES, OptionKind.AUTOSCALING)
    option = chosen(found)
    assert (option.kind, option.restores, found.gate) == (OptionKind.AUTOSCALING, True, Gate.APPLY)
    assert (option.target.minimum, option.target.maximum) == (40, 40)


def test_a_minimum_that_the_settings_do_not_open_comes_back_all_the_same() -> None:
    found = suffering(POLICIES)
    assert (chosen(found).target.minimum, found.gate) == (40, Gate.APPLY)


def test_our_hours_are_left_for_the_count_that_served_before_them() -> None:
    found = suffering(HOURS, OptionKind.SCHEDULE)
    option = chosen(found)
    assert (option.kind, option.restores, option.target.instance_count) == (OptionKind.INSTANCE_COUNT, True, 40)
    assert found.gate is Gate.APPLY


MILD = 0.02
"""Twice what is allowed, and not so much that everything comes back at once."""


@pytest.mark.parametrize("opened", [(), (OptionKind.AUTOSCALING,)])
def test_a_fleet_that_no_longer_carries_the_load_starts_from_a_higher_minimum(opened: tuple[OptionKind, ...]) -> None:
    found = suffering(POLICIES, *opened, late=MILD)
    option = chosen(found)
    assert (option.kind, option.restores, found.gate) == (OptionKind.AUTOSCALING, True, Gate.APPLY)
    assert 8 < (option.target.minimum or 0) < 40
    assert option.target.maximum == 40


@pytest.mark.parametrize("late", [MILD, 0.5])
@pytest.mark.parametrize("most", [12, 15])
def test_it_never_grows_above_the_owners_maximum(most: int, late: float) -> None:
    found = suffering(replace(POLICIES, maximum=most), late=late)
    target = chosen(found).target
    assert (found.gate, target.minimum, target.maximum) == (Gate.APPLY, most, most)


@pytest.mark.parametrize("late", [MILD, 0.5])
def test_where_the_minimum_is_the_maximum_already_a_person_is_told_what_is_in_the_way(late: float) -> None:
    found = suffering(replace(POLICIES, minimum=10, maximum=10), late=late)
    assert (found.gate, found.gate_reason.code, found.options) == (Gate.PROPOSE, Code.AUTOSCALED, ())
    assert "from 10 of at most 10 instances" in found.gate_reason.sentence


def test_without_policies_it_is_still_the_count_that_grows() -> None:
    option = chosen(suffering(replace(POLICIES, policies=()), late=MILD))
    assert (option.kind, option.target.minimum) == (OptionKind.INSTANCE_COUNT, None)


def test_bounds_without_a_policy_are_not_the_owners_scaling() -> None:
    bare = ScalableTarget("endpoint/e/variant/AllTraffic", "d", 8, 40)
    assert chosen(suffering(bare, late=0.5)).kind is OptionKind.INSTANCE_COUNT


def grown(tags: Mapping[str, str], recorded: int | None = None) -> Recommendation:
    """Twelve instances for a fortnight, ten by a change of ours, and then two fifths more load."""
    days = [day(i, 12.0) for i in range(14)] + [day(14, 10.0)]
    more = day(15, 10.0, MILD)
    calls = tuple((value or 0.0) * 1.4 for value in more.requests)
    busy = tuple((value or 0.0) * 1.4 for value in more.busy_s)
    days.append(replace(more, requests=calls, busy_s=busy, latency_total_s=more.latency_total_s * 1.4))
    at = datetime.combine(days[14].day, time(0, 5), tzinfo=UTC)
    past = PastChange(at, TYPE, TYPE, 12, 10, PastEnd.PROVEN, mean_instances=10.0, from_minimum=recorded)
    endpoint = kit.endpoint(count=10, p95_s=GOAL.p95_s)
    return judge_digests(
        replace(endpoint, scaling=(POLICIES,), tags={**endpoint.tags, **tags}),
        VariantUsage("chat", "AllTraffic", tuple(days)),
        kit.prices(without=tuple(name for name in kit.TYPES if name != TYPE)),
        kit.catalogue(),
        {},
        History((past,)),
        Policy(cooldown_hours=0.0, tests_per_month=0),
        at + timedelta(days=2, hours=3),
    )


def test_a_minimum_above_the_owners_fleet_is_asked_for_and_theirs_comes_back_first() -> None:
    found = grown({})
    assert (found.gate, chosen(found).target.minimum, chosen(found).restores) == (Gate.APPLY, 12, True)
    rest = found.options[1]
    assert rest.kind is OptionKind.AUTOSCALING
    assert (rest.target.minimum or 0) > 12
    assert not rest.restores
    assert any("no tag rightsizer:may-grow" in note for note in chosen(found).notes)


def test_the_tag_for_growth_lets_the_minimum_rise_by_itself() -> None:
    found = grown({"rightsizer:may-grow": "100000"})
    assert found.gate is Gate.APPLY
    assert (chosen(found).target.minimum or 0) > 12
    small = grown({"rightsizer:may-grow": "1"})
    assert (small.gate, chosen(small).target.minimum) == (Gate.APPLY, 12)


def test_the_recorded_minimum_is_the_owners_and_not_what_ran() -> None:
    target = chosen(grown({}, recorded=11)).target
    assert (target.minimum, target.maximum) == (11, 40)


OTHER = "ml.g6e.2xlarge"


def moved(*loads: float, slower: float = 1.0) -> Recommendation:
    """A fortnight of another type under its owner's policy, so many instances in turn; then ours, much too slow."""
    before = [replace(day(i, 2.0), instance_type=OTHER, instances=tuple(loads) * (24 // len(loads))) for i in range(14)]
    since = [day(14 + i, 2.0, 0.5) for i in range(3)]
    since = [replace(d, busy_s=tuple((v or 0.0) * slower for v in d.busy_s)) for d in since]
    at = datetime.combine(since[0].day, time(0, 5), tzinfo=UTC)
    past = PastChange(at, OTHER, TYPE, 3, 3, PastEnd.PROVEN)
    scaling = ScalableTarget("endpoint/e/variant/AllTraffic", "d", 1, 4, policies=POLICIES.policies)
    return judge_digests(
        replace(kit.endpoint(count=2, p95_s=GOAL.p95_s), scaling=(scaling,)),
        VariantUsage("chat", "AllTraffic", tuple(before + since)),
        kit.prices(without=tuple(name for name in kit.TYPES if name not in (TYPE, OTHER))),
        kit.catalogue(),
        {},
        History((past,)),
        Policy(cooldown_hours=0.0, tests_per_month=0),
        at + timedelta(days=3, hours=3),
    )


def test_another_type_comes_back_with_the_owners_own_bounds_and_target() -> None:
    """RegisterScalableTarget's minimum is paid at every hour: it may not become the most that the load once had."""
    option = chosen(moved(1.0, 2.0, 3.0))
    assert (option.target.instance_type, option.target.instance_count, option.restores) == (OTHER, 3, True)
    assert (option.target.minimum, option.target.maximum, option.target.per_instance) == (1, 4, 1.0)
    assert option.mean_instances is None or option.mean_instances == 2.0
    price = kit.prices().find(OTHER)
    assert price is not None
    assert float(option.usd_per_month) == pytest.approx(2.0 * float(price.usd_per_instance_month), rel=0.001)


def test_the_minimum_that_comes_back_is_the_least_that_ran() -> None:
    assert chosen(moved(2.0, 3.0)).target.minimum == 2
    assert chosen(moved(1.5, 3.0)).target.minimum == 1, "it ran with one for part of that hour"


def test_bounds_and_targets_that_followed_a_slower_type_go_back_by_as_much() -> None:
    target = chosen(moved(1.0, 2.0, slower=2.0)).target
    assert target.per_instance is not None
    assert target.per_instance > 1.5
    assert target.maximum == 2


@pytest.mark.parametrize("owner", [11, 16])
@pytest.mark.parametrize("load", [1.3, 2.0])
def test_a_load_that_grew_brings_the_owners_fleet_back_and_a_person_is_asked_about_more(
    owner: int, load: float
) -> None:
    found = suffering(POLICIES, late=MILD, owner=owner, load=load)
    back, more = found.options
    assert (found.gate, back.restores, back.target.minimum) == (Gate.APPLY, True, owner)
    assert more.grows
    assert (more.target.minimum or 0) > owner
    assert "may-grow" in " ".join(back.notes)


def test_a_minimum_above_the_owners_fleet_is_given_by_itself_where_the_owner_allows_it() -> None:
    found = suffering(POLICIES, late=MILD, owner=16, load=2.0, budget="100000")
    assert (found.gate, chosen(found).target.minimum, chosen(found).target.maximum) == (Gate.APPLY, 34, 40)
