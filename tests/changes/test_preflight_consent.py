"""Who agreed and to what, in whole sentences: the person who is refused reads what to do."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.changes.approval import approver_refusal
from rightsizer.changes.preflight.consent import (
    approval_refusal,
    deletion_refusal,
    dimension_refusal,
    is_by_policy,
    is_minimum_given_back,
    mode_refusal,
)
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import PreflightInput
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate
from tests import samples
from tests.changes.test_preflight import NOW, PERSON, POLICY, TARGET, preflight_input, proposed

HOME = "aws:111122223333"
ADA = "cli:arn:aws:sts::111122223333:assumed-role/ml-oncall/ada"
ROLE = "cli:arn:aws:iam::111122223333:user/bob"


def by_policy(mode: str = "auto", gate: Gate = Gate.APPLY, **more: Any) -> PreflightInput:
    judged = more.pop("judged", {})
    return preflight_input(proposal=proposed(POLICY, gate=gate, **judged), tags={"rightsizer:mode": mode}, **more)


def test_automatic_mode_decided_where_the_decision_says_so() -> None:
    assert is_by_policy(by_policy())
    assert not is_by_policy(preflight_input())
    assert not is_by_policy(preflight_input(proposal=proposed(None)))


def test_automatic_mode_needs_its_tag_and_a_gate_of_apply() -> None:
    assert mode_refusal(by_policy()) is None
    for mode, gate in (("propose", Gate.APPLY), ("auto", Gate.PROPOSE), ("", Gate.APPLY)):
        said = f"automatic changes need the tag rightsizer:mode=auto and a gate of apply, not {mode!r}"
        assert mode_refusal(by_policy(mode, gate)) == Reason(Code.NOT_OPTED_IN, said)


def test_a_tag_that_is_no_longer_clear_ends_a_change_that_automatic_mode_decided() -> None:
    said = by_policy()
    unclear = replace(said, tags={**said.tags, "rightsizer:p95-ms": "fast"})
    found = mode_refusal(unclear)
    assert found is not None
    assert (found.code, "rightsizer:p95-ms is 'fast'" in found.sentence) == (Code.BAD_TAG, True)
    assert mode_refusal(replace(unclear, option=replace(unclear.option, restores=True))) is None


@pytest.mark.parametrize(
    ("tags", "untagged", "code", "is_now"),
    [
        ({"rightsizer:mode": "propose"}, False, None, ""),
        ({"rightsizer:mode": "auto"}, False, None, ""),
        ({"rightsizer:mode": "off"}, True, Code.MODE_OFF, "off"),
        ({"rightsizer:mode": "report"}, True, Code.NOT_OPTED_IN, "report"),
        ({}, False, Code.NOT_OPTED_IN, "absent"),
        ({}, True, None, ""),
    ],
)
def test_a_person_may_change_what_the_tag_allows(
    tags: dict[str, str], untagged: bool, code: Code | None, is_now: str
) -> None:
    found = mode_refusal(preflight_input(tags=tags, limits=ChangeLimits(change_untagged=untagged)))
    said = f"the tag rightsizer:mode is {is_now}; the role may change endpoints tagged propose or auto"
    assert found == (None if code is None else Reason(code, said))


def test_without_a_decision_nothing_begins() -> None:
    inputs = preflight_input(proposal=proposed(None))
    said = f"proposal {inputs.proposal.id} carries no decision"
    assert approval_refusal(inputs) == Reason(Code.NEEDS_APPROVAL, said)
    assert approval_refusal(preflight_input()) is None


def test_only_a_person_marks_an_endpoint_for_deletion() -> None:
    deletion = samples.option(kind=OptionKind.DELETE)
    said = "an endpoint is marked for deletion only after a person approved it"
    assert deletion_refusal(by_policy(option=deletion)) == Reason(Code.NEEDS_APPROVAL, said)
    assert deletion_refusal(preflight_input(option=deletion)) is None
    assert deletion_refusal(by_policy()) is None


def judged(kind: OptionKind) -> dict[str, Any]:
    return {"options": (samples.option(kind=kind),)}


def test_automatic_mode_changes_only_the_dimensions_that_the_settings_name_now() -> None:
    closed = ChangeLimits(dimensions=frozenset())
    routing = by_policy(judged=judged(OptionKind.ROUTING), limits=closed)
    known = ", ".join(sorted(closed.by_itself))
    said = f"routing is changed only after an approval; by itself only {known}"
    assert dimension_refusal(routing) == Reason(Code.NEEDS_APPROVAL, said)
    opened = replace(routing, limits=ChangeLimits(dimensions=frozenset({OptionKind.ROUTING})))
    assert dimension_refusal(opened) is None
    assert dimension_refusal(replace(routing, proposal=proposed(PERSON, gate=Gate.APPLY))) is None
    assert dimension_refusal(by_policy(gate=Gate.PROPOSE, judged=judged(OptionKind.ROUTING))) is None
    assert dimension_refusal(by_policy(judged=judged(OptionKind.DELETE))) is None, "it has its own refusal"


def test_what_was_judged_counts_and_not_the_pools_that_stand_in() -> None:
    pools = samples.option(kind=OptionKind.INSTANCE_POOLS)
    assert dimension_refusal(by_policy(option=pools)) is None
    alone = by_policy(option=pools, judged={"options": ()})
    found = dimension_refusal(alone)
    assert found is not None
    assert found.sentence.startswith(f"{OptionKind.INSTANCE_POOLS.value} is changed only after an approval")


LOWERED = PastChange(NOW, "ml.g5.4xlarge", "ml.g5.4xlarge", 4, 1, PastEnd.PROVEN, from_minimum=4)


def restoring(low: int | None, high: int | None, **changes: Any) -> PreflightInput:
    kind = changes.pop("kind", OptionKind.AUTOSCALING)
    target = Target("ml.g5.4xlarge", 1, minimum=low, maximum=high)
    option = samples.option(kind=kind, target=target, restores=changes.pop("restores", True))
    return preflight_input(option=option, **({"scaling": (TARGET,), "past": (LOWERED,)} | changes))


def test_a_minimum_goes_up_within_the_bounds_that_are_registered_now() -> None:
    for low, given in ((1, True), (3, True), (4, True), (0, False), (5, False), (None, False)):
        assert is_minimum_given_back(restoring(low, 4)) is given, low
    assert not is_minimum_given_back(restoring(3, 5)), "the maximum would move"
    assert not is_minimum_given_back(restoring(3, 4, restores=False))
    assert not is_minimum_given_back(restoring(3, 4, kind=OptionKind.INSTANCE_COUNT))
    assert not is_minimum_given_back(restoring(3, 4, scaling=()))
    other = replace(TARGET, resource_id="endpoint/chat/variant/w", maximum=9)
    assert is_minimum_given_back(restoring(3, 4, scaling=(TARGET, other))), "another variant's are not asked"
    assert not is_minimum_given_back(restoring(3, 9, scaling=(other,)))


def test_a_minimum_above_the_owners_own_needs_their_tag() -> None:
    was_two = replace(LOWERED, from_minimum=2)
    assert is_minimum_given_back(restoring(2, 4, past=(was_two,)))
    auto = proposed(POLICY, gate=Gate.APPLY, **judged(OptionKind.AUTOSCALING))
    beyond = restoring(3, 4, past=(was_two,), proposal=auto)
    assert not is_minimum_given_back(beyond)
    found = dimension_refusal(beyond)
    assert found is not None
    assert "a minimum of 3, and it was 2 before our changes" in found.sentence
    assert is_minimum_given_back(replace(beyond, tags={"rightsizer:may-grow": "100000"}))
    assert not is_minimum_given_back(replace(beyond, tags={"rightsizer:may-grow": "1"}))


def test_a_minimum_that_no_recorded_change_took_is_not_given_back() -> None:
    for past in ((), (replace(LOWERED, ended=PastEnd.ROLLED_BACK),), (replace(LOWERED, ended=PastEnd.TESTED),)):
        assert not is_minimum_given_back(restoring(3, 4, past=past))
    first = replace(LOWERED, to_count=3)
    second = replace(LOWERED, from_count=3, from_minimum=3)
    assert is_minimum_given_back(restoring(4, 4, past=(first, second))), "the owner's, not that of the last change"
    assert is_minimum_given_back(restoring(4, 4, past=(replace(LOWERED, from_minimum=None),))), "an older row"


def test_a_minimum_that_is_given_back_is_no_other_dimension() -> None:
    auto = proposed(POLICY, gate=Gate.APPLY, **judged(OptionKind.AUTOSCALING))
    inputs = restoring(3, 4, proposal=auto, limits=ChangeLimits(dimensions=frozenset()))
    assert dimension_refusal(inputs) is None
    assert dimension_refusal(replace(inputs, scaling=())) is not None


def refused(by: str, names: str, home: str = HOME) -> str:
    found = approver_refusal(by, Approvers.parse(names, home))
    assert found is None or found.code is Code.NOT_APPROVER
    return found.sentence if found is not None else ""


def test_whoever_is_on_the_list_decides_and_automatic_mode_is_not_on_it() -> None:
    for by in ("slack:U1", ADA, "policy"):
        assert refused(by, "U1,role/ml-oncall") == "", by
    assert refused(ADA, "") == "", "there is no list, so IAM alone decides"
    assert refused("slack:U9", "") == (
        "the Slack user U9 is not on the list Approvers, which is empty, so that nobody decides in Slack"
    )


def test_a_slack_user_who_is_not_on_the_list_is_named() -> None:
    assert refused("slack:U2", "U1") == "the Slack user U2 is not on the list Approvers"
    assert refused("slack:" + "U" * 99, "U1") == f"the Slack user {'U' * 80} is not on the list Approvers"


def test_an_identity_that_is_not_on_the_list_reads_who_is_and_what_to_add() -> None:
    arn = ADA.removeprefix("cli:")
    entry = "role/ml-oncall"
    found = refused(ADA, "role/dev,U1")
    assert f"({arn}) is not on the list Approvers; at a terminal it lets role/dev decide; " in found
    assert found.startswith(entry)
    assert found.endswith("to the stack's parameter Approvers, or somebody on the list answers in Slack")
    without = refused(ADA, "role/dev")
    assert without.endswith("to the stack's parameter Approvers")
    slack = refused(ADA, "U1")
    assert "; the list names Slack users only, so that nobody decides at a terminal; whoever deploys" in slack


def test_an_identity_of_another_account_is_named_once_by_its_whole_name() -> None:
    found = refused("cli:arn:aws:iam::999999999999:user/bob", "user/bob")
    assert found.startswith("arn:aws:iam::999999999999:user/bob is not on the list Approvers; ")
    assert refused(ROLE, "user/bob") == ""


@pytest.mark.parametrize(
    ("by", "who"), [("somebody", "somebody"), ("", "nobody"), ("cli:bob", "bob"), ("cli:" + "b" * 300, "b" * 200)]
)
def test_who_is_no_identity_of_aws_is_told_so(by: str, who: str) -> None:
    said = f"{who} is no identity that the list Approvers can name; at a terminal it lets role/dev decide"
    assert refused(by, "role/dev") == said


def test_a_long_list_is_cut_after_ten_names() -> None:
    names = [f"role/r{n:02}" for n in range(10)]
    assert f"it lets {', '.join(names)} decide" in refused("cli:bob", ",".join(names))
    assert f"it lets {', '.join(names)} and 2 more decide" in refused("cli:bob", ",".join([*names, "role/x", "role/y"]))


def test_an_arn_that_nobody_proved_at_a_terminal_is_no_identity() -> None:
    """Only the command line asks STS who calls; a claim of another source is a word."""
    assert refused(ADA, "role/ml-oncall") == ""
    said = "is no identity that the list Approvers can name"
    assert said in refused(ADA.replace("cli:", "letter:"), "role/ml-oncall")
