"""A person decides "test first": the test runs, an evaluation judges by it, and the change follows or does not."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.changes.overruled import slow_test_reason
from rightsizer.changes.shadow_test_result import change_id_after, passed_test
from rightsizer.domain.change import Change, ChangeState, PassedTest
from rightsizer.domain.option import OptionKind, Risk, Target
from rightsizer.domain.plan import PlanKind, StepKind
from rightsizer.domain.proposal import PATIENCE, Decision, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate
from rightsizer.flows import apply_orders
from tests.changes.account import MONDAY, NAME, NEW_TYPE, OLD, OLD_TYPE, Load
from tests.changes.memory import World, an_option, autoscaled, world

OPTION = an_option(
    test_hours=1.0,
    switch_usd=Decimal(80),
    test_usd=Decimal("4.5"),
    test_tells="whether the model fits 22 GiB of GPU memory",
    risk=Risk.LOW,
    untested_risk=Risk.HIGH,
)
WORTH = Reason(Code.TEST_WORTH_IT, "worth a test first")
TEST_FIRST = Decision(ProposalState.APPROVED, "slack:U1", MONDAY, test_first=True)
TAGS = {"rightsizer:mode": "propose"}


def asked(decision: Decision = TEST_FIRST, **known: Any) -> World:
    """An endpoint without leave to serve requests twice, of which somebody answered the proposal with a test."""
    given: dict[str, Any] = {"tags": TAGS, "gate": Gate.PROPOSE, "gate_reason": WORTH, "count": 1}
    return world(OPTION, proposed={"decision": decision}, **given | known)


def sure(w: World, at: datetime | None = None, **changes: Any) -> None:
    """An evaluation that knows what the test measured lists the type without a test."""
    option = replace(OPTION, test_usd=Decimal(0), untested_risk=None, test_tells="")
    fields: dict[str, Any] = {"options": (option,), "gate_reason": Reason(Code.NEEDS_APPROVAL, "ask")}
    w.kept.judge(
        replace(w.proposal.recommendation, evaluated_at=at or w.now + timedelta(seconds=1), **fields | changes)
    )


def finished(w: World) -> Change:
    """The test has run to its end."""
    w.start()
    change = w.run(12)
    assert change.is_closed, change.outcome
    return change


def follow_up(w: World) -> Change:
    test = passed_test(w.change)
    assert test is not None
    return w.kept.changes[change_id_after(test)]


def on(w: World, hours: float) -> Change:
    """Ticks of five minutes after the test; the change that follows it."""
    for _ in range(int(hours * 12)):
        w.advance(timedelta(minutes=5))
        w.apply.tick(w.now)
    return follow_up(w)


def test_the_test_runs_without_the_tag_because_a_person_allowed_it_for_this_once() -> None:
    w = asked()
    change = finished(w)
    assert change.plan.kind is PlanKind.SHADOW_TEST
    assert (change.state, w.account.config_name) == (ChangeState.ROLLED_BACK, OLD)
    assert [(past.ended, past.latency_ratio is not None) for past in w.past()] == [("tested", True)]


def test_a_test_that_proved_well_brings_the_proposal_back_as_approved_and_says_what_follows() -> None:
    w = asked()
    change = finished(w)
    assert w.shown().state is ProposalState.APPROVED
    assert "tested: the mean latency on ml.g5.xlarge was 1.00 times today's" in w.shown().outcome
    assert "the change follows by the same approval" in w.shown().outcome
    assert w.told[-1][0] == f"{NAME}: shadow test passed, the change follows"
    assert w.apply.answer_to_approval(w.shown()).waits_since(w.shown()) == change.journal[-1].at


def test_the_change_waits_for_an_evaluation_that_knows_the_test_then_follows_and_is_proven() -> None:
    w = asked()
    finished(w)
    waiting = w.start()
    assert (waiting.state, waiting.plan.kind) == (ChangeState.PLANNED, PlanKind.CHANGE)
    assert "waits for an evaluation that knows what it measured" in waiting.outcome
    assert w.account.config_name == OLD
    sure(w)
    change = on(w, 8)
    assert change.state is ChangeState.PROVEN, change.outcome
    (variant,) = w.account.configs[w.account.config_name]["ProductionVariants"]
    assert variant["InstanceType"] == NEW_TYPE
    assert (w.shown().state, w.shown().change_id) == (ProposalState.PROVEN, change.id)
    assert "Before the change it was tested: the mean latency" in w.shown().outcome


def test_the_change_that_follows_rests_no_day_after_its_own_test() -> None:
    w = asked()
    finished(w)
    sure(w, w.now + timedelta(minutes=1))
    w.start()
    assert on(w, 2).turned_at is not None


def test_both_the_test_and_the_change_are_booked_once() -> None:
    w = asked()
    finished(w)
    sure(w)
    w.start()
    on(w, 8)
    switch = [(e.usd, e.note) for e in w.kept.booked_entries.values() if e.kind == "switch-cost"]
    assert switch == [(Decimal("4.5"), "price of the shadow test"), (Decimal(80), "overlap of both fleets")]
    assert [past.stated_risk for past in w.past()] == [None, int(OPTION.risk)]


def test_an_evaluation_of_before_the_end_of_the_test_does_not_let_the_change_begin() -> None:
    w = asked()
    w.start()
    w.until(lambda change: change.turned_at)
    sure(w)
    w.run(12)
    assert "waits for an evaluation" in w.start().outcome


def test_a_type_that_the_test_showed_to_be_too_slow_is_not_changed_to() -> None:
    def slower(at: datetime, variant: str, kind: str) -> Load:
        return Load(p95_s=0.2 if kind == OLD_TYPE else 0.9)

    w = asked()
    w.account.load = slower
    finished(w)
    sure(w, options=(), gate=Gate.SILENT, reason=Reason(Code.TOO_SLOW, "ml.g5.xlarge is too slow"))
    change = w.start()
    assert (change.state, w.account.config_name) == (ChangeState.REFUSED, OLD)
    assert w.shown().state is ProposalState.WITHDRAWN
    assert "Before the change it was tested: the mean latency on ml.g5.xlarge was 4.5" in w.shown().outcome


def test_a_shadow_that_answered_later_than_the_objective_stops_the_change_whatever_the_evaluation_says() -> None:
    def slower(at: datetime, variant: str, kind: str) -> Load:
        return Load(p95_s=0.2 if kind == OLD_TYPE else 0.9)

    w = asked()
    w.account.load = slower
    finished(w)
    sure(w)
    change = w.start()
    assert change.state is ChangeState.REFUSED
    assert "at the speed of its shadow test the p95 would be 0.90 s, and 0.50 s are allowed" in change.outcome


def test_beside_a_larger_fleet_than_todays_the_lateness_of_one_shadow_proves_nothing() -> None:
    slow = PassedTest("c-1", MONDAY, "tested", p95_s=0.9)
    decided = asked().proposal.recommendation
    assert slow_test_reason(slow, OPTION, decided) is not None
    assert slow_test_reason(slow, replace(OPTION, target=Target(NEW_TYPE, 2)), decided) is None
    assert slow_test_reason(replace(slow, p95_s=None), OPTION, decided) is None
    assert slow_test_reason(replace(slow, p95_s=0.5), OPTION, decided) is None


def test_the_history_keeps_since_when_the_configuration_runs_that_the_test_left_alone() -> None:
    w = asked()
    configured = w.account.modified
    finished(w)
    assert [past.configured_at for past in w.past()] == [configured]


def test_a_test_that_left_the_question_open_brings_no_change() -> None:
    w = asked()
    finished(w)
    w.kept.judge(replace(w.proposal.recommendation, evaluated_at=w.now + timedelta(seconds=1)))
    change = w.start()
    assert (change.state, w.account.config_name) == (ChangeState.REFUSED, OLD)
    assert "asks for a shadow test of ml.g5.xlarge first" in change.outcome


def test_an_evaluation_that_needs_more_instances_than_were_approved_stops_the_change() -> None:
    w = asked()
    finished(w)
    less = OPTION.saving_usd_per_month / 3
    more = replace(
        OPTION, test_usd=Decimal(0), untested_risk=None, target=Target(NEW_TYPE, 2), saving_usd_per_month=less
    )
    sure(w, options=(more,))
    change = w.start()
    assert change.state is ChangeState.REFUSED
    assert "needs 2 instance(s) of ml.g5.xlarge, and 1 instance(s) was approved" in change.outcome


def test_another_type_that_is_worth_a_test_does_not_stop_the_one_that_passed() -> None:
    w = asked()
    finished(w)
    passed = replace(OPTION, test_usd=Decimal(0), untested_risk=None)
    other = replace(OPTION, target=Target("ml.g4dn.xlarge", 1))
    sure(w, options=(other, passed), gate=Gate.TEST, gate_reason=WORTH)
    w.start()
    assert on(w, 8).state is ChangeState.PROVEN


def _broken_since_ten(at: datetime, variant: str, kind: str) -> Load:
    return Load(errors=30.0 if at > MONDAY + timedelta(hours=1) else 0.0)


@pytest.mark.parametrize(
    "load", [lambda at, variant, kind: Load(requests=0.0), _broken_since_ten], ids=["no request", "production fails"]
)
def test_a_test_that_measured_nothing_or_harmed_is_the_end(load: Any) -> None:
    w = asked()
    w.account.load = load
    change = finished(w)
    assert passed_test(change) is None
    assert w.shown().state is ProposalState.ROLLED_BACK
    assert w.shown().outcome.endswith("the change does not follow")
    assert w.start().id == change.id
    assert len(w.kept.changes) == 1


def test_a_shadow_that_fails_its_requests_is_the_end() -> None:
    def failing(at: datetime, variant: str, kind: str) -> Load:
        return Load() if kind == OLD_TYPE else Load(errors=30.0)

    w = asked()
    w.account.load = failing
    change = finished(w)
    assert "failed on the shadow" in change.outcome
    assert (w.shown().state, len(w.kept.changes)) == (ProposalState.ROLLED_BACK, 1)


def test_who_asks_for_the_rollback_while_the_test_runs_ends_it_and_the_change_with_it() -> None:
    w = asked()
    w.start()
    w.until(lambda change: change.turned_at)
    w.ask_back()
    change = w.run(8)
    assert passed_test(change) is None
    assert (w.shown().state, w.account.config_name) == (ProposalState.ROLLED_BACK, OLD)


def test_a_shadow_that_cannot_be_removed_is_the_end_and_an_incident() -> None:
    w = asked()
    w.start()
    w.until(lambda change: change.turned_at)
    w.account.endings = ["health_check"]
    w.run(12)
    assert w.shown().state is ProposalState.HANDED_OVER


def test_a_tag_that_forbids_to_serve_twice_stops_the_test_whoever_allowed_it() -> None:
    w = asked(tags={**TAGS, "rightsizer:shadow-ok": "false"})
    change = w.start()
    assert (change.state, w.account.done) == (ChangeState.REFUSED, [])
    assert "rightsizer:shadow-ok=false forbids that" in change.outcome


def test_an_owner_who_says_report_meanwhile_stops_the_change_that_would_follow() -> None:
    w = asked()
    finished(w)
    sure(w)
    w.account.endpoint_tags = {"rightsizer:mode": "report"}
    change = w.start()
    assert (change.state, w.account.config_name) == (ChangeState.REFUSED, OLD)


def test_the_change_that_follows_expires_seven_days_after_its_test_and_not_after_the_decision() -> None:
    w = asked()
    change = finished(w)
    w.start()
    w.advance(change.journal[-1].at + PATIENCE - timedelta(hours=2) - w.now)
    w.apply.tick(w.now)
    assert follow_up(w).state is ChangeState.PLANNED
    w.advance(timedelta(hours=3))
    w.apply.tick(w.now)
    assert (follow_up(w).state, w.shown().state) == (ChangeState.REFUSED, ProposalState.EXPIRED)


def test_the_same_approval_delivered_again_starts_one_test_and_one_change() -> None:
    w = asked()
    w.start()
    w.start()
    w.run(12)
    w.start()
    w.start()
    assert len(w.kept.changes) == 2


def test_approved_without_its_test_the_change_begins_and_states_the_risk_without() -> None:
    w = asked(replace(TEST_FIRST, test_first=False), scaling=autoscaled(1, 4))
    change = w.start()
    assert change.plan.kind is PlanKind.CHANGE
    w.run(12)
    (past,) = w.past()
    assert past.stated_risk == int(Risk.HIGH)
    assert w.account.writes(StepKind.DEREGISTER_TARGET), "autoscaling is taken away and given back as for any change"


def test_what_was_approved_without_its_test_goes_on_while_the_newest_evaluation_offers_the_same_test() -> None:
    w = asked(replace(TEST_FIRST, test_first=False))
    w.kept.judge(replace(w.proposal.recommendation, evaluated_at=w.now + timedelta(seconds=1)))
    assert w.start().state is not ChangeState.REFUSED


def test_a_higher_risk_without_the_test_than_was_approved_stops_the_change() -> None:
    w = asked(replace(TEST_FIRST, test_first=False))
    riskier = replace(OPTION, untested_risk=Risk.VERY_HIGH)
    w.kept.judge(
        replace(
            w.proposal.recommendation,
            evaluated_at=w.now + timedelta(seconds=1),
            options=(replace(OPTION, kind=OptionKind.SCHEDULE, target=Target(OLD_TYPE, 1)), riskier),
        )
    )
    change = w.start()
    assert change.state is ChangeState.REFUSED
    assert "rates ml.g5.xlarge with performance risk 4, above 3" in change.outcome


def test_a_proposal_that_is_put_right_says_what_the_test_measured_too() -> None:
    w = asked()
    finished(w)
    sure(w)
    w.start()
    on(w, 8)
    known = w.shown()
    for state in (ProposalState.APPLYING, ProposalState.APPROVED):
        w.kept.proposals[known.id] = replace(known, state=state, outcome="it was lost")
        if state is ProposalState.APPLYING:
            apply_orders._correct_proposal(w.apply, w.shown())
        else:
            apply_orders._start_approval(w.apply, w.shown(), w.now)
        assert w.shown() == known
        assert "Before the change it was tested: the mean latency" in w.shown().outcome
