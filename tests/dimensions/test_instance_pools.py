"""Today's type behind the new one: where it is offered, and what it costs."""

from dataclasses import replace

from rightsizer.changes.dimension import PlannedChange
from rightsizer.dimensions.instance_pools import InstancePools
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.option import OptionKind, Target
from tests.dimensions.kit import judged, only, planned, said, why
from tests.recommender import kit


def test_a_pool_names_the_new_type_first_and_costs_what_today_costs_while_the_fallback_serves() -> None:
    found = judged(kit.endpoint(p95_s=60.0), kit.window(kit.steady()))
    pool, chosen = only(found, OptionKind.INSTANCE_POOLS), found.chosen_option
    assert chosen is not None
    assert pool.target.pools == (chosen.target.instance_type, "ml.g6e.xlarge")
    assert pool.saving_usd_per_month == chosen.saving_usd_per_month
    assert f"USD {found.usd_per_month:,.2f}" in pool.facts["while the fallback serves"]
    assert "InstancePools" in pool.client_change


def test_no_pool_is_offered_in_a_region_that_has_none() -> None:
    away = replace(kit.endpoint(p95_s=60.0), ref=EndpointRef("111122223333", "af-south-1", "chat"))
    found = judged(away, kit.window(kit.steady()))
    assert OptionKind.INSTANCE_POOLS not in {option.kind for option in found.options}
    assert "af-south-1" in why(found, OptionKind.INSTANCE_POOLS)


def test_the_pools_are_named_in_their_order_and_deployed() -> None:
    target = Target("ml.g6.xlarge", 3, pools=("ml.g6.xlarge", "ml.g5.xlarge"))
    assert said(InstancePools(), target)[0] == "use the instance pools ml.g6.xlarge then ml.g5.xlarge"
    assert isinstance(planned(InstancePools(), target, deploys=True), PlannedChange)
