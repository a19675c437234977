"""What autoscaled fleets are booked by: the instances that were priced, not those that they start from."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rightsizer.changes.measurement import planned_instances, realised_usd
from rightsizer.domain.change import Change
from rightsizer.domain.history import History
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.price import HOURS_PER_MONTH
from tests import samples
from tests.recommender import kit
from tests.recommender.kit import judge
from tests.recommender.test_dimensions import SCALED, allowing

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)


def under_a_wave() -> Option:
    """Lower bounds for a fleet whose load has one high wave a day, which autoscaling follows."""
    made = kit.steady(per_slot=4000.0, memory=90.0)
    for key in (("Invocations", "Sum"), ("GPUUtilization", "Average")):
        top = made[key]
        assert isinstance(top, float)
        made[key] = lambda i, top=top: top * (0.05 + 0.95 * math.sin(math.pi * (i % 288) / 288) ** 4)  # type: ignore[misc]
    scaling = (replace(SCALED, minimum=10, maximum=20),)
    endpoint = replace(kit.endpoint("ml.g5.xlarge", 10, p95_s=1.5), scaling=scaling)
    policy = allowing(OptionKind.AUTOSCALING)
    found = judge(endpoint, [kit.window(made)], kit.prices(), kit.catalogue(), {}, History(), policy, kit.NOW)
    return next(o for o in found.options if o.kind is OptionKind.AUTOSCALING)


def ran(option: Option, instances: float, hours: int = 730) -> Change:
    return samples.change(
        BEGAN,
        option=option,
        saving_usd_per_month=option.saving_usd_per_month,
        turned_at=BEGAN,
        counted_until=BEGAN + timedelta(hours=hours),
        instance_hours=instances * hours,
    )


def test_a_fleet_that_runs_as_it_was_priced_saves_what_was_promised() -> None:
    option = under_a_wave()
    paid = float(option.usd_per_month / option.price.usd_per_hour / HOURS_PER_MONTH)
    assert paid > 1.05 * option.target.instance_count, "autoscaling adds to what it starts from"
    assert float(realised_usd(ran(option, paid), 730.0)) == pytest.approx(float(option.saving_usd_per_month), rel=0.01)


def test_an_instance_more_than_priced_costs_what_an_instance_costs() -> None:
    option = under_a_wave()
    paid = float(option.usd_per_month / option.price.usd_per_hour / HOURS_PER_MONTH)
    more = realised_usd(ran(option, paid), 730.0) - realised_usd(ran(option, paid + 1), 730.0)
    assert float(more) == pytest.approx(float(option.price.usd_per_hour * HOURS_PER_MONTH), rel=0.01)


def test_an_option_of_an_older_program_is_booked_by_its_counts() -> None:
    option = replace(under_a_wave(), mean_instances=None)
    assert planned_instances(ran(option, 1.0)) == option.target.instance_count
