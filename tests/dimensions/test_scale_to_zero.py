"""No instance while nobody calls: why it is not offered, and where the plan of it is made."""

from dataclasses import replace
from decimal import Decimal

import pytest

from rightsizer.changes.dimension import PlannedChange
from rightsizer.dimensions.scale_to_zero import ScaleToZero
from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.history import History
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import Commitment
from rightsizer.domain.reason import Code
from rightsizer.domain.usage import MetricWindow
from rightsizer.recommender.queued_sleep import COLD_TAG
from tests.changes.test_preflight import TARGET, proposed
from tests.dimensions.kit import TYPE, bursts, judged, planned, said, why
from tests.recommender import kit
from tests.recommender.kit import judge


@pytest.mark.parametrize(
    ("endpoint", "window", "code", "said"),
    [
        pytest.param(kit.endpoint(), kit.window(kit.steady()), Code.NOT_CHEAPER, "0 quiet minutes a day", id="steady"),
        pytest.param(
            kit.endpoint(count=3), bursts(), Code.NOT_OPTED_IN, "callers would wait for a cold start", id="several"
        ),
        pytest.param(
            kit.endpoint(),
            bursts(),
            Code.NOT_OPTED_IN,
            "even after 240 minutes without a request, 112 of 1344 callers",
            id="cold",
        ),
    ],
)
def test_sleep_that_is_not_offered_says_why(endpoint: Endpoint, window: MetricWindow, code: Code, said: str) -> None:
    found = judged(endpoint, window)
    outs = [out for out in found.excluded if out.dimension is OptionKind.SCALE_TO_ZERO]
    assert [out.reason.code for out in outs] == [code]
    assert said in outs[0].reason.sentence


def test_sleep_that_a_commitment_pays_for_anyway_says_so() -> None:
    committed = Commitment(Decimal(9), known=True)
    cold = replace(kit.endpoint(), tags={COLD_TAG: "true"})
    found = judge(cold, [bursts()], kit.prices(commitment=committed), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    said = why(found, OptionKind.SCALE_TO_ZERO)
    assert "committed: $9.00 an hour" in said
    assert f"${found.usd_per_month:,.2f} a month" in said


ASLEEP = Target(TYPE, 1, minimum=0, idle_minutes=15)


def test_only_a_queue_keeps_what_comes_meanwhile() -> None:
    queued = proposed(kind=EndpointKind.ASYNC)
    found = planned(ScaleToZero(), ASLEEP, count=2, proposal=queued)
    assert isinstance(found, PlannedChange)
    assert found.plan.settle[0].params["MinCapacity"] == 0
    assert [step.kind for step in found.plan.restore][-1] is StepKind.SET_CAPACITY, "nothing else would start it again"
    assert planned(ScaleToZero(), ASLEEP) is Code.OTHER_KIND
    zero = replace(TARGET, minimum=0)
    assert planned(ScaleToZero(), ASLEEP, proposal=queued, scaling=(zero,)) is Code.CHANGED_SINCE


def test_what_brings_it_back_depends_on_where_it_sleeps() -> None:
    here = said(ScaleToZero(), in_place=True, restart_needed=False)
    deployed = said(ScaleToZero(), in_place=True, restart_needed=True)
    assert deployed[1].endswith("deploys the old configuration again and puts back the old copies of its components")
    parts = said(ScaleToZero(), in_place=False, restart_needed=False)
    beside = said(ScaleToZero(), in_place=False)
    assert [back.split()[-1] for _, back in (here, parts, beside)] == ["count", "components", "kept"]
