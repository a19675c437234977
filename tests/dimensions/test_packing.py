"""One card for several endpoints: why no partner is named."""

from typing import Any

import pytest

from rightsizer.dimensions.packing import Packing
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.reason import Code
from tests.dimensions.kit import TYPE, judged, planned, said, why
from tests.recommender import kit


@pytest.mark.parametrize(
    ("given", "usage", "said"),
    [
        pytest.param({"count": 2}, {}, "2 × ml.g6e.xlarge", id="two instances"),
        pytest.param({"instance_type": "ml.g5.12xlarge"}, {}, "with 4 GPUs each", id="four GPUs"),
        pytest.param({"framework": "vllm"}, {"memory": 90.0, "swing": 0.0}, "pre-allocates", id="hidden memory"),
        pytest.param({}, {"per_slot": 400.0, "gpu": 70.0}, "works 74 % of its card", id="busy"),
        pytest.param({}, {}, "the endpoints of ml-team that fit beside it", id="it could share"),
    ],
)
def test_packing_says_why_no_partner_is_named(given: dict[str, Any], usage: dict[str, float], said: str) -> None:
    found = judged(kit.endpoint(**{"p95_s": 0.72} | given), kit.window(kit.steady(**usage)))
    assert said in why(found, OptionKind.PACKING)
    assert (found.needs is None) is ("beside it" not in said)


def test_it_is_done_by_the_owners_of_all_partners() -> None:
    does, back = said(Packing(), Target(TYPE, 1))
    assert does == "share 1 × ml.g5.xlarge with other models"
    assert "endpoints of before" in back
    assert planned(Packing(), Target(TYPE, 1)) is Code.NOT_IN_PLACE
