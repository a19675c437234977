"""Bills of options outside of the endpoint, the types that are cheaper, and what is said of them."""

from dataclasses import replace
from decimal import Decimal

import pytest

from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.price import Commitment
from rightsizer.domain.reason import Code, Reason
from rightsizer.recommender.other_endpoint import (
    Bill,
    bill_of,
    break_even,
    cheaper_types,
    migration_phases,
    no_saving_reason,
    other_kind,
    volume_notes,
)
from rightsizer.recommender.pricing import cost_of
from tests.recommender import kit, plain
from tests.recommender.plain_context import OTHER, TYPE, context

CATALOGUE = kit.catalogue(kit.OTHERS)


def bill(now: str = "1000", then: str = "800") -> Bill:
    return Bill(Decimal(then), Decimal(now) - Decimal(then), Decimal(1), 1.0, Decimal(now))


def test_a_bill_is_the_cost_of_another_fleet_beside_todays() -> None:
    seen, price = context(), kit.prices().find("ml.g4dn.xlarge")
    assert price is not None
    made = bill_of(seen, price, 1.5, 2, 0.25)
    cost = cost_of(seen.usd_per_month, price, 1.5, 2, 0.25, seen.inputs.prices.commitment, seen.policy, True)
    assert (made.usd_per_month, made.saving) == (cost.usd_per_month, cost.saving)
    assert (made.switch_usd, made.payback_days, made.now_usd) == (
        cost.switch_usd,
        cost.payback_days,
        seen.usd_per_month,
    )
    assert made.switch_usd > 0, "both fleets run for a while"


def test_types_below_todays_price_come_the_cheapest_first() -> None:
    seen = context()
    names = [TYPE, "ml.g4dn.2xlarge", OTHER, "ml.g4dn.xlarge", "ml.inf2.xlarge", "ml.unknown"]
    types = [replace(CATALOGUE.types.get(name, seen.runs), name=name) for name in names]
    found = cheaper_types(seen, types)
    assert [hardware.name for hardware, _ in found] == ["ml.g4dn.xlarge", "ml.g4dn.2xlarge", "ml.inf2.xlarge"]
    assert all(hardware.name == price.instance_type for hardware, price in found)
    prices = seen.inputs.prices
    alike = {"ml.b": prices.prices["ml.g4dn.xlarge"], "ml.a": prices.prices["ml.g4dn.xlarge"]}
    found_price = prices.find("ml.g4dn.xlarge")
    assert found_price is not None
    unlisted = replace(found_price, listed=False)
    priced = replace(prices, prices={**prices.prices, **alike, "ml.c": unlisted})
    told = replace(seen, inputs=replace(seen.inputs, prices=priced))
    same_cost = [replace(seen.runs, name=name) for name in ("ml.b", "ml.a", "ml.c")]
    assert [hardware.name for hardware, _ in cheaper_types(told, same_cost)] == ["ml.a", "ml.b"]


def test_what_saves_nothing_is_said_with_todays_bill_and_the_plan() -> None:
    seen = context()
    said = no_saving_reason(seen, "that")
    assert said == Reason(Code.NOT_CHEAPER, "that saves nothing: what runs costs $3,289.96 a month")
    plan = kit.prices(commitment=Commitment(Decimal(2), known=True))
    planned = no_saving_reason(replace(seen, inputs=replace(seen.inputs, prices=plan)), "that")
    assert planned.sentence == f"{said.sentence} (committed: $2.00 an hour)"


@pytest.mark.parametrize("kind", EndpointKind)
def test_only_real_time_and_asynchronous_endpoints_are_looked_at(kind: EndpointKind) -> None:
    seen = context()
    why = other_kind(replace(seen, endpoint=replace(seen.endpoint, kind=kind)))
    if kind in (EndpointKind.REAL_TIME, EndpointKind.ASYNC):
        assert why is None
    else:
        assert why == Reason(Code.OTHER_KIND, f"not looked at for the kind {kind.value}")


def test_until_where_it_saves() -> None:
    assert break_even(bill()) == "as dear as today if it carries 1.25 times less per instance than planned"
    assert "inf times less" in break_even(bill(then="0"))
    assert "1000.00 times less" in break_even(bill(then="1"))


def test_the_volumes_of_types_without_nvme_are_in_no_figure() -> None:
    types = CATALOGUE.types
    inf, cpu, stored = types["ml.inf2.xlarge"], types["ml.m5.2xlarge"], types[TYPE]
    assert (stored.has_local_nvme, inf.has_local_nvme) == (True, False)
    assert volume_notes(stored, stored) == ()
    (said,) = volume_notes(stored, inf)
    assert said == ("what the EBS volumes of ml.inf2.xlarge cost (up to 512 GB an instance): they are in no figure")
    (both,) = volume_notes(cpu, inf)
    assert "volumes of ml.inf2.xlarge and ml.m5.2xlarge cost" in both
    assert volume_notes(inf, inf) == volume_notes(inf, stored) == (said,)


def test_each_phase_of_a_migration_has_its_cost_and_its_condition() -> None:
    price = kit.prices().find("ml.inf2.xlarge")
    assert price is not None
    option = plain.option(
        kind=OptionKind.OTHER_ARCHITECTURE, target=Target("ml.inf2.xlarge", 2), price=price, usd_per_month=Decimal(730)
    )
    phases = migration_phases(option)
    assert list(phases) == ["phase 1, assess", "phase 2, pilot", "phase 3, roll out"]
    first, pilot, roll_out = phases.values()
    assert first.startswith("check that Neuron supports every operator and the precision; costs no instance; ")
    assert f"one ml.inf2.xlarge beside today's fleet for 7 days costs USD {Decimal('0.99') * 168:.2f}; go on" in pilot
    assert "each week in which both fleets run costs USD 168.00 more; done when" in roll_out
    assert migration_phases(replace(option, kind=OptionKind.INSTANCE_TYPE)) == {}
    assert migration_phases(replace(option, target=Target("ml.m8g.2xlarge", 2))) == {}
    assert len(migration_phases(replace(option, target=Target("ml.trn1.2xlarge", 2)))) == 3
