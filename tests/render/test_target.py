"""What an option leads to is told as a whole: in JSON each field, in messages each that it sets."""

import html
from dataclasses import fields, replace
from decimal import Decimal
from typing import Any

import pytest
from rich.console import Console

from rightsizer.domain.option import OptionKind, ScaleIn, Target, VariantTarget
from rightsizer.domain.proposal import Proposal, ProposalState, change_id_of, stage_change_ids
from rightsizer.domain.schedule import DayCounts
from rightsizer.render import report_page, text
from rightsizer.render.details_page import details_page
from rightsizer.render.effects import later_text, stages_of, target_facts
from rightsizer.render.sentences import money, monthly_price, standing_sentence
from rightsizer.render.slack import proposal_blocks
from rightsizer.terminal.document import option_document, recommendation_document, target_document
from rightsizer.terminal.tables import explanation
from tests import samples
from tests.notifiers import said_in_slack
from tests.render.report_sample import sample_report

OFFICE = (1,) * 7 + (3,) * 12 + (1,) * 5
TYPE = "ml.g5.xlarge"
WEEK = (DayCounts((0, 1, 2, 3, 4), OFFICE), DayCounts((5, 6), (1,) * 24))
TARGETS = {
    "Instances by the hour (UTC): every day 00-07 1, 07-19 3, 19-24 1": Target(TYPE, 3, hourly_counts=OFFICE),
    "Instances by the hour (UTC): Mon-Fri 00-07 1, 07-19 3, 19-24 1; Sat-Sun 1": Target(
        TYPE, 3, hourly_counts=OFFICE, day_counts=WEEK
    ),
    "Autoscaling: 2 to 4 instances, Calls at 84": Target(
        TYPE, 4, minimum=2, maximum=4, target_value=84.0, metric="Calls"
    ),
    "Autoscaling: 0 to 1 instance": Target(TYPE, 1, minimum=0, maximum=1),
    "Autoscaling: a minimum of 2 instances": Target(TYPE, 2, minimum=2),
    "Autoscaling: target 50": Target(TYPE, 2, target_value=50.0),
    "Routing: LEAST_OUTSTANDING_REQUESTS": Target(TYPE, 2, routing="LEAST_OUTSTANDING_REQUESTS"),
    "Sleeps after: 15 minutes without a request": Target(TYPE, 1, idle_minutes=15),
    "Instance pools: ml.g5.xlarge, then ml.g6.xlarge": Target(TYPE, 1, pools=(TYPE, "ml.g6.xlarge")),
    "Other variants: B 1 × ml.g6.xlarge": Target(TYPE, 1, others=(VariantTarget("B", "ml.g6.xlarge", 1, Decimal(1)),)),
    "Copies: chat 2": Target(TYPE, 1, copies=(("chat", 2),)),
    "Placement of copies: chat BINPACK": Target(TYPE, 1, placement=(("chat", "BINPACK"),)),
    "Scale-in: CONSOLIDATION of A, 2 instances at a time, 20 minutes apart": Target(
        TYPE, 1, scale_in=ScaleIn("A", "CONSOLIDATION", 2, 20)
    ),
}


@pytest.mark.parametrize(("said", "target"), TARGETS.items(), ids=str)
def test_a_person_reads_what_the_target_sets(said: str, target: Target) -> None:
    ((name, told),) = target_facts(target)
    assert f"{name}: {told}" == said


def test_type_and_count_alone_are_told_by_the_sentence() -> None:
    assert target_facts(Target(TYPE, 2)) == ()


def test_no_field_of_a_target_is_left_out_of_the_document() -> None:
    known = {field.name for field in fields(Target)} - {"day_counts"}  # they are the classes of `hourly_counts`
    assert set(target_document(Target(TYPE, 1))) == known
    for target in TARGETS.values():
        set_here = {name for name in known if getattr(target, name) != getattr(Target(TYPE, 1), name)}
        shown = target_document(target)
        plain = target_document(Target(TYPE, 1))
        assert {name for name in known if shown[name] != plain[name]} == set_here


def test_a_schedule_is_told_by_classes_of_days_and_at_the_old_key_too() -> None:
    target = Target(TYPE, 3, hourly_counts=OFFICE, day_counts=WEEK)
    counts = {"Mon-Fri": list(OFFICE), "Sat-Sun": [1] * 24}
    shown = option_document(samples.option(kind=OptionKind.SCHEDULE, target=target))
    assert shown["hourly_counts"] == shown["target"]["hourly_counts"] == counts


def asking(target: Target) -> Proposal:
    option = samples.option(kind=OptionKind.AUTOSCALING, target=target)
    found = samples.proposal()
    return replace(found, recommendation=replace(found.recommendation, options=(option,)))


def test_each_view_says_what_is_set() -> None:
    target = Target(TYPE, 4, minimum=2, maximum=4, target_value=84.0, metric="Calls")
    proposal, told = asking(target), "2 to 4 instances, Calls at 84"
    console = Console(width=200)
    with console.capture() as capture:
        console.print(explanation(proposal.recommendation))
    views = (str(said_in_slack(proposal)), text.proposal(proposal)[1], details_page(proposal), capture.get())
    assert [told in view for view in views] == [True] * 4


def test_what_could_follow_is_a_stage_of_its_own() -> None:
    first, rest = samples.option(), samples.option(target=Target(TYPE, 1))
    more = replace(rest, saving_usd_per_month=first.saving_usd_per_month + Decimal(100))
    found = samples.proposal().recommendation
    staged = replace(found, options=(first, rest, more))
    assert stages_of(staged) == (first, more)
    assert [stage["target"]["instance_count"] for stage in recommendation_document(staged)["stages"]][1:] == [1]
    assert later_text(staged).startswith("it could ")
    assert "once this is proven" in later_text(staged)


HOURLY = samples.option(
    kind=OptionKind.SCHEDULE, target=Target(TYPE, 3, hourly_counts=OFFICE), saving_usd_per_month=Decimal(400)
)


def in_stages(**changes: Any) -> Proposal:
    """A proposal of two stages, of which the first saves what it says and the second 400 more."""
    asked = samples.proposal()
    return replace(asked, recommendation=replace(asked.recommendation, stages=(HOURLY,)), **changes)


def test_a_plan_of_stages_is_told_in_each_view_with_what_is_saved_in_all() -> None:
    asked = in_stages()
    first = asked.recommendation.options[0].saving_usd_per_month
    console = Console(width=400)
    with console.capture() as capture:
        console.print(explanation(asked.recommendation))
    told = later_text(asked.recommendation)
    assert told.startswith(f"By the same approval, run 1 to 3 instances of {TYPE} by the hour of the day (saves")
    assert monthly_price(first + 400) in told
    views = (str(proposal_blocks(asked)), text.proposal(asked)[1], details_page(asked), capture.get())
    assert [told in view for view in views] == [True] * 4
    report = replace(sample_report(), recommendations=(), proposals=(asked,))
    page = html.unescape(report_page.report(report))
    assert "then run 1 to 3 instances" in page
    assert money(first + 400) in page
    shown = recommendation_document(asked.recommendation)["stages"]
    assert [stage["same_approval"] for stage in shown] == [True, True]
    assert Decimal(shown[1]["saving_usd_per_month"]) == first + 400
    assert shown[1]["target"]["hourly_counts"] == {"every day": list(OFFICE)}


def test_between_two_stages_the_message_says_what_follows_and_no_start_within_minutes() -> None:
    said = standing_sentence(in_stages(state=ProposalState.APPROVED, change_id="c-1", outcome="stage 1 of 2: proven"))
    assert "stage 1 of 2: proven" in said
    assert "starts within minutes" not in said


def test_who_stopped_the_rest_of_a_plan_asked_for_no_rollback_of_what_stands() -> None:
    stopped = in_stages(state=ProposalState.PROVEN, change_id="c-1", asked_back_by="slack:U1", outcome="it stands")
    assert standing_sentence(stopped) == "Changed and proven. it stands"


def test_who_asked_for_the_last_stage_to_go_back_is_named_while_it_still_stands() -> None:
    done = in_stages(state=ProposalState.PROVEN, asked_back_by="slack:U1", outcome="it stands")
    first = replace(done, change_id=change_id_of(done))
    last = replace(first, change_id=stage_change_ids(first)[-1])
    assert standing_sentence(last) == "Changed and proven. U1 asked to roll it back. it stands"
    assert standing_sentence(first) == "Changed and proven. it stands"


def test_what_saves_less_or_is_done_elsewhere_or_follows_growth_is_no_stage() -> None:
    first = samples.option()
    more = first.saving_usd_per_month + Decimal(100)
    elsewhere = replace(first, saving_usd_per_month=more, in_place=False)
    found = replace(samples.proposal().recommendation, options=(first, first, elsewhere))
    assert (stages_of(found), later_text(found)) == ((first,), "")
    grown = replace(first, growth_usd=Decimal(5))
    assert stages_of(replace(found, options=(grown, replace(first, saving_usd_per_month=more)))) == (grown,)
    assert stages_of(replace(found, options=())) == ()
