"""A test that is offered says what it costs, lasts, tells and risks in each channel, and offers only what may be."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.option import Option, Risk
from rightsizer.domain.proposal import Decision, Proposal, ProposalState
from rightsizer.domain.recommendation import Gate
from rightsizer.render import effects, text
from rightsizer.render.slack import proposal_blocks
from tests.notifiers import said_in_slack
from tests.render.test_slack import actions, hold_the_limits
from tests.samples import NOW, option, proposal, recommendation

ID, THERE = "p-5f2c9a7d1e3b4c60", " --region eu-west-1"

OFFERED = option(
    test_usd=Decimal("9.10"),
    test_hours=2.0,
    test_tells="whether the model fits 22 GiB of GPU memory",
    risk=Risk.LOW,
    untested_risk=Risk.HIGH,
)
NEEDED = replace(OFFERED, untested_risk=Risk.VERY_HIGH, test_needed=True)


def asked(chosen: Option = OFFERED, gate: Gate = Gate.PROPOSE, **more: Any) -> Proposal:
    return proposal(recommendation=recommendation(options=(chosen,), gate=gate), **more)


def elements(shown: Proposal) -> list[dict[str, Any]]:
    return [e for b in proposal_blocks(shown) if b["type"] == "actions" for e in b["elements"]]


@pytest.mark.parametrize(
    ("shown", "offered"),
    [
        (asked(), ["test", "approve", "reject", "snooze"]),
        (asked(NEEDED), ["test", "reject", "snooze"]),
        (asked(gate=Gate.TEST), ["test", "reject", "snooze"]),
        (asked(option()), ["approve", "reject", "snooze"]),
        (asked(approvable=False, enable="tag it"), ["reject", "snooze"]),
        (asked(state=ProposalState.APPROVED), ["rollback"]),
    ],
    ids=["offered", "needed", "gate test", "no test", "not approvable", "decided"],
)
def test_the_buttons_are_what_may_be_decided(shown: Proposal, offered: list[str]) -> None:
    blocks = proposal_blocks(shown)
    hold_the_limits(blocks)
    assert actions(blocks) == [f"rightsizer_{verb}" for verb in offered]


def test_the_buttons_are_named_by_the_choice_that_they_are() -> None:
    test, approve, *_ = elements(asked())
    assert (test["text"]["text"], approve["text"]["text"]) == ("Run the test", "Approve without it")
    assert elements(asked(option()))[0]["text"]["text"] == "Approve"


def test_who_runs_the_test_confirms_what_it_does_and_what_only_they_can_know() -> None:
    said = elements(asked())[0]["confirm"]["text"]["text"]
    for part in (
        "2 h on ml.g5.xlarge for about $9.10",
        "the fleet is deployed twice",
        "each request is served twice meanwhile",
        "Do not run it where a request writes, bills or sends something.",
        "Where it proves well, the change follows.",
    ):
        assert part in said


def test_who_approves_without_it_confirms_the_risk_of_that() -> None:
    said = elements(asked())[1]["confirm"]["text"]["text"]
    assert "Without the test the performance risk is high (3 of 4)." in said
    assert "It goes back by itself" in said


def test_the_message_has_cost_hours_answer_and_both_risks() -> None:
    whole = str(said_in_slack(asked()))
    assert "2 h on ml.g5.xlarge for about $9.10; it tells whether the model fits 22 GiB of GPU memory" in whole
    assert "low (1 of 4) after the test, high (3 of 4) without it" in whole
    assert f"`rightsizer test {ID}{THERE}` · `rightsizer approve {ID}{THERE}`" in whole


def test_the_mail_has_the_commands_to_type_each_with_what_it_does() -> None:
    _, body = text.proposal(asked())
    assert "Test:    2 h on ml.g5.xlarge for about $9.10; it tells whether" in body
    assert f"  rightsizer test {ID}{THERE}  # the shadow test first; where it proves well, the change" in body
    assert f"  rightsizer approve {ID}{THERE}  # the change without the test, at performance risk 3 of 4" in body
    assert "# Do not run it where a request writes, bills or sends something." in body


def test_where_the_test_is_needed_no_command_goes_without_it() -> None:
    assert [line for line, _ in effects.commands(asked(NEEDED))] == [
        "rightsizer test p-5f2c9a7d1e3b4c60 --region eu-west-1"
    ]
    assert effects.commands(asked(option())) == [("rightsizer approve p-5f2c9a7d1e3b4c60 --region eu-west-1", "")]
    assert effects.commands(asked(approvable=False)) == []


def test_a_test_of_before_its_price_and_its_answer_were_stored_is_offered_with_what_is_known() -> None:
    found = asked(option(facts={"test hours": "3"}), gate=Gate.TEST).recommendation
    assert effects.offer_text(found).startswith("3 h on ml.g5.xlarge; each request is served twice")
    assert effects.untested_warning(found) == ""


def test_the_message_follows_test_and_change_to_the_end() -> None:
    first = Decision(ProposalState.APPROVED, "slack:U1", NOW, test_first=True)
    steps = (
        (ProposalState.APPROVED, "", "", "Approved with the test first by U1. The test starts within minutes"),
        (ProposalState.APPLYING, "c-1", "the shadow test runs until 11:00", "Being tested, or changed after the test"),
        (ProposalState.APPROVED, "c-1", "tested: 1.02 of today's; the change follows", "Approved with the test first"),
        (ProposalState.PROVEN, "c-2", "proven; before it tested: 1.02", "Changed and proven."),
    )
    for state, change, outcome, said in steps:
        shown = asked(state=state, decision=first, change_id=change, outcome=outcome)
        standing = str(proposal_blocks(shown)[1]).replace("<@U1>", "U1")
        assert said in standing
        assert outcome in standing
    waits = asked(state=ProposalState.APPROVED, decision=first, change_id="c-1", outcome="tested")
    assert "starts within minutes" not in str(proposal_blocks(waits)[1])
