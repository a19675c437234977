"""From a recommendation to a proposal: asked once, and answerable only where the role could carry it out."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from rightsizer.domain.endpoint import Endpoint, EndpointKind, EndpointRef, Mode, Objective, Variant
from rightsizer.domain.option import Effort, Option, OptionKind, Risk, Target
from rightsizer.domain.price import Price
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender.proposal import (
    ChangePermission,
    permission_for_endpoint,
    permission_for_option,
    proposal_for,
)
from rightsizer.render import text
from rightsizer.render.sentences import RED
from rightsizer.render.slack import proposal_blocks
from tests.labelled import judged, read
from tests.test_cases import CASES

NOW = datetime(2026, 11, 21, tzinfo=UTC)
REF = EndpointRef("111122223333", "eu-west-1", "bert")
ENDPOINT = Endpoint(
    ref=REF,
    status="InService",
    config_name="bert-1",
    created_at=NOW,
    modified_at=NOW,
    kind=EndpointKind.REAL_TIME,
    kinds=(EndpointKind.REAL_TIME,),
    variants=(Variant("AllTraffic", "bert", "ml.g5.2xlarge", 1, 1, 1.0),),
    tags={},
    mode=Mode.AUTO,
    mode_declared=True,
    objective=Objective(),
    owner="",
    owned_by="",
)
OPTION = Option(
    kind=OptionKind.INSTANCE_TYPE,
    target=Target("ml.g5.xlarge", 1),
    price=Price("ml.g5.xlarge", "eu-west-1", Decimal("1.408"), "snapshot", "direct-hosting", "2026-04-21"),
    usd_per_month=Decimal(1000),
    saving_usd_per_month=Decimal(100),
    switch_usd=Decimal(1),
    payback_days=1,
    risks={},
    risk=Risk.LOW,
    confidence=3,
    effort=Effort.LOW,
    restart_needed=True,
    rollback_possible=True,
    in_place=True,
    client_change="",
    p95_s=None,
)
WHY = Reason(Code.CHEAPER_OPTION, "half of it is enough")
RECOMMENDATION = Recommendation(
    ref=REF,
    variant="AllTraffic",
    kind=EndpointKind.REAL_TIME,
    mode=Mode.AUTO,
    owner="",
    fingerprint="f1",
    evaluated_at=NOW,
    instance_type="ml.g5.2xlarge",
    instance_count=1,
    price=None,
    usd_per_month=None,
    finding=Finding.OVER_PROVISIONED,
    reason=WHY,
    gate=Gate.APPLY,
    gate_reason=WHY,
    options=(OPTION,),
    evidence=None,
)
IN_REACH = ChangePermission(True, "")


def test_automatic_mode_approves_by_policy_and_says_so() -> None:
    proposal = proposal_for(RECOMMENDATION, IN_REACH, 14, NOW)
    assert proposal is not None
    assert proposal.state is ProposalState.APPROVED
    assert proposal.decision is not None
    assert proposal.decision.by == "policy"
    assert proposal.expires_at == NOW + timedelta(days=14)


def test_what_the_role_cannot_reach_is_asked_and_not_applied() -> None:
    proposal = proposal_for(RECOMMENDATION, ChangePermission(False, "tag it"), 14, NOW)
    assert proposal is not None
    assert (proposal.state, proposal.approvable, proposal.enable) == (ProposalState.PENDING, False, "tag it")


def test_in_mode_propose_the_way_back_alone_is_approved_with_what_permits_it() -> None:
    back = tuple(replace(option, restores=True) for option in RECOMMENDATION.options)
    for mode, state in ((Mode.PROPOSE, ProposalState.APPROVED), (Mode.REPORT, ProposalState.PENDING)):
        found = proposal_for(replace(RECOMMENDATION, mode=mode, options=back), IN_REACH, 14, NOW)
        assert found is not None
        assert found.state is state
    asked = proposal_for(replace(RECOMMENDATION, mode=Mode.PROPOSE, options=back), IN_REACH, 14, NOW)
    assert asked is not None
    assert asked.decision is not None
    assert asked.decision.is_automatic
    assert asked.decision.comment == RECOMMENDATION.gate_reason.sentence


def test_a_mode_of_propose_never_applies_by_itself_whatever_the_gate_says() -> None:
    proposal = proposal_for(replace(RECOMMENDATION, mode=Mode.PROPOSE), IN_REACH, 14, NOW)
    assert proposal is not None
    assert proposal.state is ProposalState.PENDING


def test_silence_asks_nothing() -> None:
    assert proposal_for(replace(RECOMMENDATION, gate=Gate.SILENT), IN_REACH, 14, NOW) is None
    assert proposal_for(replace(RECOMMENDATION, options=()), IN_REACH, 14, NOW) is None


def test_the_same_option_is_asked_under_one_id_and_another_configuration_under_another() -> None:
    first = proposal_for(RECOMMENDATION, IN_REACH, 14, NOW)
    later = proposal_for(RECOMMENDATION, IN_REACH, 14, NOW + timedelta(days=1))
    changed = proposal_for(replace(RECOMMENDATION, fingerprint="f2"), IN_REACH, 14, NOW)
    assert first is not None
    assert later is not None
    assert changed is not None
    assert first.id == later.id != changed.id


@pytest.mark.parametrize(
    ("endpoint", "untagged", "words"),
    [
        (replace(ENDPOINT, owned_by="CloudFormation stack search"), False, "CloudFormation stack search"),
        (replace(ENDPOINT, kind=EndpointKind.MULTI_MODEL), False, "multi-model"),
        (replace(ENDPOINT, mode=Mode.REPORT), True, "rightsizer:mode is report"),
        (replace(ENDPOINT, mode=Mode.OFF), True, "rightsizer:mode is off"),
        (replace(ENDPOINT, mode=Mode.PROPOSE, mode_declared=False), False, "rightsizer:mode is absent"),
        (replace(ENDPOINT, mode=Mode.PROPOSE, tags={"rightsizer:mode": "AUTO"}), True, "rightsizer:mode is AUTO"),
    ],
)
def test_an_endpoint_out_of_reach_says_how_to_bring_it_in(endpoint: Endpoint, untagged: bool, words: str) -> None:
    permission = permission_for_endpoint(endpoint, writes=True, untagged=untagged)
    assert not permission.approvable
    assert words in permission.enable


def test_a_tag_is_not_offered_for_what_only_the_owner_can_carry_out() -> None:
    elsewhere = replace(OPTION, in_place=False, client_change="must call another endpoint")
    for permission in (IN_REACH, ChangePermission(False, "tag it", tag=True)):
        found = permission_for_option(elsewhere, permission)
        assert (found.approvable, "must call another endpoint" in found.enable) == (False, True)
    assert (
        permission_for_option(elsewhere, ChangePermission(False, "change it in Terraform")).enable
        == "change it in Terraform"
    )


def test_the_reach_mirrors_the_permissions_of_the_stack() -> None:
    untagged = replace(ENDPOINT, mode=Mode.PROPOSE, mode_declared=False)
    assert permission_for_endpoint(ENDPOINT, writes=True, untagged=False).approvable
    assert permission_for_endpoint(untagged, writes=True, untagged=True).approvable
    assert "MayChange" in permission_for_endpoint(ENDPOINT, writes=False, untagged=False).enable


@pytest.mark.parametrize("kind", [EndpointKind.REAL_TIME, EndpointKind.ASYNC, EndpointKind.MULTI_VARIANT])
def test_what_the_journal_changes_after_an_approval_can_be_approved(kind: EndpointKind) -> None:
    assert permission_for_endpoint(replace(ENDPOINT, kind=kind), writes=True, untagged=False).approvable


def test_an_option_that_is_not_carried_out_in_place_has_no_approve_button_and_is_never_automatic() -> None:
    away = replace(OPTION, kind=OptionKind.SERVERLESS, in_place=False, client_change="call another endpoint")
    proposal = proposal_for(replace(RECOMMENDATION, options=(away,)), IN_REACH, 14, NOW)
    assert proposal is not None
    assert (proposal.approvable, proposal.state) == (False, ProposalState.PENDING)
    assert "call another endpoint" in proposal.enable


def test_an_endpoint_whose_tags_could_not_be_read_is_out_of_reach_for_that_reason() -> None:
    blind = replace(ENDPOINT, mode=Mode.REPORT, tags_unread=Reason(Code.THROTTLED, "AWS throttles sagemaker:ListTags"))
    permission = permission_for_endpoint(blind, writes=True, untagged=True)
    assert (permission.approvable, permission.tag) == (False, False)
    assert "AWS throttles" in permission.enable


def test_a_shortage_without_an_option_is_told_in_red_with_what_a_person_can_do() -> None:
    (path,) = (path for path in CASES if path.stem == "grow-no-quota")
    found = judged(read(path))
    assert (found.finding, found.options) == (Finding.UNDER_PROVISIONED, ())
    told = proposal_for(found, IN_REACH, 14, NOW)
    assert told is not None
    assert (told.state, told.approvable) == (ProposalState.PENDING, False)
    again = proposal_for(replace(found, evaluated_at=NOW + timedelta(days=1)), IN_REACH, 14, NOW + timedelta(days=1))
    assert again is not None
    assert again.id == told.id, "the same shortage is told once"
    blocks = json.dumps(proposal_blocks(told), ensure_ascii=False)
    assert f"{RED}*{found.ref.name}: under-provisioned*" in blocks
    assert "the account's quota for ml.g6.xlarge endpoints is 1" in told.enable
    _, body = text.proposal(told)
    for said in (blocks, body):
        assert "no change that rightsizer knows ends this shortage" in said
        assert "aws logs tail /aws/sagemaker/Endpoints/" in said
        assert "rightsizer approve" not in said
        assert f"rightsizer reject {told.id}" in said


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.REPORT])
def test_an_owner_who_wants_no_message_gets_none_of_a_shortage_either(mode: Mode) -> None:
    short = replace(RECOMMENDATION, mode=mode, finding=Finding.UNDER_PROVISIONED, options=(), gate=Gate.SILENT)
    assert proposal_for(short, IN_REACH, 14, NOW) is None


def test_a_question_without_an_option_reaches_its_owner_once_and_cannot_be_approved() -> None:
    asked = replace(RECOMMENDATION, options=(), gate=Gate.PROPOSE, gate_reason=Reason(Code.NEEDS_APPROVAL, "set hours"))
    told = proposal_for(asked, IN_REACH, 14, NOW)
    assert told is not None
    assert (told.state, told.approvable, told.enable) == (ProposalState.PENDING, False, "set hours")
    again = proposal_for(replace(asked, evaluated_at=NOW + timedelta(days=1)), IN_REACH, 14, NOW + timedelta(days=1))
    assert again is not None
    assert again.id == told.id
    assert proposal_for(replace(asked, mode=Mode.REPORT), IN_REACH, 14, NOW) is None
    assert proposal_for(replace(asked, gate=Gate.SILENT), IN_REACH, 14, NOW) is None
