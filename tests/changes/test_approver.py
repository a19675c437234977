"""Who the list `Approvers` lets decide: Slack users by their ids, AWS identities by what STS says of them."""

import re
import string
from fnmatch import translate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rightsizer.changes.approval import approver_refusal
from rightsizer.domain.approvers import Approvers, Caller, is_match, may_decide
from rightsizer.domain.reason import Code
from rightsizer.flows.respond import is_approver

ACCOUNT, OTHER = "111122223333", "444455556666"
HOME = f"aws:{ACCOUNT}"
ONCALL = f"arn:aws:sts::{ACCOUNT}:assumed-role/ml-oncall/ada"
ADA = f"arn:aws:iam::{ACCOUNT}:user/research/eu/ada"
ROOT = f"arn:aws:iam::{ACCOUNT}:root"
FEDERATED = f"arn:aws:sts::{ACCOUNT}:federated-user/ada"
SIGNS = string.ascii_letters + string.digits + "_+=,.@-"


def allowed(arn: str, *entries: str, home: str = HOME) -> bool:
    return approver_refusal(f"cli:{arn}", Approvers(frozenset(entries), home)) is None


@pytest.mark.parametrize(
    ("arn", "entry"),
    [
        (ONCALL, "role/ml-oncall"),
        (ONCALL, "role/ml-*"),
        (ONCALL, "role/*"),
        (ONCALL, f"arn:aws:iam::{ACCOUNT}:role/ml-oncall"),
        (ONCALL, f"arn:aws:iam::{ACCOUNT}:role/*-oncall"),
        (ONCALL, f"arn:aws:iam::{ACCOUNT}:role/teams/ml/ml-oncall"),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/a,b/ada", "role/a*b"),
        (f"arn:aws:sts::{OTHER}:assumed-role/ml-oncall/ada", f"arn:aws:iam::{OTHER}:role/ml-oncall"),
        (ADA, "user/ada"),
        (ADA, f"arn:aws:iam::{ACCOUNT}:user/research/eu/ada"),
        (ADA, f"arn:aws:iam::{ACCOUNT}:user/research/*"),
        (ADA, f"arn:aws:iam::{ACCOUNT}:user/*/ada"),
        (ROOT, ROOT),
        (FEDERATED, FEDERATED),
        (FEDERATED, f"arn:aws:sts::{ACCOUNT}:federated-user/a*"),
    ],
)
def test_an_entry_names_an_identity(arn: str, entry: str) -> None:
    assert allowed(arn, "U1", entry)


@pytest.mark.parametrize(
    ("arn", "entry"),
    [
        (ONCALL, "user/ml-oncall"),
        (ONCALL, "role/ml"),
        (ONCALL, "role/ML-ONCALL"),
        (ONCALL, "role/ada"),
        (ONCALL, "role/ml-oncal?"),
        (ONCALL, "role/[m]l-oncall"),
        (ONCALL, "*"),
        (ONCALL, "arn:*"),
        (ONCALL, ONCALL),
        (ONCALL, f"arn:aws:sts::{ACCOUNT}:assumed-role/ml-oncall/*"),
        (ONCALL, "arn:aws:iam::*:role/ml-oncall"),
        (ONCALL, f"arn:aws:iam::{OTHER}:role/ml-oncall"),
        (ONCALL, f"arn:aws-cn:iam::{ACCOUNT}:role/ml-oncall"),
        (ONCALL, f"arn:aws:iam::{ACCOUNT}:role/teams/*"),
        (ONCALL, f"arn:aws:iam::{ACCOUNT}:user/ml-oncall"),
        (ADA, "role/ada"),
        (ADA, "user/eu"),
        (ADA, f"arn:aws:iam::{ACCOUNT}:user/ada"),
        (ROOT, "user/*"),
        (ROOT, "role/*"),
        (ROOT, "role/root"),
        (ROOT, f"arn:aws:iam::{OTHER}:root"),
        (FEDERATED, "user/ada"),
        (FEDERATED, "role/*"),
    ],
)
def test_an_entry_does_not_name_an_identity_that_only_looks_like_it(arn: str, entry: str) -> None:
    assert not allowed(arn, entry)


@pytest.mark.parametrize(
    "arn",
    [
        f"arn:aws:sts::{OTHER}:assumed-role/ml-oncall/ada",
        f"arn:aws-cn:sts::{ACCOUNT}:assumed-role/ml-oncall/ada",
        f"arn:aws-us-gov:sts::{ACCOUNT}:assumed-role/ml-oncall/ada",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/guest/role/ml-oncall",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/guest/ml-oncall",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/role/ml-oncall",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/ml-oncall/ada\n",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/guest/x\narn:aws:sts::{ACCOUNT}:assumed-role/ml-oncall/ada",
        f"\narn:aws:sts::{ACCOUNT}:assumed-role/ml-oncall/ada",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/ml-oncall",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/ml-oncall/",
        f"arn:aws:sts::{ACCOUNT}:assumed-role//ml-oncall/ada",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/ml-\u043encall/ada",  # a Cyrillic letter
        f"arn:aws:sts::{ACCOUNT}:assumed-role/ml\u2011oncall/ada",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/ml-oncall\u200b/ada",
        "arn:aws:sts::１１１１２２２２３３３３:assumed-role/ml-oncall/ada",
        f"arn:aws:sts:eu-west-1:{ACCOUNT}:assumed-role/ml-oncall/ada",
        f"arn:aws:iam::{ACCOUNT}:role/ml-oncall",
        f"arn:aws:iam::{ACCOUNT}:assumed-role/ml-oncall/ada",
        f"arn:aws:iam::{ACCOUNT}:user/role/ml-oncall",
        "role/ml-oncall",
        "",
    ],
)
def test_a_hostile_arn_is_not_the_role_of_the_list(arn: str) -> None:
    assert not allowed(arn, "role/ml-oncall", f"arn:aws:iam::{ACCOUNT}:role/ml-oncall")


def test_short_forms_name_nobody_where_the_account_of_the_stack_is_unknown() -> None:
    assert not allowed(ONCALL, "role/ml-oncall", home="")
    assert allowed(ONCALL, f"arn:aws:iam::{ACCOUNT}:role/ml-oncall", home="")


def test_without_a_list_at_a_terminal_and_in_automatic_mode_nobody_is_a_stranger() -> None:
    assert allowed(ONCALL)
    assert approver_refusal("slack:U9", Approvers()) is not None, "nobody decides in Slack then"
    assert approver_refusal("policy", Approvers(frozenset({"U1"}), HOME)) is None


@pytest.mark.parametrize(
    ("is_listed", "has_list", "in_slack", "behind_iam"),
    [(True, True, True, True), (False, True, False, False), (False, False, False, True)],
)
def test_without_a_list_only_iam_lets_decide(is_listed: bool, has_list: bool, in_slack: bool, behind_iam: bool) -> None:
    assert may_decide(is_listed=is_listed, has_list=has_list, is_behind_iam=False) is in_slack
    assert may_decide(is_listed=is_listed, has_list=has_list, is_behind_iam=True) is behind_iam


@pytest.mark.parametrize(
    ("entries", "in_slack", "in_apply", "at_a_terminal"),
    [
        ("", False, False, True),
        ("U1", True, True, False),
        ("U2", False, False, False),
        ("role/ml-oncall", False, False, True),
        ("U1,role/ml-oncall", True, True, True),
    ],
)
def test_the_table_of_who_may_decide_in_docs_security(
    entries: str, in_slack: bool, in_apply: bool, at_a_terminal: bool
) -> None:
    """U1 clicks, `apply` looks at the click of U1, the role ml-oncall answers at a terminal."""
    listed = Approvers.parse(entries, HOME)
    assert is_approver("U1", listed.slack_users) is in_slack
    assert (approver_refusal("slack:U1", listed) is None) is in_apply
    assert (approver_refusal(f"cli:{ONCALL}", listed) is None) is at_a_terminal


def test_a_slack_user_is_named_by_the_id_alone() -> None:
    listed = Approvers.parse("U1, role/ml-oncall ,,", HOME)
    assert approver_refusal("slack:U1", listed) is None
    for by in ("slack:U2", "slack:role/ml-oncall", "slack:", "U1", "cli:U1", "", "policy:U1"):
        found = approver_refusal(by, listed)
        assert found is not None, by
        assert found.code is Code.NOT_APPROVER


def test_the_refusal_names_the_caller_the_list_and_the_remedy_in_one_sentence() -> None:
    found = approver_refusal(f"cli:{ONCALL}", Approvers.parse("U1, user/ada, role/dev-*", HOME))
    assert found is not None
    assert found.sentence == (
        f"role/ml-oncall ({ONCALL}) is not on the list Approvers; at a terminal it lets role/dev-*, user/ada decide; "
        "whoever deploys rightsizer adds role/ml-oncall to the stack's parameter Approvers, or somebody on the list "
        "answers in Slack"
    )


def test_a_list_of_slack_users_lets_nobody_decide_at_a_terminal_and_says_so() -> None:
    found = approver_refusal(f"cli:{ONCALL}", Approvers.parse("U1,U2", HOME))
    assert found is not None
    assert "names Slack users only, so that nobody decides at a terminal" in found.sentence


def test_who_comes_from_another_account_is_told_the_whole_arn_to_add() -> None:
    found = approver_refusal(f"cli:arn:aws:sts::{OTHER}:assumed-role/ml-oncall/ada", Approvers.parse("role/*", HOME))
    assert found is not None
    assert f"adds arn:aws:iam::{OTHER}:role/ml-oncall to" in found.sentence
    assert "Slack" not in found.sentence


def test_a_long_list_is_cut_in_the_sentence() -> None:
    found = approver_refusal(f"cli:{ONCALL}", Approvers(frozenset(f"role/r{n}" for n in range(200)), HOME))
    assert found is not None
    assert "and 190 more" in found.sentence


def test_entries_of_no_known_form_are_listed_apart() -> None:
    listed = Approvers.parse(f"U1, role/x, u2, *, role/a/b, arn:aws:iam::{ACCOUNT}:role/p/*, {ROOT}", HOME)
    assert listed.slack_users == {"U1"}
    assert listed.terminal_entries == (ROOT, "role/x")
    assert listed.unknown_entries == ("*", f"arn:aws:iam::{ACCOUNT}:role/p/*", "role/a/b", "u2")


names = st.text(SIGNS, min_size=2, max_size=32)


@given(st.text("ab*", max_size=12), st.text("ab", max_size=12))
@example("a*a", "a")
@example("*", "")
def test_a_wildcard_stands_for_any_signs_and_nothing_else_is_special(pattern: str, text: str) -> None:
    assert is_match(pattern, text) is bool(re.fullmatch(translate(pattern), text))


@given(names, names, names)
def test_a_role_is_named_by_its_own_name_whatever_its_sessions_are_called(name: str, session: str, other: str) -> None:
    arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/{session}"
    caller = Caller.from_arn(arn)
    assert caller is not None
    assert allowed(arn, caller.entry(HOME))
    assert allowed(arn, caller.entry(f"aws:{OTHER}"))
    assert allowed(arn, f"role/{other.replace(',', '.')}") is (other.replace(",", ".") == name)


@given(names, st.lists(names, max_size=3))
def test_a_user_is_named_by_name_and_by_the_whole_arn(name: str, path: list[str]) -> None:
    arn = f"arn:aws:iam::{ACCOUNT}:user/{''.join(f'{part}/' for part in path)}{name}"
    caller = Caller.from_arn(arn)
    assert caller is not None
    assert allowed(arn, caller.entry(HOME))
    assert allowed(arn, caller.entry(f"aws:{OTHER}"))


@given(st.text(max_size=60), st.text(max_size=20))
def test_text_around_an_arn_never_makes_it_the_role_of_the_list(before: str, after: str) -> None:
    arn = f"{before}{ONCALL}{after}"
    ours = re.fullmatch(r"arn:aws:sts::111122223333:assumed-role/ml-oncall/[A-Za-z0-9_+=,.@-]{2,64}", arn)
    assert allowed(arn, "role/ml-oncall") is bool(ours)
