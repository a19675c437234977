"""A plan of two stages by one approval: a type is taken, and once it is proven, counts by the hour on it."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer import wire
from rightsizer.changes.stages import change_id_of_next, option_of_stage, proposal_of_stage, proven_stage
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.option import Option, OptionKind, Risk, Target
from rightsizer.domain.proposal import PATIENCE, Proposal, ProposalMoved, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.flows import apply_orders
from tests.changes.account import MONDAY, NAME, NEW_TYPE, OLD_TYPE
from tests.changes.memory import World, an_option, world

HOURS = (1,) * 8 + (3,) * 12 + (1,) * 4
FIRST = an_option(kind=OptionKind.TYPE_AND_COUNT, target=Target(NEW_TYPE, 3), saving_usd_per_month=Decimal(1000))
LATER = an_option(
    kind=OptionKind.SCHEDULE,
    target=Target(NEW_TYPE, 3, hourly_counts=HOURS),
    saving_usd_per_month=Decimal(400),
    switch_usd=Decimal(0),
    restart_needed=False,
    risk=Risk.LOW,
)
SMALLER = replace(
    LATER,
    target=Target(NEW_TYPE, 3, hourly_counts=(2,) * 8 + (3,) * 12 + (2,) * 4),
    saving_usd_per_month=Decimal(320),
)


def planned(**known: Any) -> World:
    """Three instances, of which somebody approved another type and then counts by the hour."""
    given: dict[str, Any] = {"tags": {"rightsizer:mode": "propose"}, "count": 3, "stages": (LATER,)}
    return world(FIRST, **given | known)


def proven(w: World) -> Change:
    """The first stage to its end."""
    w.start()
    change = w.run(12)
    assert change.state is ChangeState.PROVEN, change.outcome
    return change


def seen(w: World, *options: Option, **changes: Any) -> None:
    """A newer evaluation, of the type that runs now."""
    fields: dict[str, Any] = {"options": options, "instance_type": NEW_TYPE, "instance_count": 3} | changes
    w.kept.judge(replace(w.proposal.recommendation, evaluated_at=w.now + timedelta(seconds=1), **fields))


def second(w: World) -> Change:
    stage = proven_stage(w.change)
    assert stage is not None
    return w.kept.changes[change_id_of_next(stage)]


def on(w: World, hours: float) -> Change:
    """Ticks of a quarter of an hour after the first stage; the change of the second one."""
    waits(w, hours)
    return second(w)


def waits(w: World, hours: float) -> None:
    """Ticks of a quarter of an hour."""
    for _ in range(int(hours * 4)):
        w.advance(timedelta(minutes=15))
        apply_orders.start_lost_approvals(w.apply, w.now)
        w.apply.tick(w.now)


def hours_of(w: World) -> list[int]:
    (target,) = w.account.targets.values()
    return [one["ScalableTargetAction"]["MinCapacity"] for one in target.scheduled]


def test_a_proven_stage_brings_the_proposal_back_as_approved_and_people_hear_what_follows() -> None:
    w = planned()
    change = proven(w)
    assert (w.shown().state, w.shown().change_id) == (ProposalState.APPROVED, change.id)
    assert w.shown().outcome.startswith("stage 1 of 2: ")
    assert "stage 2 (schedule) follows by the same approval" in w.shown().outcome
    assert w.told[-1][0] == f"{NAME}: stage 1 proven, the next one follows"
    assert w.apply.answer_to_approval(w.shown()).waits_since(w.shown()) == change.journal[-1].at


def test_the_next_stage_waits_for_an_evaluation_of_what_runs_now_and_holds_no_endpoint_meanwhile() -> None:
    w = planned()
    proven(w)
    told = len(w.told)
    waits(w, 30)
    held = w.apply.stage_hold(w.shown(), w.now)
    assert held is not None
    assert held.sentence.endswith("stage 2 waits for an evaluation of what runs now")
    w.kept.unreadable = True
    assert w.apply.stage_hold(w.shown(), w.now) is not None
    assert w.kept.holder_of(NAME) == "", "office hours stop it meanwhile"
    assert (w.shown().state, len(w.told), w.account.targets) == (ProposalState.APPROVED, told, {})


def test_what_the_stream_says_of_a_proven_stage_begins_no_change_that_would_only_wait() -> None:
    w = planned()
    proven(w)
    move = ProposalMoved("1", w.shown())
    assert apply_orders.start_approved(w.apply, [move], w.now) == []
    assert w.kept.holder_of(NAME) == ""
    seen(w, LATER)
    w.advance(w.apply.limits.cooldown)
    assert apply_orders.start_approved(w.apply, [move], w.now) == []
    assert w.kept.holder_of(NAME) == second(w).id


def test_the_next_stage_begins_as_the_newest_evaluation_sizes_it_and_is_proven() -> None:
    w = planned()
    proven(w)
    seen(w, SMALLER)
    change = on(w, 48)
    assert change.state is ChangeState.PROVEN, change.outcome
    assert hours_of(w) == [3, 2]
    assert change.saving_usd_per_month == Decimal(320)
    assert any("stage 2 begins as the recommendation of" in entry.detail for entry in change.journal)
    assert (w.shown().state, w.shown().change_id) == (ProposalState.PROVEN, change.id)
    assert w.shown().outcome.startswith("stage 2 of 2: ")


def test_the_proposal_says_what_the_stages_that_stand_save_together() -> None:
    w = planned()
    first = proven(w)
    alone = w.shown().measured_usd_per_month
    assert alone is not None
    assert alone > 900
    seen(w, SMALLER)
    change = on(w, 4 * 24)
    assert (change.state, first.state) == (ChangeState.PROVEN, ChangeState.PROVEN)
    both = w.shown().measured_usd_per_month
    assert both is not None
    assert both > alone, "what stage 2 saves is on top of stage 1"


def test_the_next_stage_rests_as_long_after_the_first_one_as_any_change() -> None:
    w = planned()
    first = proven(w)
    seen(w, LATER)
    waits(w, w.apply.limits.cooldown / timedelta(hours=1) - 1)
    assert w.kept.holder_of(NAME) == "", "office hours stop it meanwhile"
    change = on(w, 25)
    assert change.turned_at is not None
    assert not any("started late" in subject for subject, _ in w.told), "it was not late"
    assert change.turned_at - first.journal[-1].at >= w.apply.limits.cooldown


@pytest.mark.parametrize(
    ("options", "found", "why"),
    [
        ((replace(LATER, saving_usd_per_month=Decimal(199)),), {}, "would save $199.00 a month"),
        ((replace(LATER, risk=Risk.MEDIUM),), {}, "with risk 2, and 1 was approved"),
        ((), {}, "does not offer schedule on ml.g5.xlarge any more"),
        ((replace(LATER, target=replace(LATER.target, instance_type=OLD_TYPE)),), {}, "does not offer schedule on"),
        ((replace(LATER, kind=OptionKind.INSTANCE_COUNT),), {}, "does not offer schedule on"),
        ((LATER,), {"finding": Finding.UNDER_PROVISIONED}, "under-provisioned"),
        (
            (LATER,),
            {"gate_reason": Reason(Code.LATE_BUDGET_SPENT, "too many late")},
            "holds it back: too many late",
        ),
    ],
    ids=["saves less", "riskier", "gone", "another type", "another kind", "short", "late requests"],
)
def test_new_facts_end_the_plan_and_the_first_stage_stands(
    options: tuple[Option, ...], found: dict[str, Any], why: str
) -> None:
    w = planned()
    first = proven(w)
    seen(w, *options, **found)
    change = on(w, 30)
    assert change.state is ChangeState.REFUSED
    assert why in change.outcome
    assert (w.shown().state, w.shown().change_id) == (ProposalState.PROVEN, first.id)
    assert w.shown().outcome.endswith(f"this ends the plan, and stage 1 ({first.id}) stands")
    assert "this ends the plan" in w.told[-1][1]
    assert not w.account.targets


def test_what_somebody_changed_since_the_first_stage_ends_the_plan() -> None:
    w = planned()
    proven(w)
    seen(w, LATER)
    w.account.counts["AllTraffic"] = (5, 5, 1.0)
    change = on(w, 30)
    assert change.state is ChangeState.REFUSED
    assert "its counts were AllTraffic=3 when this was decided, and are AllTraffic=5 now" in change.outcome


def test_automatic_mode_judges_anew_and_follows_no_plan() -> None:
    w = planned(by="policy")
    stage = replace(w.proposal.recommendation, stages=(LATER,))
    automatic = replace(w.proposal, recommendation=stage)
    assert proposal_of_stage(automatic, None) == automatic
    assert w.start().stages == ()


def test_who_stops_the_rest_keeps_what_is_proven() -> None:
    w = planned()
    first = proven(w)
    w.kept.proposals[w.proposal.id] = replace(w.shown(), asked_back_by="slack:U1", asked_back_at=w.now)
    apply_orders.start_lost_rollbacks(w.apply, w.now, everything=False)
    assert (w.shown().state, w.shown().change_id) == (ProposalState.PROVEN, first.id)
    assert (
        "stopped it before it began; nothing was changed; this ends the plan, and stage 1 stands" in w.shown().outcome
    )


def test_the_last_stage_goes_back_before_the_one_before_it() -> None:
    w = planned()
    first = proven(w)
    seen(w, LATER)
    on(w, 48)
    w.ask_back()
    change = on(w, 6)
    assert change.state is ChangeState.ROLLED_BACK
    assert not w.account.targets
    assert (w.shown().state, w.shown().change_id) == (ProposalState.PROVEN, first.id)
    w.ask_back()
    assert w.run(6).state is ChangeState.ROLLED_BACK
    assert w.shown().state is ProposalState.ROLLED_BACK


def ordered_back(w: World) -> None:
    """Somebody presses Roll back, or Stop it, of the message as it is drawn; `apply` takes the order."""
    known = w.shown()
    assert not known.asked_back_by, "the button is gone, and a second order is refused"
    w.kept.proposals[known.id] = replace(known, asked_back_by="slack:U1", asked_back_at=w.now)
    w.kept.settled.discard(known.id)
    apply_orders.start_lost_rollbacks(w.apply, w.now, everything=False)


def test_after_the_last_stage_went_back_the_one_before_it_is_asked_back_too() -> None:
    w = planned()
    proven(w)
    seen(w, LATER)
    on(w, 48)
    ordered_back(w)
    assert on(w, 6).state is ChangeState.ROLLED_BACK
    ordered_back(w)
    assert w.run(6).state is ChangeState.ROLLED_BACK
    assert w.shown().state is ProposalState.ROLLED_BACK


def test_after_the_rest_was_stopped_what_stands_is_asked_back_too() -> None:
    w = planned()
    proven(w)
    ordered_back(w)
    assert w.shown().state is ProposalState.PROVEN
    ordered_back(w)
    assert w.run(6).state is ChangeState.ROLLED_BACK
    assert w.shown().state is ProposalState.ROLLED_BACK


def test_a_stage_that_waits_for_more_than_a_week_ends_the_plan() -> None:
    w = planned()
    first = proven(w)
    seen(w, LATER)
    w.advance(w.apply.limits.cooldown)
    w.freeze()
    w.start()
    w.advance(PATIENCE + timedelta(hours=1))
    w.apply.tick(w.now)
    assert second(w).state is ChangeState.REFUSED
    assert (w.shown().state, w.shown().change_id) == (ProposalState.PROVEN, first.id)
    assert "it waited 7 days" in w.shown().outcome


def test_a_stage_that_no_evaluation_judges_for_a_week_ends_the_plan_too() -> None:
    w = planned()
    first = proven(w)
    waits(w, PATIENCE / timedelta(hours=1) + 1)
    assert (w.shown().state, w.shown().change_id) == (ProposalState.PROVEN, first.id)
    assert w.shown().outcome.startswith("Stage 1 was proven on ")
    assert w.shown().outcome.endswith("this ends the plan, and stage 1 stands")
    assert w.told[-1][0] == f"{NAME}: approval expired"


def test_an_approval_of_which_no_stage_began_ends_as_before() -> None:
    w = planned()
    w.apply.end_approval(w.proposal, ProposalState.EXPIRED, "too late")
    assert (w.shown().state, w.shown().change_id, w.shown().outcome) == (ProposalState.EXPIRED, "", "too late")


def test_what_was_stored_before_there_were_stages_is_read_and_has_none() -> None:
    w = planned()
    old = wire.dump_stored(w.proposal).replace('"stages":', '"stages_of_a_later_release":')
    found = wire.load_stored(Proposal, old)
    assert found.recommendation.stages == ()
    change = wire.dump_stored(w.start()).replace('"stages":', '"x":').replace('"stage_before":', '"y":')
    assert wire.load_stored(Change, change).stages == ()
    assert wire.load_stored(Proposal, wire.dump_stored(w.proposal)).recommendation.stages == (LATER,)


def test_the_best_of_several_alike_begins() -> None:
    found: Recommendation = replace(planned().proposal.recommendation, options=(SMALLER, LATER), evaluated_at=MONDAY)
    assert option_of_stage(LATER, found.variant, found) == LATER
