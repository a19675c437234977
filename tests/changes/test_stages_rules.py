"""The rules of a plan of stages, one by one: what is carried over to the next stage, and what each refusal says."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from rightsizer.changes.overruled import COVERED
from rightsizer.changes.stages import (
    change_id_of_next,
    measured_in_all,
    next_stage_text,
    option_of_stage,
    proposal_of_stage,
    proven_stage,
    standing_stage_text,
    unjudged_reason,
)
from rightsizer.domain.change import Change, ChangeState, ProvenStage
from rightsizer.domain.option import Option, Risk
from rightsizer.domain.plan import PlanKind
from rightsizer.domain.proposal import Proposal, id_after_stage
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.domain.recommendation import Gate, VariantFinding
from tests.changes.account import MONDAY
from tests.changes.memory import World
from tests.changes.test_stages import LATER, SMALLER, planned, proven

THIRD = replace(LATER, saving_usd_per_month=Decimal(90))
STAGE = ProvenStage(1, "c-first", MONDAY, "config-b", "AllTraffic=3", Decimal(1000))


@pytest.fixture(scope="module")
def at() -> World:
    """A plan whose first stage is proven."""
    made = planned()
    proven(made)
    return made


def approved(at: World) -> Proposal:
    """An approval of three stages whose test was asked for."""
    found = replace(at.proposal.recommendation, stages=(LATER, THIRD), gate=Gate.APPLY)
    assert at.proposal.decision is not None
    return replace(at.proposal, recommendation=found, decision=replace(at.proposal.decision, test_first=True))


@pytest.mark.parametrize(("number", "option", "rest"), [(1, LATER, (THIRD,)), (2, THIRD, ())])
def test_the_next_stage_is_the_proposal_of_its_one_option_and_those_behind_it(
    at: World, number: int, option: Option, rest: tuple[Option, ...]
) -> None:
    found = proposal_of_stage(approved(at), replace(STAGE, number=number))
    assert (found.recommendation.options, found.recommendation.stages) == ((option,), rest)
    assert found.recommendation.fingerprint == "config-b|AllTraffic=3"
    assert found.recommendation.gate is Gate.PROPOSE
    assert found.decision is not None
    assert found.decision.test_first is False, "the test was of the first stage"
    assert found.decision.by == approved(at).decision.by  # type: ignore[union-attr]


def test_a_proposal_that_nobody_decided_on_has_no_decision_in_its_stages_either(at: World) -> None:
    assert proposal_of_stage(replace(approved(at), decision=None), STAGE).decision is None


def test_the_change_after_a_stage_has_an_id_of_its_own() -> None:
    assert change_id_of_next(STAGE) == id_after_stage("c-first") != id_after_stage("c-other")


def test_a_proven_stage_keeps_how_it_left_the_endpoint_and_when_it_ended(at: World) -> None:
    change = at.change
    two = replace(change.plan.after[0], name="Canary", count=1)
    found = proven_stage(replace(change, plan=replace(change.plan, after=(*change.plan.after, two))))
    assert found is not None
    assert (found.number, found.change_id, found.counts) == (1, change.id, "AllTraffic=3,Canary=1")
    assert (found.config_name, found.ended_at) == (change.plan.new_config, change.journal[-1].at)


def of_kind(change: Change, kind: PlanKind) -> Change:
    return replace(change, plan=replace(change.plan, kind=kind))


def test_no_stage_follows_what_is_not_proven_was_asked_back_was_a_test_or_has_none_behind_it(at: World) -> None:
    change = at.change
    assert proven_stage(change) is not None
    assert proven_stage(replace(change, state=ChangeState.APPLIED)) is None
    assert proven_stage(replace(change, asked_back_by="slack:U1")) is None
    other = next(kind for kind in PlanKind if kind is not PlanKind.CHANGE)
    assert proven_stage(of_kind(change, other)) is None
    assert proven_stage(replace(change, stages=())) is None
    assert proven_stage(replace(change, before=None)) is None


def test_stages_that_were_measured_add_up_and_one_that_was_not_leaves_the_sum_unknown(at: World) -> None:
    change, now = at.change, at.now
    alone = measured_in_all(change, now)
    assert alone is not None
    assert measured_in_all(replace(change, stage_before=STAGE), now) == alone + 1000
    unknown = replace(STAGE, measured_usd_per_month=None)
    assert measured_in_all(replace(change, stage_before=unknown), now) is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), " does not offer schedule on ml.g5.xlarge any more: "),
        ((replace(LATER, risk=Risk.MEDIUM),), " rates schedule with risk 2, and 1 was approved"),
        (
            (replace(LATER, saving_usd_per_month=Decimal("199.99")),),
            " finds that schedule would save $199.99 a month, and $400.00 was approved",
        ),
    ],
)
def test_each_refusal_names_the_recommendation_and_both_figures(
    at: World, options: tuple[Option, ...], said: str
) -> None:
    newest = replace(at.proposal.recommendation, options=options, evaluated_at=MONDAY)
    found = option_of_stage(LATER, newest.variant, newest)
    assert isinstance(found, Reason)
    assert found.code is Code.NEWER_JUDGEMENT
    assert found.sentence.startswith(f"the recommendation of {time_text(MONDAY)}{said}")


def test_what_keeps_exactly_the_share_that_an_approval_covers_begins(at: World) -> None:
    enough = replace(LATER, saving_usd_per_month=COVERED * LATER.saving_usd_per_month)
    newest = replace(at.proposal.recommendation, options=(enough,), evaluated_at=MONDAY)
    assert option_of_stage(LATER, newest.variant, newest) == enough


def test_a_stage_is_sized_for_its_own_variant(at: World) -> None:
    found = at.proposal.recommendation
    beside = VariantFinding(
        "Canary",
        LATER.target.instance_type,
        3,
        0.1,
        None,
        found.finding,
        found.reason,
        Gate.PROPOSE,
        options=(SMALLER,),
    )
    newest = replace(found, options=(LATER,), variants=(beside,), evaluated_at=MONDAY)
    assert option_of_stage(LATER, "Canary", newest) == SMALLER


def test_a_stage_waits_for_an_evaluation_that_is_newer_than_its_end(at: World) -> None:
    newest = replace(at.proposal.recommendation, evaluated_at=MONDAY)
    waits = unjudged_reason(STAGE, "chat", newest)
    assert waits == Reason(
        Code.JUDGEMENT_UNKNOWN,
        f"stage 1 of chat was proven on {time_text(MONDAY)}; stage 2 waits for an evaluation of what runs now",
    )
    assert unjudged_reason(STAGE, "chat", None) == waits
    assert unjudged_reason(STAGE, "chat", replace(newest, evaluated_at=MONDAY + timedelta(seconds=1))) is None
    assert unjudged_reason(None, "chat", None) is None


def test_a_change_without_stages_says_nothing_of_them(at: World) -> None:
    alone = replace(at.change, stages=())
    assert (next_stage_text(alone), standing_stage_text(alone)) == ("", "")
    assert next_stage_text(at.change).startswith("; stage 2 (schedule) follows by the same approval")
    assert next_stage_text(replace(at.change, state=ChangeState.APPLIED)) == "; stage 2 of the plan does not follow"
