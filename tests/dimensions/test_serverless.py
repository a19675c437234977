"""A serverless endpoint, and the price below which it would pay."""

from rightsizer.dimensions.serverless import Serverless
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.reason import Code
from tests.dimensions.kit import judged, planned, said, why
from tests.recommender import kit


def test_serverless_names_the_price_below_which_it_would_pay() -> None:
    found = judged(kit.endpoint(p95_s=0.72), kit.window(kit.steady(gpu=0.02, memory=90.0)))
    # 6 GB for 0.5 s of 0.02 requests a second of a month (26,280 s) against USD 1,698.71
    assert "26280 s" in why(found, OptionKind.SERVERLESS)
    assert "USD 0.01077 per GB-second" in why(found, OptionKind.SERVERLESS)


def test_it_is_another_endpoint() -> None:
    assert said(Serverless())[0] == "become a serverless endpoint"
    assert planned(Serverless(), Target("", 0)) is Code.NOT_IN_PLACE
