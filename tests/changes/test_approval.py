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


TEAM = Approvers(frozenset({"U0ANNA", "role/sre", "user/bert"}), HOME)


def sentence(by: str, approvers: Approvers) -> str:
    """Why the list does not let somebody decide."""
    refusal = approver_refusal(by, approvers)
    assert refusal is not None
    assert refusal.code is Code.NOT_APPROVER
    return refusal.sentence


@pytest.mark.parametrize("by", ["slack:U0ANNA", cli("sre"), "cli:arn:aws:iam::111122223333:user/bert"])
def test_whoever_is_on_the_list_decides(by: str) -> None:
    assert approver_refusal(by, TEAM) is None


def test_an_empty_list_lets_the_terminal_decide_whose_wall_is_iam_and_nobody_in_slack() -> None:
    empty = Approvers(home=HOME)
    assert approver_refusal(cli("dev"), empty) is None
    assert sentence("slack:U0ANNA", empty) == (
        f"the Slack user U0ANNA is not on {empty.title}, which is empty, so that nobody decides in Slack"
    )


def test_a_slack_user_who_is_not_on_the_list_is_told_whose_list_it_is() -> None:
    assert sentence("slack:U0ZOE", TEAM) == f"the Slack user U0ZOE is not on {TEAM.title}"
    assert sentence("slack:" + 100 * "Z", TEAM).startswith(f"the Slack user {80 * 'Z'} is not")


def test_a_role_that_is_not_on_the_list_is_told_who_may_and_how_to_get_onto_it() -> None:
    assert sentence(cli("dev"), TEAM) == (
        f"role/dev (arn:aws:sts::111122223333:assumed-role/dev/anna) is not on {TEAM.title}; at a terminal it lets"
        " role/sre, user/bert decide; whoever deploys rightsizer adds role/dev to the stack's parameter Approvers, or"
        " somebody on the list answers in Slack"
    )


def test_an_identity_whose_arn_is_the_entry_is_named_once_and_the_place_of_the_list_is_said() -> None:
    root = "arn:aws:iam::111122223333:root"
    listed = Approvers(frozenset({"role/sre"}), HOME, place="defaults.approvers")
    assert sentence(f"cli:{root}", listed) == (
        f"{root} is not on {listed.title}; at a terminal it lets role/sre decide;"
        f" whoever deploys rightsizer adds {root} to defaults.approvers of the policy document"
    )


def test_a_role_of_another_account_is_named_by_its_arn_and_not_by_its_short_form() -> None:
    refusal = sentence("cli:arn:aws:sts::444455556666:assumed-role/sre/anna", TEAM)
    assert "adds arn:aws:iam::444455556666:role/sre to" in refusal


def test_a_list_of_slack_users_says_that_nobody_decides_at_a_terminal() -> None:
    slack_only = Approvers(frozenset({"U0ANNA"}), HOME)
    assert "the list names Slack users only, so that nobody decides at a terminal" in sentence(cli("sre"), slack_only)


@pytest.mark.parametrize(("size", "end"), [(10, "role/r09 decide"), (11, "role/r09 and 1 more decide")])
def test_a_long_list_is_named_by_its_first_ten_entries(size: int, end: str) -> None:
    many = Approvers(frozenset(f"role/r{i:02}" for i in range(size)), HOME)
    assert f"role/r00, role/r01, role/r02, role/r03, role/r04, role/r05, role/r06, role/r07, role/r08, {end};" in (
        sentence(cli("sre"), many)
    )


@pytest.mark.parametrize(
    ("by", "named"),
    [
        ("cli:not an ARN", "not an ARN"),
        ("event:arn:aws:sts::111122223333:assumed-role/sre/anna", "arn:aws:sts::111122223333:assumed-role/sre/anna"),
        ("cli:", "cli:"),
        ("", "nobody"),
        ("cli:" + 300 * "x", 200 * "x"),
    ],
)
def test_what_is_no_identity_decides_nothing_not_even_with_the_arn_of_an_approver_from_elsewhere(
    by: str, named: str
) -> None:
    assert sentence(by, TEAM) == (
        f"{named} is no identity that {TEAM.title} can name; at a terminal it lets role/sre, user/bert decide"
    )


def test_a_list_that_cannot_be_understood_refuses_by_the_code_of_approvers() -> None:
    assert (
        sentence("slack:U0ANNA", replace(TEAM, unreadable="it is 3")) == "nobody decides until it is put right: it is 3"
    )


def test_the_rule_of_four_eyes_names_no_more_than_two_hundred_letters_of_a_person() -> None:
    long = "U" + 300 * "A"
    everybody = replace(FOUR_EYES, entries=frozenset({long}), owners=frozenset({long}))
    refusal = approver_refusal(f"slack:{long}", everybody, approves=True)
    assert refusal is not None
    assert refusal.sentence.startswith(f"four eyes: U{199 * 'A'} owns")


@pytest.mark.parametrize(("one", "other"), [(cli("sre"), "cli:x"), ("cli:x", cli("sre"))])
def test_an_identity_and_what_is_none_are_two_persons(one: str, other: str) -> None:
    assert not is_same_person(DecidedBy.read(one), DecidedBy.read(other))
