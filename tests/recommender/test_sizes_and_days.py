"""Smaller sizes of the same GPU are named, and few days make no option one of very low risk."""

from pathlib import Path

import pytest

from rightsizer.domain.option import Risk, RiskResource
from tests import labelled

CASES = Path(__file__).parents[1] / "cases"


@pytest.mark.parametrize(("days", "risk"), [(1.0, Risk.LOW), (2.0, Risk.LOW), (6.0, Risk.LOW), (8.0, Risk.VERY_LOW)])
def test_another_type_is_of_very_low_risk_only_from_the_days_on_that_automatic_mode_takes(
    days: float, risk: Risk
) -> None:
    found = labelled.judged({"endpoint": {"p95_s": 60.0}, "usage": {"days": int(days)}})
    assert found.options
    assert {o.risks[RiskResource.LATENCY] for o in found.options if not o.test_usd} == {risk}


def test_a_smaller_size_of_what_runs_is_an_option_or_ruled_out_by_name() -> None:
    case = labelled.read(CASES / "host-cpu-idle.yaml")
    assert case["endpoint"]["type"] == "ml.g6e.2xlarge"
    found = labelled.judged(case)
    named = {o.target.instance_type for o in found.options} | {e.instance_type for e in found.excluded}
    assert "ml.g6e.xlarge" in named
