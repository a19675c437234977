"""Messages stay within Slack's limits, say nothing that was not escaped, and offer only what can be done."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer import wire
from rightsizer.autoscaling.target_tracking import REQUESTS
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.message import Digest, DigestLine
from rightsizer.domain.option import OptionKind, Risk, RiskResource, Target
from rightsizer.domain.proposal import Decision, Proposal, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.render import text
from rightsizer.render.effects import risk_text
from rightsizer.render.slack import digest_blocks, proposal_blocks, proposal_text
from tests.samples import NOW, option, proposal, recommendation

LIMITS = {"plain_text": 3000, "mrkdwn": 3000}


def texts(tree: Any) -> list[dict[str, Any]]:
    if isinstance(tree, dict):
        return [tree] * (tree.get("type") in LIMITS) + [t for v in tree.values() for t in texts(v)]
    return [t for item in tree for t in texts(item)] if isinstance(tree, list) else []


def hold_the_limits(blocks: list[dict[str, Any]]) -> None:
    assert len(blocks) <= 50
    for block in blocks:
        assert len(block.get("fields", [])) <= 10
        assert all(len(field["text"]) <= 2000 for field in block.get("fields", []))
        assert len(block.get("elements", [])) <= (10 if block["type"] == "context" else 25)
        assert len(block.get("block_id", "")) <= 255
        if block["type"] == "header":
            assert len(block["text"]["text"]) <= 150
        for element in block.get("elements", []):
            if element["type"] == "button":
                assert len(element["text"]["text"]) <= 75
                assert len(element.get("value", "")) <= 2000
                assert len(element.get("url", "")) <= 3000
                assert len(element.get("confirm", {"text": {"text": ""}})["text"]["text"]) <= 300
    for found in texts(blocks):
        assert 1 <= len(found["text"]) <= 3000


def actions(blocks: list[dict[str, Any]]) -> list[str]:
    return [e["action_id"] for b in blocks if b["type"] == "actions" for e in b["elements"]]


def test_a_pending_proposal_offers_approve_reject_snooze_and_details() -> None:
    blocks = proposal_blocks(proposal(), "https://example.com/p")
    assert actions(blocks) == ["rightsizer_approve", "rightsizer_reject", "rightsizer_snooze", "rightsizer_details"]
    hold_the_limits(blocks)


def test_target_tracking_that_is_added_is_said_with_its_bounds_its_metric_and_its_target() -> None:
    target = Target("ml.g5.4xlarge", 1, minimum=1, maximum=4, metric=REQUESTS, target_value=84.0)
    added = recommendation(options=(option(kind=OptionKind.AUTOSCALING, target=target),))
    words = "scale between 1 and 4 instances by target tracking on SageMakerVariantInvocationsPerInstance at 84"
    asked = proposal(recommendation=added)
    assert words in json.dumps(proposal_blocks(asked))
    assert words in proposal_text(asked)
    assert words in "\n".join(text.proposal(asked))
    shown = wire.plain(added)["options"][0]["target"]
    assert {key: shown[key] for key in ("minimum", "maximum", "metric", "target_value")} == {
        "minimum": 1,
        "maximum": 4,
        "metric": REQUESTS,
        "target_value": 84.0,
    }


def test_the_value_of_a_button_is_the_opaque_id_and_nothing_else() -> None:
    blocks = proposal_blocks(proposal())
    values = {e["value"] for b in blocks if b["type"] == "actions" for e in b["elements"] if "value" in e}
    assert values == {"p-5f2c9a7d1e3b4c60"}


def test_the_first_line_answers_whose_what_how_much_and_how_risky() -> None:
    first = proposal_blocks(proposal(), owner="U0ADA123")[0]["text"]["text"]
    assert first == "<@U0ADA123> *chat-7b can run on 1 × ml.g5.xlarge: saves $4,141 a month* · low risk"
    group = proposal_blocks(proposal(), owner="S0TEAM123")[0]["text"]["text"]
    assert group.startswith("<!subteam^S0TEAM123> ")
    unknown = proposal_blocks(proposal())[0]["text"]["text"]
    assert unknown.endswith("· low risk · owner search")


def test_a_lost_availability_zone_is_told_beside_the_risk_of_the_load() -> None:
    asked = proposal()
    option = asked.recommendation.options[0]
    alone = replace(option, risk=Risk.MEDIUM, risks={**option.risks, RiskResource.AVAILABILITY: Risk.MEDIUM})
    asked = replace(asked, recommendation=replace(asked.recommendation, options=(alone,)))
    first = proposal_blocks(asked, owner="U0ADA123")[0]["text"]["text"]
    assert first.endswith("· low risk, one Availability Zone in place of two")
    assert risk_text(alone) == "low (1 of 4), and one Availability Zone in place of two"


def test_a_message_of_ten_seconds_has_four_blocks() -> None:
    blocks = proposal_blocks(proposal(), "https://example.com/p", "U0ADA123", "F0PICTURE1")
    assert [block["type"] for block in blocks] == ["section", "image", "actions", "context"]
    image = blocks[1]
    assert image["slack_file"] == {"id": "F0PICTURE1"}
    assert "chat-7b over 14 days: GPU use, GPU memory and p95 latency, with the limits of ml." in image["alt_text"]


def test_the_message_ends_with_what_was_measured() -> None:
    ended = proposal(
        state=ProposalState.PROVEN,
        change_id="c-1",
        measured_usd_per_month=Decimal("412.30"),
        decision=Decision(ProposalState.APPROVED, "slack:U1", NOW),
    )
    blocks = proposal_blocks(ended)
    assert blocks[0]["text"]["text"].startswith("*chat-7b, measured: $412 a month (estimated: $4,141)*")
    assert "measured: $412 a month" in proposal_text(ended)
    assert actions(blocks) == ["rightsizer_rollback"]


def test_what_was_rolled_back_is_announced_as_no_saving() -> None:
    measured = Decimal(412)
    back = replace(proposal(), state=ProposalState.ROLLED_BACK, outcome="An alarm.", measured_usd_per_month=measured)
    assert proposal_text(back) == (
        "chat-7b runs as before; the plan was to run on 1 × ml.g5.xlarge. Rolled back. An alarm."
    )


def test_what_was_measured_of_a_plan_is_held_against_each_stage_and_the_whole() -> None:
    """The measured figure is of the stages that stand, so the estimate of stage 1 alone would be another sum."""
    first, second = option(saving_usd_per_month=Decimal(1000)), option(saving_usd_per_month=Decimal(400))
    ended = proposal(
        state=ProposalState.PROVEN,
        change_id="c-2",
        measured_usd_per_month=Decimal(1350),
        recommendation=recommendation(options=(first,), stages=(second,)),
        decision=Decision(ProposalState.APPROVED, "slack:U1", NOW),
    )
    said = "*chat-7b, measured: $1,350 a month (estimated: $1,000 by stage 1, $1,400 by all 2 stages)*"
    assert proposal_blocks(ended)[0]["text"]["text"].startswith(said)


def test_a_deletion_says_what_an_approval_does_and_that_nothing_is_deleted() -> None:
    idle = recommendation(options=(option(kind=OptionKind.DELETE, in_place=False),))
    said = json.dumps(proposal_blocks(proposal(recommendation=idle)))
    assert "chat-7b is idle: deleting it saves" in said
    assert "Idle for 14 days. Approve: rightsizer watches it" in said
    assert "It deletes nothing." in said
    assert "cannot be carried out" not in said


def test_snooze_offers_three_times_and_each_answer_names_the_revision_that_is_shown() -> None:
    (menu,) = [e for b in proposal_blocks(proposal()) for e in b.get("elements", []) if e["type"] == "static_select"]
    assert [one["value"] for one in menu["options"]] == [f"p-5f2c9a7d1e3b4c60~0~{days}" for days in (7, 30, 90)]
    taken = proposal_blocks(proposal(revision=2))
    values = {e["value"] for b in taken if b["type"] == "actions" for e in b["elements"] if "value" in e}
    assert values == {"p-5f2c9a7d1e3b4c60~2"}


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("cli:arn:aws:sts::111122223333:assumed-role/ml-oncall/ada@example.com", "by ada@example.com (role ml-oncall)"),
        ("cli:arn:aws:iam::111122223333:user/ml/ada", "by user ml/ada"),
        ("cli:arn:aws:iam::111122223333:root", "by root"),
        ("cli:nonsense", "by nonsense"),
    ],
)
def test_an_approver_at_a_terminal_is_a_person_and_no_arn(by: str, said: str) -> None:
    decided = proposal(state=ProposalState.APPROVED, decision=Decision(ProposalState.APPROVED, by, NOW))
    assert said in json.dumps(proposal_blocks(decided))


def test_a_digest_names_the_largest_and_counts_the_rest() -> None:
    lines = tuple(DigestLine(f"p-{n}", f"chat-{n}", Decimal(n * 100)) for n in range(20))
    blocks = digest_blocks(Digest(lines))
    hold_the_limits(blocks)
    said = json.dumps(blocks)
    assert "20 new proposals: 19 could save $19,000 a month, 1 needs more or a decision" in said
    all_save = json.dumps(digest_blocks(Digest(lines[1:])))
    assert "19 new proposals could save $19,000 a month" in all_save
    assert "chat-19: saves $1,900 a month" in said
    assert "and 5 others" in said
    assert "chat-4:" not in said
    assert blocks[1]["text"]["text"].startswith("• chat-0: needs more or a decision\n• chat-19: "), (
        "who needs more is not cut off"
    )


def test_one_day_of_evidence_is_one_day() -> None:
    young = recommendation()
    assert young.evidence is not None
    young = replace(young, evidence=replace(young.evidence, days=1.2))
    assert "seen for 1 day, " in json.dumps(proposal_blocks(proposal(recommendation=young)))


def test_a_proposal_that_cannot_be_carried_out_has_no_approve_button_but_the_way_to_one() -> None:
    command = "aws sagemaker add-tags --tags Key=rightsizer:mode,Value=propose"
    blocks = proposal_blocks(proposal(approvable=False, enable=command))
    assert "rightsizer_approve" not in actions(blocks)
    assert command in json.dumps(blocks)
    assert "rightsizer approve" not in json.dumps(blocks)


def test_why_it_cannot_be_approved_is_a_sentence_and_only_what_is_copied_is_code() -> None:
    command = "aws sagemaker add-tags --tags Key=rightsizer:mode,Value=propose"
    blocks = proposal_blocks(
        proposal(approvable=False, enable=f"its tag is absent; its owner allows it with\n{command}")
    )
    said = f"*It cannot be approved here:* its tag is absent; its owner allows it with\n```{command}```"
    assert [one["text"]["text"] for one in blocks if said in str(one.get("text", {}).get("text"))] == [said]


@pytest.mark.parametrize("state", [s for s in ProposalState if s is not ProposalState.PENDING])
def test_no_button_decides_once_it_is_decided(state: ProposalState) -> None:
    blocks = proposal_blocks(proposal(state=state, decision=Decision(state, "slack:U1", NOW)), "https://example.com/p")
    stop = ["rightsizer_rollback"] if state is ProposalState.APPROVED else []
    assert actions(blocks) == [*stop, "rightsizer_details"]


def test_the_message_mentions_the_person_who_decided() -> None:
    decided = proposal(state=ProposalState.APPROVED, decision=Decision(ProposalState.APPROVED, "slack:U1", NOW))
    assert "Approved by <@U1>." in json.dumps(proposal_blocks(decided))


def spoilt(words: str) -> Proposal:
    ref = EndpointRef("1", "eu-west-1", "e" + words)
    found = recommendation(
        ref=ref,
        owner=words,
        reason=Reason(Code.CHEAPER_OPTION, "r" + words),
        options=(option(client_change=words),),
        not_checked=(words,),
    )
    return proposal(recommendation=found, outcome=words, approvable=False, enable=words)


def test_what_others_wrote_cannot_mention_the_channel() -> None:
    said = json.dumps(proposal_blocks(spoilt("<!channel> <https://evil|x> & more")))
    assert "<!channel>" not in said.replace('"plain_text", "text": "e<!channel>', "")
    markdown = [t["text"] for t in texts(proposal_blocks(spoilt("<!channel>"))) if t["type"] == "mrkdwn"]
    assert not [t for t in markdown if "<!" in t]


@given(st.text(min_size=1, max_size=6000) | st.sampled_from(["&" * 5000, "<" * 3000, "&lt;" * 2000]))
def test_no_text_breaks_the_limits_or_an_entity(words: str) -> None:
    blocks = proposal_blocks(spoilt(words), "https://example.com/" + words)
    hold_the_limits(blocks)
    for found in texts(blocks):
        if found["type"] == "mrkdwn":
            rest = found["text"].replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
            assert "&" not in rest


def test_the_plain_text_carries_the_commands_that_answer_it() -> None:
    subject, body = text.proposal(proposal(), "https://example.com/p")
    assert subject == "rightsizer: chat-7b can run on 1 × ml.g5.xlarge: saves $4,141 a month"
    assert "rightsizer approve p-5f2c9a7d1e3b4c60 --region eu-west-1" in body
    assert "rightsizer reject p-5f2c9a7d1e3b4c60 --region eu-west-1" in body
    assert "https://example.com/p" in body


def test_the_plain_text_of_what_cannot_be_approved_says_how_to_allow_it() -> None:
    _, body = text.proposal(proposal(approvable=False, enable="tag it"))
    assert "rightsizer approve" not in body
    assert "tag it" in body


def test_the_notification_line_says_where_a_decided_proposal_stands() -> None:
    line = proposal_text(replace(proposal(), state=ProposalState.ROLLED_BACK, outcome="The p95 alarm fired."))
    assert "Rolled back" in line
    assert "The p95 alarm fired." in line


def test_what_is_approved_and_has_not_begun_has_a_button_and_a_command_that_stop_it() -> None:
    decided = proposal(state=ProposalState.APPROVED, decision=Decision(ProposalState.APPROVED, "slack:U1", NOW))
    blocks = proposal_blocks(decided)
    assert actions(blocks) == ["rightsizer_rollback"]
    assert f"`rightsizer reject {decided.id} --region eu-west-1` stops it" in str(blocks)
    asked = proposal_blocks(replace(decided, asked_back_by="slack:U2"))
    assert actions(asked) == []
    assert "U2 asked to stop it." in str(asked)
