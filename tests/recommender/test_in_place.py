"""An option is called carried out in place on exactly those endpoints that the change machinery would not refuse."""

from dataclasses import replace
from decimal import Decimal

import pytest

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.changes.preflight import preflight_refusals
from rightsizer.dimensions import dimension_of
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.history import History
from rightsizer.domain.option import Money, Option, OptionKind, Target
from rightsizer.domain.plan import Before, VariantCount
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.pricing import restore_option
from rightsizer.recommender.proposal import permission_for_endpoint, permission_for_option
from tests import samples
from tests.changes.test_preflight import NOW, preflight_input, proposed
from tests.recommender import kit
from tests.recommender.kit import judge

KINDS = tuple(EndpointKind)


def judged(kind: EndpointKind, count: int = 1) -> Recommendation:
    endpoint = kit.endpoint(kind=kind, p95_s=60.0, count=count)
    window = kit.window(kit.steady())
    return judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)


def refused(kind: EndpointKind, option: Option) -> bool:
    """Whether the check before the first write refuses the kind."""
    found = preflight_refusals(preflight_input(proposal=proposed(kind=kind), option=option))
    return bool({Code.OTHER_KIND, Code.NOT_IN_PLACE} & {reason.code for reason in found})


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in (EndpointKind.RESERVED, EndpointKind.MIG)])
@pytest.mark.parametrize("count", [1, 3])
def test_a_type_or_a_count_is_in_place_where_the_preflight_lets_it_pass(kind: EndpointKind, count: int) -> None:
    carried = [o for o in judged(kind, count).options if dimension_of(o.kind).applies_to]
    plain = [o for o in carried if o.kind not in (OptionKind.SCALE_TO_ZERO, OptionKind.DELETE)]
    assert plain, "a kind with an instance type is judged"
    permission = permission_for_endpoint(kit.endpoint(kind=kind), writes=True, untagged=False)
    for option in plain:
        assert option.in_place is permission_for_option(option, permission).approvable
        assert refused(kind, option) is not option.in_place
        assert refused(kind, replace(option, in_place=True)) is not option.in_place, "the kind itself is refused"


@pytest.mark.parametrize("kind", KINDS)
def test_the_way_back_is_in_place_where_the_preflight_lets_it_pass(kind: EndpointKind) -> None:
    money = Money(Decimal(900), Decimal(-400), Decimal(1), 1e6)
    target = Target("ml.g5.2xlarge", 2)
    option = restore_option(kind, ("ml.g5.xlarge", 1), target, samples.price("ml.g5.2xlarge", "1.515"), money, 9.0)
    assert option.restores
    assert option.in_place is not refused(kind, replace(option, in_place=True))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not EndpointKind.INFERENCE_COMPONENTS])
def test_no_instance_at_all_is_in_place_where_the_plan_of_it_is_made(kind: EndpointKind) -> None:
    option = samples.option(kind=OptionKind.SCALE_TO_ZERO, target=Target("ml.g5.xlarge", 1, minimum=0, idle_minutes=15))
    change = samples.change(NOW, option=option)
    runs = VariantCount(change.variant, "ml.g5.xlarge", 1, 1.0)
    inputs = preflight_input(proposal=proposed(kind=kind), option=option)
    assert inputs.config is not None
    before = Before("old", NOW, "", (runs,))
    given = Approved(change, inputs, inputs.config, before, kit.catalogue(), ChangeLimits())
    dimension = dimension_of(OptionKind.SCALE_TO_ZERO)
    assert (kind in dimension.applies_to) is isinstance(dimension.plan(given), PlannedChange)
