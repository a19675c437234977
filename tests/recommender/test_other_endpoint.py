"""Limits and arithmetic of serverless inference, which the dimension, the advice and the rest of the bill share."""

from decimal import Decimal

import pytest

from rightsizer.recommender.other_endpoint import break_even_requests, serverless_usd, vcpus_of, whole_gigabytes


@pytest.mark.parametrize(("need", "size"), [(0.2, 1), (1.0, 1), (1.01, 2), (6.0, 6), (6.01, None)])
def test_memory_comes_in_whole_gigabytes_up_to_six(need: float, size: int | None) -> None:
    assert whole_gigabytes(need) == size


def test_a_request_costs_its_seconds_times_its_gigabytes() -> None:
    assert serverless_usd(Decimal("0.00002"), 4, Decimal(1_000_000)) == Decimal(80)
    assert serverless_usd(0.00002, 2, 0.5) == pytest.approx(0.00002)


def test_both_cost_as_much_at_the_break_even() -> None:
    each = serverless_usd(0.00002, 4, 0.1)
    assert break_even_requests(80.0, each) * each == pytest.approx(80.0)


def test_vcpus_come_with_the_memory() -> None:
    assert vcpus_of(6) == pytest.approx(3.47, abs=0.01)
