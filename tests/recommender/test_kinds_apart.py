"""Endpoints of a kind that the program does not change, and of two kinds at once."""

from dataclasses import replace

import pytest

from rightsizer.domain.endpoint import Endpoint, EndpointKind, ScalableTarget
from rightsizer.domain.history import History
from rightsizer.domain.option import CHANGEABLE, OptionKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.recommender.shadow_test import NO_SHADOW
from tests.recommender import kit
from tests.recommender.kit import judge


def judged(endpoint: Endpoint) -> Recommendation:
    """Requests of which only a test can tell whether a cheaper type is fast enough."""
    window = kit.window(kit.steady(gpu=20.0, per_slot=200.0))
    return judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)


def slow(kind: EndpointKind) -> Endpoint:
    return kit.endpoint("ml.g6e.2xlarge", p95_s=0.9, kind=kind)


def test_a_plain_endpoint_is_tested() -> None:
    assert judged(slow(EndpointKind.REAL_TIME)).gate is Gate.TEST


UNJUDGED = {EndpointKind.RESERVED, EndpointKind.MIG}


@pytest.mark.parametrize("kind", sorted(set(EndpointKind) - CHANGEABLE - set(NO_SHADOW) - UNJUDGED))
def test_no_test_is_announced_on_a_kind_that_the_program_does_not_change(kind: EndpointKind) -> None:
    """Its shadow would be refused before the first write."""
    found = judged(slow(kind))
    assert (found.gate, found.gate_reason.code) == (Gate.SILENT, Code.RISK_TOO_HIGH)
    assert f"{kind.value} ones are changed by their owner" in found.gate_reason.sentence


def test_a_queue_that_scales_to_zero_does_so_whatever_else_its_endpoint_is() -> None:
    kinds = (EndpointKind.PIPELINE, EndpointKind.ASYNC)
    endpoint = replace(slow(kinds[0]), kinds=kinds, tags={"rightsizer:cold-start-ok": "true"})
    asleep = replace(endpoint, scaling=(ScalableTarget("endpoint/chat/variant/AllTraffic", "d", 0, 4),))
    (why,) = (e.reason for e in judged(asleep).excluded if e.dimension is OptionKind.SCALE_TO_ZERO)
    assert (why.code, why.sentence) == (Code.NOT_APPLICABLE, "its autoscaling goes down to 0 instances already")
