"""Components are read with their own autoscaling, tags and metrics; what cannot be read is a reason in its place."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from rightsizer import bootstrap
from rightsizer.aws.components import SageMakerComponents, component_sights
from rightsizer.aws.metrics import CloudWatchMetrics
from rightsizer.aws.session import Session
from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.component import Component, ComponentUsage, ReadComponents, UnreadComponent, copies_refusal
from rightsizer.domain.endpoint import EndpointKind, EndpointRef, ScalableTarget
from rightsizer.domain.policy import Policy
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import ReadError
from rightsizer.flows.evaluate import Evaluated, permission_for
from rightsizer.flows.read_usage import read_components
from rightsizer.recommender.proposal import proposal_for
from rightsizer.wire import dump_stored, load_stored
from sandbox.account import Sandbox
from tests.flows.test_reach import CATALOGUE, KEEPING
from tests.recommender import component_kit, kit

NAME = "models"
DENIED = "User is not authorized to perform this"


@pytest.fixture
def box() -> Sandbox:  # type: ignore[misc]
    with Sandbox() as account:
        bootstrap.set_clock(lambda: account.clock.now)
        account.add_endpoint(NAME, "ml.g5.xlarge", 2, inference_components=True)
        account.add_component("chat", NAME, copies=2)
        account.add_component("tone", NAME, base="chat")
        for name in ("chat", "tone"):
            account.use_component(name)
        yield account
        bootstrap.reset()


def read(box: Sandbox) -> ReadComponents:
    session, made = Session(region=box.region, attempts=1), component_kit.endpoint(2)
    endpoint = replace(made, ref=EndpointRef(box.account, box.region, NAME))
    found = read_components(SageMakerComponents(session), CloudWatchMetrics(session), endpoint, Policy(), box.clock.now)
    assert found is not None
    return found


def parts(box: Sandbox) -> dict[str, Component]:
    found = read(box)
    assert not isinstance(found, Reason)
    return {one.sight.name: one for one in found if isinstance(one, Component)}


def test_what_each_reserves_its_copies_tags_and_use_are_known(box: Sandbox) -> None:
    box.world.tags.put(box.world.fleet.arn("inference-component", "chat"), {"rightsizer:mode": "propose"})
    chat, tone = parts(box)["chat"], parts(box)["tone"]
    assert chat.sight.needs is not None
    assert (chat.sight.current, chat.sight.variant, chat.sight.needs.cpu_cores) == (2, "AllTraffic", 1.0)
    assert chat.sight.tags == {"rightsizer:mode": "propose"}
    assert isinstance(chat.usage, ComponentUsage)
    assert (chat.usage.concurrency, round(chat.usage.days)) == (0.4, 14)
    assert (tone.sight.base_component, tone.sight.needs, tone.scaling) == ("chat", None, None)


def test_its_own_scalable_target_is_its_own(box: Sandbox) -> None:
    who = {"ServiceNamespace": "sagemaker", "ResourceId": "inference-component/chat"}
    dimension = "sagemaker:inference-component:DesiredCopyCount"
    scaling = box.client("application-autoscaling")
    scaling.register_scalable_target(**who, ScalableDimension=dimension, MinCapacity=1, MaxCapacity=5)
    chat = parts(box)["chat"].scaling
    assert isinstance(chat, ScalableTarget)
    assert (chat.minimum, chat.maximum) == (1, 5)
    box.gate.fail("application-autoscaling", "DescribeScalableTargets", "AccessDeniedException", DENIED)
    unread = parts(box)["chat"].scaling
    assert isinstance(unread, Reason)
    assert unread.code is Code.PERMISSION_MISSING


def test_one_that_cannot_be_described_is_told_and_the_other_is_read(box: Sandbox) -> None:
    box.gate.fail("sagemaker", "DescribeInferenceComponent", "AccessDeniedException", DENIED)
    found = read(box)
    assert not isinstance(found, Reason)
    lost = [one for one in found if isinstance(one, UnreadComponent)]
    assert [one.reason.code for one in lost] == [Code.PERMISSION_MISSING]
    assert len(found) == 2


@pytest.mark.parametrize("left_out", ["CurrentCopyCount", "RuntimeConfig"])
def test_copies_that_aws_does_not_tell_are_unknown_and_not_none(box: Sandbox, left_out: str) -> None:
    service = box.world.components
    whole = service.DescribeInferenceComponent

    def without(params: Any) -> Any:
        answer = whole(params)
        held = answer if left_out == "RuntimeConfig" else answer["RuntimeConfig"]
        del held[left_out]
        return answer

    with patch.object(service, "DescribeInferenceComponent", without):
        found = read(box)
        with pytest.raises(ReadError, match="does not say how many copies run"):
            component_sights(box.client("sagemaker"), ["chat"])
        adapter = component_sights(box.client("sagemaker"), ["tone"])["tone"]
        assert adapter.current == 0, "an adapter has none of its own"
    assert not isinstance(found, Reason)
    lost = [one for one in found if isinstance(one, UnreadComponent)]
    assert [(one.name, one.reason.code) for one in lost] == [("chat", Code.READ_FAILED)]


def test_tags_that_cannot_be_read_are_told_as_that_and_not_as_absent(box: Sandbox) -> None:
    box.gate.fail("sagemaker", "ListTags", "AccessDeniedException", DENIED, times=9)
    box.gate.fail("resourcegroupstaggingapi", "GetResources", "AccessDeniedException", DENIED, times=9)
    refused = copies_refusal(parts(box)["chat"].sight, may_be_untagged=True)
    assert refused is not None
    assert refused.code is Code.PERMISSION_MISSING
    assert "the tags of component chat could not be read" in refused.sentence


def test_metrics_that_cannot_be_read_leave_the_rest_known(box: Sandbox) -> None:
    box.gate.fail("cloudwatch", "GetMetricData", "AccessDeniedException", DENIED)
    chat = parts(box)["chat"]
    assert chat.sight.current == 2
    assert isinstance(chat.usage, Reason)
    assert chat.usage.code is Code.PERMISSION_MISSING


def test_a_list_that_is_refused_is_one_reason_and_other_kinds_are_not_asked(box: Sandbox) -> None:
    box.gate.fail("sagemaker", "ListInferenceComponents", "AccessDeniedException", DENIED)
    found = read(box)
    assert isinstance(found, Reason)
    assert found.code is Code.PERMISSION_MISSING
    session, plain = Session(region=box.region, attempts=1), kit.endpoint(kind=EndpointKind.REAL_TIME)
    before = len(box.calls.of("sagemaker", "ListInferenceComponents"))
    reader = SageMakerComponents(session)
    assert read_components(reader, CloudWatchMetrics(session), plain, Policy(), box.clock.now) is None
    assert len(box.calls.of("sagemaker", "ListInferenceComponents")) == before


def test_days_before_it_was_modified_are_left_out(box: Sandbox) -> None:
    box.world.components.known["chat"].modified = box.clock.now - timedelta(days=2)
    usage = parts(box)["chat"].usage
    assert isinstance(usage, ComponentUsage)
    assert usage.days == pytest.approx(2, abs=0.05)


def proposed(**component: Any) -> Proposal:
    of = replace(component_kit.endpoint(), mode_declared=True)
    judged = component_kit.judged([component_kit.component(copies=4, **component)], of)
    found = proposal_for(judged, permission_for(KEEPING, CATALOGUE, DIMENSIONS, Evaluated(of, judged)), 14, kit.NOW)
    assert found is not None
    return found


def test_fewer_copies_can_be_approved_where_the_component_is_tagged_and_else_the_line_is_told() -> None:
    assert proposed().approvable
    bare = proposed(tags={})
    assert not bare.approvable
    assert "inference-component/chat --tags Key=rightsizer:mode,Value=propose" in bare.enable


def test_a_proposal_with_its_components_is_stored_and_read_whole() -> None:
    made = proposed()
    assert made.recommendation.components
    assert load_stored(Proposal, dump_stored(made)) == made
