"""Consent right before the first write: the list of approvers, the tag, and the dimensions that the settings name."""

from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest

from rightsizer.changes.approval import approver_refusal
from rightsizer.changes.preflight import consent
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.change import ChangeState
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.policy import ChangeLimits, ChangeWindow
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate
from tests.changes.account import MONDAY, NEW_TYPE, OLD, OLD_TYPE
from tests.changes.memory import LIMITS, World, an_option, autoscaled, world
from tests.changes.test_preflight import POLICY, preflight_input, proposed

HOME = "aws:111122223333"
DEV = "cli:arn:aws:sts::111122223333:assumed-role/dev/ml-oncall"
ONCALL = "cli:arn:aws:sts::111122223333:assumed-role/ml-oncall/ada"
LIST = replace(LIMITS, approvers=Approvers.parse("U1,role/ml-oncall", HOME))
AUTO = {"rightsizer:mode": "auto"}
CLOSED = replace(LIMITS, dimensions=frozenset())


@pytest.mark.parametrize("by", ["slack:U1", ONCALL])
def test_an_approval_of_somebody_on_the_list_is_carried_out(by: str) -> None:
    w = world(limits=LIST, by=by)
    w.start()
    assert w.run(12).state is ChangeState.PROVEN


def test_automatic_mode_needs_nobody_on_the_list() -> None:
    w = world(limits=LIST, by="policy", tags=AUTO, gate=Gate.APPLY)
    w.start()
    assert w.run(12).state is ChangeState.PROVEN


def test_automatic_mode_begins_nothing_where_the_policy_document_says_no_by_then() -> None:
    w = world(limits=replace(LIMITS, automatic=False), by="policy", tags=AUTO, gate=Gate.APPLY)
    assert w.start().state is ChangeState.REFUSED
    assert "the policy document lets nothing of this endpoint change by itself" in w.shown().outcome
    assert world(limits=replace(LIST, automatic=False), by="slack:U1").start().state is ChangeState.RUNNING


@pytest.mark.parametrize("by", [DEV, "slack:U2", "somebody", "cli:role/ml-oncall"])
def test_an_approval_of_somebody_else_is_withdrawn_with_the_reason_and_touches_nothing(by: str) -> None:
    w = world(limits=LIST, by=by)
    w.account.unseen = "AWS is not asked"
    change = w.start()
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.NOT_APPROVER)
    assert w.shown().state is ProposalState.WITHDRAWN
    assert "not on the list Approvers" in change.outcome or "no identity that the list" in change.outcome
    assert any("list Approvers" in text for _, text in w.told)


def test_an_approval_without_a_decision_is_nobodys() -> None:
    assert world(limits=LIST, proposed={"decision": None}).start().state is ChangeState.REFUSED
    w = world(by=DEV, proposed={"decision": None})
    assert "carries no decision" in w.start().outcome


def test_without_a_list_an_approval_at_a_terminal_is_carried_out_and_one_of_slack_is_withdrawn() -> None:
    assert world(by=DEV).start().state is ChangeState.RUNNING
    w = world()
    w.limit(approvers=Approvers(frozenset(), HOME))
    change = w.start()
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.NOT_APPROVER)
    assert w.shown().state is ProposalState.WITHDRAWN
    assert "U1 is not on the list Approvers, which is empty, so that nobody decides in Slack" in change.outcome


def test_a_list_that_was_emptied_stops_no_change_that_has_begun() -> None:
    w = world()
    w.start()
    w.limit(approvers=Approvers(frozenset(), HOME))
    assert w.run(12).state is ChangeState.PROVEN


def test_who_left_the_list_while_the_change_waited_for_its_window_does_not_begin_it() -> None:
    window = ChangeWindow(days=frozenset({5}), start=time(8), end=time(18))
    w = world(limits=replace(LIST, window=window), by=ONCALL)
    assert w.start().state is ChangeState.PLANNED
    w.limit(approvers=Approvers.parse("U1", HOME))
    assert w.run(24 * 6).state is ChangeState.REFUSED
    assert w.shown().state is ProposalState.WITHDRAWN


def test_an_order_to_go_back_is_carried_out_whoever_gave_it() -> None:
    w = world(limits=LIST, by=ONCALL)
    w.start()
    w.run(12)
    w.ask_back(DEV)
    assert w.run(6).state is ChangeState.ROLLED_BACK


@pytest.mark.parametrize(
    ("tags", "code"),
    [({"rightsizer:mode": "off"}, Code.MODE_OFF), ({"rightsizer:mode": "report"}, Code.NOT_OPTED_IN), ({}, None)],
)
def test_the_tag_of_now_decides_whether_the_endpoint_may_be_changed(tags: dict[str, str], code: Code | None) -> None:
    change = world(tags=tags).start()
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, code or Code.NOT_OPTED_IN)
    opened = world(tags=tags, limits=replace(LIMITS, change_untagged=True)).start()
    assert (opened.state is ChangeState.RUNNING) == (not tags), "absent is not off"


@pytest.mark.parametrize(("mode", "gate"), [("propose", Gate.APPLY), ("auto", Gate.PROPOSE)])
def test_automatic_mode_needs_the_tag_and_the_gate_of_now(mode: str, gate: Gate) -> None:
    change = world(by="policy", tags={"rightsizer:mode": mode}, gate=gate).start()
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.NOT_OPTED_IN)


ROUTED = an_option(
    kind=OptionKind.ROUTING, target=Target(OLD_TYPE, 2, routing="LEAST_OUTSTANDING_REQUESTS"), by_itself=True
)
BOUNDS = an_option(kind=OptionKind.AUTOSCALING, target=Target(OLD_TYPE, 2, minimum=1, maximum=2), by_itself=True)


def by_policy(option: Option, *opened: OptionKind) -> World:
    limits: ChangeLimits = replace(LIMITS, dimensions=frozenset(opened))
    scaling: Any = autoscaled(1, 4) if option is BOUNDS else None
    return world(option, limits=limits, by="policy", tags=AUTO, gate=Gate.APPLY, scaling=scaling, count=3)


@pytest.mark.parametrize("option", [ROUTED, BOUNDS], ids=lambda o: o.kind.value)
def test_automatic_mode_changes_a_dimension_only_where_the_settings_name_it_now(option: Option) -> None:
    w = by_policy(option, option.kind)
    w.start()
    assert w.run(48).state is ChangeState.PROVEN, w.change.outcome
    closed = by_policy(option).start()
    assert closed.state is ChangeState.REFUSED
    assert f"{option.kind.value} is changed only after an approval" in closed.outcome


def raising(low: int, high: int, *, restores: bool = True) -> Option:
    target = Target(OLD_TYPE, low, minimum=low, maximum=high)
    return an_option(kind=OptionKind.AUTOSCALING, target=target, restores=restores)


def lower_before(w: World, minimum: int) -> None:
    """A change of ours took the minimum that was the owner's."""
    w.kept.past["c-0"] = PastChange(w.now, OLD_TYPE, OLD_TYPE, 3, 1, PastEnd.PROVEN, from_minimum=minimum)


def test_automatic_mode_raises_no_minimum_above_what_the_journal_says_was_the_owners() -> None:
    for minimum in (None, 2):
        option = raising(3, 4)
        w = world(option, limits=CLOSED, by="policy", tags=AUTO, gate=Gate.APPLY, scaling=autoscaled(1, 4))
        if minimum is not None:
            lower_before(w, minimum)
        change = w.start()
        assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.NEEDS_APPROVAL)


def way_back(changes: dict[str, Any], count: int = 1, gate: Gate = Gate.APPLY) -> World:
    """Mode propose: a change that a person approved turned out bad, and the policy decided on the way back."""
    back = an_option(target=Target(NEW_TYPE, count), restores=True)
    w = world(back, by="policy", tags={"rightsizer:mode": "propose"}, gate=gate, options=(back,))
    at = w.now - timedelta(days=1)
    done = PastChange(at, NEW_TYPE, OLD_TYPE, 1, 1, PastEnd.PROVEN, approved_by="slack:U1", approved_at=at)
    w.kept.past["c-0"] = replace(done, **({"to_config": OLD} | changes))
    return w


def test_the_approval_of_a_change_carries_its_way_back_out_without_another() -> None:
    w = way_back({})
    w.start()
    assert w.run(48).state is ChangeState.PROVEN, w.change.outcome
    assert w.past()[-1].restores
    assert w.past()[-1].approved_by == "", "the policy decided: from here nothing goes back again by itself"


@pytest.mark.parametrize(
    ("changes", "count", "gate"),
    [
        ({"approved_at": MONDAY - timedelta(days=15)}, 1, Gate.APPLY),
        ({"approved_by": "policy"}, 1, Gate.APPLY),
        ({"to_config": "theirs"}, 1, Gate.APPLY),
        ({"to_count": 2}, 1, Gate.APPLY),
        ({}, 2, Gate.APPLY),
        ({}, 1, Gate.PROPOSE),
    ],
    ids=["expired", "by-policy", "owner-edited", "owner-counted", "more-than-the-owners", "forged"],
)
def test_whatever_the_proposal_says_the_record_and_what_runs_decide(
    changes: dict[str, Any], count: int, gate: Gate
) -> None:
    change = way_back(changes, count, gate).start()
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.NOT_OPTED_IN)


def test_another_change_since_or_autoscaling_asks_a_person_again() -> None:
    w = way_back({})
    w.kept.past["c-1"] = replace(w.kept.past["c-0"], at=w.now, approved_by="", ended=PastEnd.ROLLED_BACK)
    assert w.start().state is ChangeState.REFUSED
    scaled = way_back({})
    target = autoscaled(1, 4)
    scaled.account.targets[target.resource_id] = target
    assert scaled.start().state is ChangeState.REFUSED
    w = way_back({})
    w.kept.past.clear()
    assert w.start().state is ChangeState.REFUSED, "a proposal alone proves nothing"


def test_a_change_remembers_who_approved_it_and_what_it_left() -> None:
    w = world(an_option())
    w.start()
    w.run(48)
    (past,) = w.past()
    config = w.change.plan.new_config
    assert (past.approved_by, past.approved_at, past.to_config) == ("slack:U1", MONDAY, config)


@pytest.mark.parametrize(
    ("option", "given"),
    [(raising(3, 4), True), (raising(3, 4, restores=False), False), (raising(3, 6), False)],
)
def test_automatic_mode_gives_back_a_minimum_within_the_owners_bounds_and_moves_no_other(
    option: Option, given: bool
) -> None:
    w = world(option, limits=CLOSED, by="policy", tags=AUTO, gate=Gate.APPLY, scaling=autoscaled(1, 4))
    lower_before(w, 3)
    change = w.start()
    (target,) = w.account.targets.values()
    assert change.state is (ChangeState.APPLIED if given else ChangeState.REFUSED), change.outcome
    assert (target.minimum, target.maximum) == ((3, 4) if given else (1, 4))


def test_a_minimum_that_was_raised_since_is_never_lowered() -> None:
    scaling = autoscaled(4, 4)
    w = world(raising(3, 4), by="policy", tags=AUTO, gate=Gate.APPLY, scaling=scaling, count=4)
    assert w.start().state is ChangeState.REFUSED
    assert next(iter(w.account.targets.values())).minimum == 4


def test_a_list_that_names_nobody_at_a_terminal_says_so() -> None:
    reason = approver_refusal(DEV, Approvers.parse("U1", HOME))
    assert reason is not None
    assert "the list names Slack users only" in reason.sentence
    assert "or somebody on the list answers in Slack" in reason.sentence
    assert approver_refusal(DEV, Approvers.parse("", HOME)) is None


def test_a_deletion_needs_a_person() -> None:
    option = an_option(kind=OptionKind.DELETE, target=Target(OLD_TYPE, 0), in_place=False)
    change = world(option, by="policy", tags=AUTO, gate=Gate.APPLY).start()
    assert change.state is ChangeState.REFUSED
    assert "only after a person approved it" in change.outcome
    assert world(option).start().state is ChangeState.APPLIED


def test_a_document_that_cannot_be_understood_withdraws_no_automatic_decision() -> None:
    auto = preflight_input(proposal=proposed(POLICY, gate=Gate.APPLY), tags=AUTO)
    closed = replace(auto.limits, automatic=False)
    assert consent.mode_refusal(replace(auto, limits=replace(closed, misread=("policy document: gone",)))) is None
    assert consent.mode_refusal(replace(auto, limits=closed)) is not None
