"""What an option of each kind takes: who brings back what was there, and whether the model starts again."""

from dataclasses import replace
from decimal import Decimal

import pytest

from rightsizer.changes.plan import CONFIG_KINDS
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import (
    Effort,
    Money,
    Option,
    OptionKind,
    Target,
    WayBack,
    carried_out,
    priced,
    starts_anew,
    way_back,
)
from rightsizer.recommender.alternative_refusals import pool_option
from tests.samples import price

PROGRAM, OWNER, NONE = WayBack
K = OptionKind
BY_KIND = {
    # kind: way back in place, way back elsewhere, restart in place, restart elsewhere
    K.INSTANCE_TYPE: (PROGRAM, OWNER, True, True),
    K.INSTANCE_COUNT: (PROGRAM, OWNER, False, False),
    K.TYPE_AND_COUNT: (PROGRAM, OWNER, True, True),
    K.AUTOSCALING: (PROGRAM, OWNER, False, False),
    K.SCHEDULE: (PROGRAM, OWNER, False, False),
    K.ROUTING: (PROGRAM, OWNER, True, True),
    K.INSTANCE_POOLS: (PROGRAM, OWNER, True, True),
    K.SCALE_TO_ZERO: (PROGRAM, OWNER, False, True),
    K.ASYNC: (OWNER, OWNER, True, True),
    K.SERVERLESS: (OWNER, OWNER, True, True),
    K.PACKING: (OWNER, OWNER, True, True),
    K.DELETE: (NONE, NONE, False, False),
    K.OTHER_ARCHITECTURE: (OWNER, OWNER, True, True),
    K.FEWER_GPUS: (PROGRAM, OWNER, True, True),
    K.COPIES: (PROGRAM, OWNER, False, False),
    K.SCALE_IN: (PROGRAM, OWNER, True, True),
    K.PLACEMENT: (PROGRAM, OWNER, True, True),
}


def made(kind: OptionKind, target: Target | None = None, in_place: bool = True, moved: bool = False) -> Option:
    money = Money(Decimal(10), Decimal(5), Decimal(1), 2.0)
    target = target or Target("ml.g5.xlarge", 1)
    sold = price("ml.g5.xlarge", "1.40")
    return priced(kind, target, sold, money, 9.0, {}, Effort.LOW, in_place=in_place, moved=moved)


@pytest.mark.parametrize("kind", OptionKind)
@pytest.mark.parametrize("in_place", [True, False])
def test_each_kind_says_who_brings_back_what_was_there_and_what_restarts(kind: OptionKind, in_place: bool) -> None:
    back, restart = BY_KIND[kind][not in_place], BY_KIND[kind][3 - in_place]
    option = made(kind, in_place=in_place)
    assert way_back(kind, in_place) is back
    assert (option.rollback_possible, option.restart_needed) == (back is not NONE, restart)


@pytest.mark.parametrize("kind", OptionKind)
def test_the_program_brings_back_what_it_changes_itself_and_nothing_else(kind: OptionKind) -> None:
    changed = {carried_out(endpoint, kind) for endpoint in EndpointKind}
    assert (way_back(kind, in_place=True) is PROGRAM) == (True in changed)


def test_what_is_deployed_as_another_configuration_replaces_the_instances_and_what_is_not_replaces_none() -> None:
    nothing_deployed = {K.INSTANCE_COUNT, K.AUTOSCALING, K.SCHEDULE, K.COPIES, K.SCALE_TO_ZERO}
    assert all(starts_anew(kind, in_place=True) for kind in CONFIG_KINDS)
    assert not any(starts_anew(kind, in_place=True) for kind in nothing_deployed)


def test_counts_by_the_hour_restart_nothing_unless_the_type_or_the_routing_changes_with_them() -> None:
    hours = Target("ml.g5.xlarge", 3, hourly_counts=(1,) * 12 + (3,) * 12)
    assert not made(K.SCHEDULE, hours).restart_needed
    assert made(K.SCHEDULE, hours, moved=True).restart_needed
    assert made(K.SCHEDULE, replace(hours, routing="LEAST_OUTSTANDING_REQUESTS")).restart_needed


def test_components_may_have_no_copies_where_they_are_and_another_endpoint_first_becomes_one_of_them() -> None:
    assert starts_anew(K.SCALE_TO_ZERO, in_place=False)
    assert not starts_anew(K.SCALE_TO_ZERO, in_place=False, of_components=True)


def test_the_pool_behind_a_new_type_is_deployed_and_goes_back_as_the_type_does() -> None:
    pool = pool_option(made(K.INSTANCE_TYPE, moved=True), ("ml.g6e.xlarge", 1), Decimal(20))
    assert (pool.rollback_possible, pool.restart_needed, pool.in_place) == (True, True, True)
