"""Of several production variants each is judged by its own metrics, and the endpoint gets one change."""

from dataclasses import replace
from decimal import Decimal

import pytest

from rightsizer.domain.endpoint import Endpoint, EndpointKind, ScalableTarget, Variant
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import NoMetrics
from rightsizer.recommender.pricing import monthly_cost
from rightsizer.render import sentences
from rightsizer.terminal.document import recommendation_document
from tests.recommender import kit
from tests.recommender.kit import judge

OTHER = Variant("Other", "chat", "ml.g5.12xlarge", 2, 2, 1.0)


def several(*others: Variant) -> Endpoint:
    made = kit.endpoint(kind=EndpointKind.MULTI_VARIANT)
    return replace(made, variants=(*made.variants, *others))


def judged(endpoint: Endpoint) -> Recommendation:
    days = [kit.window(kit.steady())]
    return judge(endpoint, days, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)


def test_what_is_said_names_the_variant_that_it_is_about() -> None:
    found = judged(several(OTHER))
    assert found.beside == ("Other (2 x ml.g5.12xlarge)",)
    assert found.reason.sentence.startswith("variant AllTraffic: ")
    assert sentences.headline(found).startswith("variant AllTraffic of chat can run on")
    assert sentences.today(found) == "1 × ml.g6e.xlarge (AllTraffic) and 2 × ml.g5.12xlarge (Other)"
    assert recommendation_document(found)["other_variants"] == ["Other (2 x ml.g5.12xlarge)"]
    other = kit.prices().find(OTHER.instance_type)
    assert found.price is not None
    assert other is not None
    assert found.usd_per_month == monthly_cost(found.price, 1) + monthly_cost(other, 2), "the bill is of both"


def test_of_one_variant_nothing_is_added() -> None:
    found = judged(several())
    assert found.beside == ()
    assert not found.reason.sentence.startswith("variant")
    assert sentences.today(found) == "1 × ml.g6e.xlarge"


def test_a_deployment_starts_the_fleets_of_the_others_anew_and_their_overlap_is_priced() -> None:
    alone, beside = judged(several()).chosen_option, judged(several(OTHER)).chosen_option
    price = kit.prices().find(OTHER.instance_type)
    assert alone is not None
    assert beside is not None
    assert price is not None
    more = price.usd_per_hour * 2 * Decimal(Policy().provision_minutes) / 60
    assert beside.target == alone.target
    assert float(beside.switch_usd - alone.switch_usd) == pytest.approx(float(more), abs=0.01)
    assert beside.payback_days > alone.payback_days


def test_bounds_of_another_variant_are_not_those_of_the_first() -> None:
    def bounds(variant: str) -> ScalableTarget:
        return ScalableTarget(f"endpoint/chat/variant/{variant}", "d", 1, 4)

    components = ScalableTarget("inference-component/part", "d", 1, 4)
    scaled = replace(several(OTHER), scaling=(bounds("AllTraffic"), bounds("Other"), components))
    first, second = scaled.views
    assert (first.variants[0].name, first.scaling) == ("AllTraffic", (bounds("AllTraffic"), components))
    assert (second.variants[0].name, second.scaling) == ("Other", (bounds("Other"), components))
    assert replace(several(), scaling=scaled.scaling).views == (replace(several(), scaling=scaled.scaling),)


def test_variants_that_were_not_read_are_named_where_no_metric_was_read_either() -> None:
    unread = NoMetrics("chat", "AllTraffic", Reason(Code.READ_FAILED, "it was refused"))
    found = judge(several(OTHER), [unread], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert found.beside == ("Other (2 x ml.g5.12xlarge)",)
    assert "Other (2 x ml.g5.12xlarge)" in found.not_checked[0]
    assert found.reason.sentence == "variant AllTraffic: it was refused"
