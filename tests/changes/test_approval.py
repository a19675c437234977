"""The list of approvers asked about one person, and the rule of four eyes."""

from dataclasses import replace

import pytest

from rightsizer.changes.approval import approver_refusal, is_same_person
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.proposal import DecidedBy
from rightsizer.domain.reason import Code

HOME = "aws:111122223333"


def cli(role: str, session: str = "anna") -> str:
    return f"cli:arn:aws:sts::111122223333:assumed-role/{role}/{session}"


FOUR_EYES = Approvers(
    frozenset({"U0ANNA", "U0BERT", "role/search", "role/sre"}),
    HOME,
    place="owners.search.approvers",
    four_eyes=True,
    owners=frozenset({"U0ANNA", "role/search"}),
)


@pytest.mark.parametrize("by", ["slack:U0ANNA", cli("search"), cli("search", "somebody-else")])
def test_an_owner_does_not_approve_alone_and_is_told_who_can(by: str) -> None:
    refusal = approver_refusal(by, FOUR_EYES, approves=True)
    assert refusal is not None
    assert refusal.code is Code.NOT_APPROVER
    assert "owns what is decided on, so that somebody else on the list owners.search.approvers of the policy" in (
        refusal.sentence
    )


@pytest.mark.parametrize("by", ["slack:U0BERT", cli("sre")])
def test_somebody_else_on_the_list_approves(by: str) -> None:
    assert approver_refusal(by, FOUR_EYES, approves=True) is None


@pytest.mark.parametrize("by", ["slack:U0ANNA", cli("search")])
def test_an_owner_rejects_and_goes_back_alone(by: str) -> None:
    assert approver_refusal(by, FOUR_EYES) is None


def test_who_asked_for_a_test_or_an_order_does_not_approve_it_alone() -> None:
    asked = approver_refusal("slack:U0BERT", FOUR_EYES, approves=True, asked_by=("", "slack:U0BERT"))
    assert asked is not None
    assert "U0BERT asked for this" in asked.sentence
    assert approver_refusal(cli("sre"), FOUR_EYES, approves=True, asked_by=("", "slack:U0BERT")) is None
    assert approver_refusal(cli("sre"), FOUR_EYES, approves=True, asked_by=(cli("sre", "zoe"),)) is not None


def test_without_the_rule_owners_approve_what_they_asked_for() -> None:
    plain = replace(FOUR_EYES, four_eyes=False)
    assert approver_refusal("slack:U0ANNA", plain, approves=True, asked_by=("slack:U0ANNA",)) is None


def test_four_eyes_take_nobody_onto_the_list() -> None:
    refusal = approver_refusal("slack:U0ZOE", FOUR_EYES, approves=True)
    assert refusal is not None
    assert "U0ZOE is not on the list owners.search.approvers of the policy document" in refusal.sentence


def test_a_list_that_cannot_be_understood_lets_nobody_decide_and_says_why() -> None:
    broken = Approvers(home=HOME, place="defaults.approvers", unreadable="policy document, defaults.approvers: it is 3")
    for by in ("slack:U0ANNA", cli("sre")):
        refusal = approver_refusal(by, broken)
        assert refusal is not None
        assert "defaults.approvers: it is 3" in refusal.sentence
    assert approver_refusal("policy", broken) is None, "automatic mode is held by other rules"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("slack:U1", "slack:U1", True),
        ("slack:U1", "slack:U2", False),
        (cli("sre", "anna"), cli("sre", "bert"), True),
        (cli("sre"), cli("dev"), False),
        (cli("sre"), "cli:arn:aws:sts::444455556666:assumed-role/sre/anna", False),
        ("slack:U1", "cli:U1", False),
        ("cli:arn:aws:iam::111122223333:user/a", "cli:arn:aws:iam::111122223333:user/a", True),
    ],
)
def test_sessions_of_one_role_may_be_one_person(one: str, other: str, same: bool) -> None:
    assert is_same_person(DecidedBy.read(one), DecidedBy.read(other)) is same
