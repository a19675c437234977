"""A plan of two stages in the funnel: one saving each, and what stands goes on saving whatever becomes of the other."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from io import StringIO

import pytest
from rich.console import Console

from rightsizer.domain.money import OPEN, Stage
from rightsizer.domain.proposal import Decision, Proposal, ProposalState, change_id_of, stage_change_ids
from rightsizer.render import sentences
from rightsizer.render.report_tables import could_be_saved
from rightsizer.reporting.split_money import Ends, plan_parts
from rightsizer.reporting.totals import Records, make_report
from rightsizer.terminal import tables
from rightsizer.terminal.history import proposal_page
from rightsizer.terminal.survey import Survey
from tests.samples import NOW, option, proposal

DAY = timedelta(days=1)
MADE, DECIDED, PROVEN = NOW - 6 * DAY, NOW - 5 * DAY, NOW - 3 * DAY
ASKED = proposal("p-1", created_at=MADE, expires_at=MADE + 14 * DAY, state=ProposalState.PENDING)
PLAN = replace(
    ASKED, recommendation=replace(ASKED.recommendation, stages=(option(saving_usd_per_month=Decimal("40.00")),))
)
FIRST = ASKED.recommendation.identified_usd_per_month
ONE, TWO = stage_change_ids(replace(PLAN, change_id=change_id_of(PLAN)))
APPROVED = replace(PLAN, state=ProposalState.APPROVED, decision=Decision(ProposalState.APPROVED, "slack:U1", DECIDED))
type Savings = dict[int, Stage]


def funnel(one: Proposal, *returned: str, **ends: int) -> Savings:
    """Where each stage stands at the end of the last week; `ends`: days before now at which a change ended."""
    ended = {{"first": ONE, "second": TWO}[name]: NOW - days * DAY for name, days in ends.items()}
    report = make_report(Records("1", "r", [], [one], [], [], ended=ended, returned=returned), NOW - 7 * DAY, NOW, NOW)
    assert {saving.number: saving.usd_per_month for saving in report.funnel} == {
        saving.number: (FIRST, Decimal("40.00"))[saving.number - 1] for saving in report.funnel
    }
    assert [found.chosen_option for found in could_be_saved(report)][:1] == [
        ((one.recommendation.chosen_option, *one.recommendation.stages)[saving.number - 1])
        for saving in sorted(report.funnel, key=lambda saving: saving.number)
        if saving.stage in OPEN
    ][:1]
    return {saving.number: saving.stage for saving in report.funnel}


def test_who_is_asked_is_asked_about_both_and_waits_once() -> None:
    assert funnel(PLAN) == {1: Stage.WAITING, 2: Stage.WAITING}
    report = make_report(Records("1", "r", [], [PLAN], [], []), NOW - 7 * DAY, NOW, NOW)
    assert [(wait.proposals, wait.usd_per_month) for wait in report.money.waits] == [(1, FIRST + 40)]


def test_an_approval_saves_what_the_report_says_that_waits_for_it() -> None:
    assert PLAN.recommendation.approval_usd_per_month == FIRST + 40
    grows = replace(PLAN.recommendation, options=(option(saving_usd_per_month=Decimal("-7.00")),))
    assert grows.approval_usd_per_month == -7, "nothing behind growth counts"


def test_between_and_during_stages_the_first_one_saves_and_the_second_could() -> None:
    assert funnel(APPROVED) == {1: Stage.UNDER_WAY, 2: Stage.UNDER_WAY}
    between = replace(APPROVED, change_id=ONE)
    assert funnel(between, first=3) == {1: Stage.PROVEN, 2: Stage.UNDER_WAY}
    during = replace(APPROVED, state=ProposalState.APPLYING, change_id=TWO)
    assert funnel(during, first=3) == {1: Stage.PROVEN, 2: Stage.UNDER_WAY}


def test_once_the_second_stage_stands_both_save() -> None:
    done = replace(APPROVED, state=ProposalState.PROVEN, change_id=TWO)
    assert funnel(done, first=3, second=1) == {1: Stage.PROVEN, 2: Stage.PROVEN}
    old = Decision(ProposalState.APPROVED, "slack:U1", NOW - 29 * DAY)
    older = replace(done, created_at=NOW - 30 * DAY, decision=old)
    assert funnel(older, first=20, second=1) == {2: Stage.PROVEN}, "the first one moved in another window"


def test_a_second_stage_that_went_back_takes_nothing_from_the_first() -> None:
    kept = replace(APPROVED, state=ProposalState.PROVEN, change_id=ONE)
    assert funnel(kept, TWO, first=3, second=1) == {1: Stage.PROVEN, 2: Stage.WENT_BACK}
    assert funnel(kept, first=3) == {1: Stage.PROVEN}, "a stage that does not begin is found anew"
    assert funnel(replace(kept, state=ProposalState.HANDED_OVER, change_id=TWO), TWO, first=3, second=1) == {
        1: Stage.PROVEN,
        2: Stage.WENT_BACK,
    }


def test_a_plan_whose_first_stage_went_back_saves_nothing() -> None:
    gone = replace(APPROVED, state=ProposalState.ROLLED_BACK, change_id=ONE)
    assert funnel(gone, ONE, first=3) == {1: Stage.WENT_BACK}


def test_what_the_automatic_mode_decided_covers_the_first_stage_alone() -> None:
    alone = replace(APPROVED, decision=Decision(ProposalState.APPROVED, "policy", DECIDED))
    assert funnel(alone) == {1: Stage.UNDER_WAY}


@pytest.mark.parametrize("again", [False, True])
def test_the_changes_of_a_plan_are_known_by_the_approval_and_by_the_test_before_them(again: bool) -> None:
    first = change_id_of(APPROVED, again=again)
    assert stage_change_ids(replace(APPROVED, change_id=first))[0] == first
    assert stage_change_ids(replace(APPROVED, change_id="c-other")) == ()


def test_a_proposal_without_a_plan_has_one_saving_and_none_before_it_was_made() -> None:
    ends = Ends({})
    assert [(part.number, part.usd_per_month) for part in plan_parts(ASKED, ends, NOW - 7 * DAY, NOW)] == [(1, FIRST)]
    assert plan_parts(ASKED, ends, MADE - 14 * DAY, MADE - 7 * DAY) == (), "it was made after that window"


def test_a_plan_that_nobody_was_asked_about_counts_all_its_stages() -> None:
    report = make_report(Records("1", "r", [PLAN.recommendation], [], [], []), NOW - 7 * DAY, NOW, NOW)
    assert [(saving.stage, saving.usd_per_month) for saving in report.funnel] == [(Stage.NOT_ASKED, FIRST + 40)]
    assert report.totals.identified == PLAN.recommendation.identified_usd_per_month == FIRST + 40


def test_the_message_and_the_list_of_proposals_name_the_saving_of_all_stages() -> None:
    headline = sentences.headline(PLAN.recommendation)
    assert headline.endswith(": saves $4,181 a month in 2 stages, $4,141 of it by the first"), headline
    said = f"{sentences.planned_changes(PLAN.recommendation)[1]}, $4,181 a month"
    console = Console(width=60, record=True, file=StringIO())
    console.print(proposal_page([PLAN], 60))
    assert said in " ".join(console.export_text().split())


def test_a_scan_shows_orders_and_adds_what_all_stages_save() -> None:
    other = replace(ASKED.recommendation, ref=replace(ASKED.recommendation.ref, name="other"))
    scan = Survey("eu-west-1", NOW, Decimal(50), (PLAN.recommendation, other), (), ())
    console = Console(width=200, record=True, file=StringIO())
    console.print(tables.table(scan))
    row = next(line for line in console.export_text().splitlines() if line.startswith(PLAN.ref.name))
    assert " 4,180 " in row
    assert scan.identified_saving == FIRST + FIRST + 40
