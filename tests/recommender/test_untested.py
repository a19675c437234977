"""The risk of a candidate without its test, and what the test would tell."""

from dataclasses import replace

import pytest

from rightsizer.domain.option import Risk
from rightsizer.domain.policy import Policy
from rightsizer.recommender.options import untested_risk
from tests.labelled import judged, read
from tests.recommender.plain import option
from tests.test_cases import CASES

QUIET = option(risk=Risk.VERY_LOW)


@pytest.mark.parametrize(
    ("fit", "fast", "risk"),
    [
        (1.0, 1.0, Risk.VERY_LOW),
        (0.99, 1.0, Risk.HIGH),
        (0.5, 1.0, Risk.HIGH),
        (1.0, 0.99, Risk.LOW),
        (1.0, 0.9, Risk.HIGH),
        (1.0, 0.5, Risk.VERY_HIGH),
        (0.8, 0.5, Risk.VERY_HIGH),
    ],
)
def test_an_open_fit_is_a_high_risk_and_an_open_speed_as_high_as_its_odds(fit: float, fast: float, risk: Risk) -> None:
    assert untested_risk(QUIET, fit, fast, Policy()) is risk


def test_it_is_never_lower_than_after_the_test() -> None:
    assert untested_risk(replace(QUIET, risk=Risk.VERY_HIGH), 1.0, 1.0, Policy()) is Risk.VERY_HIGH


@pytest.mark.parametrize(
    ("case", "tells"),
    [
        ("gpus-four-mode-propose", "whether the model starts on 1 of 4 GPUs"),
        ("test-needs-opt-in", "whether the model fits 22 GiB of GPU memory"),
        ("evidence-of-an-own-change", "whether the model fits 22 GiB of GPU memory"),
        ("evidence-of-metrics-alone", "how fast ml.g6.xlarge answers the same requests"),
    ],
)
def test_the_test_tells_what_is_open(case: str, tells: str) -> None:
    (path,) = (p for p in CASES if p.stem == case)
    found = judged(read(path)).chosen_option
    assert found is not None
    assert tells in found.test_tells
