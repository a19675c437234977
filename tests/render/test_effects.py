"""How an option is undone and what restarts for it, in every place where people read it."""

from dataclasses import replace
from decimal import Decimal

import pytest
from rich.console import Console

from rightsizer.dimensions import dimension_of
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Effort, Money, Option, OptionKind, Target, new_option
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.recommendation import Gate
from rightsizer.recommender.pricing import scale_to_zero_option
from rightsizer.render import effects, text
from rightsizer.render.details_page import details_page
from rightsizer.render.details_view import details_blocks
from rightsizer.render.slack import proposal_blocks
from rightsizer.terminal.document import explanation_document
from rightsizer.terminal.tables import explanation
from tests.notifiers import said_in_slack
from tests.samples import option, price, proposal, recommendation

SAMPLE = option()
DEPLOYED = "can be rolled back: rightsizer deploys the old configuration again"
TO_THIS = "can be rolled back by its owner, who sends the callers back to this endpoint, as long as it is kept"
SAID = {
    OptionKind.INSTANCE_TYPE: DEPLOYED,
    OptionKind.TYPE_AND_COUNT: DEPLOYED,
    OptionKind.FEWER_GPUS: DEPLOYED,
    OptionKind.ROUTING: DEPLOYED,
    OptionKind.INSTANCE_POOLS: DEPLOYED,
    OptionKind.SCALE_IN: DEPLOYED,
    OptionKind.INSTANCE_COUNT: "can be rolled back: rightsizer puts back the old count or autoscaling",
    OptionKind.AUTOSCALING: "can be rolled back: rightsizer registers the old bounds again",
    OptionKind.SCHEDULE: "can be rolled back: rightsizer removes the schedule and sets the old count",
    OptionKind.COPIES: "can be rolled back: rightsizer sets the old numbers of copies again",
    OptionKind.PLACEMENT: "can be rolled back: rightsizer gives the components their old placement again",
    OptionKind.SCALE_TO_ZERO: "can be rolled back: rightsizer puts back the old bounds and count",
    OptionKind.ASYNC: TO_THIS,
    OptionKind.SERVERLESS: TO_THIS,
    OptionKind.PACKING: "can be rolled back by its owner, who sends the callers back to the endpoints of before,"
    " as long as they are kept",
    OptionKind.OTHER_ARCHITECTURE: "can be rolled back by its owner, who deploys the old configuration again",
    OptionKind.REMOVE_VARIANT: "can be rolled back by its owner, who deploys the old configuration again",
    OptionKind.DELETE: "cannot be rolled back: once it is deleted, its owner creates it anew from its kept"
    " configuration",
}

IN_PLACE = (OptionKind.INSTANCE_COUNT, OptionKind.DELETE)
"""Kinds for which nothing starts again."""


def made(kind: OptionKind, in_place: bool = True) -> Option:
    money = Money(SAMPLE.usd_per_month, SAMPLE.saving_usd_per_month, SAMPLE.switch_usd, SAMPLE.payback_days)
    target, sold = Target("ml.g5.xlarge", 1), price("ml.g5.xlarge", "1.40")
    restarts = kind not in IN_PLACE and not (kind is OptionKind.SCALE_TO_ZERO and in_place)
    ours = in_place and bool(dimension_of(kind).applies_to)
    return new_option(kind, target, sold, money, 9.0, {}, Effort.LOW, in_place=ours, restarts=restarts)


@pytest.mark.parametrize("kind", OptionKind)
def test_each_kind_has_its_own_way_back_in_words(kind: OptionKind) -> None:
    assert effects.rollback_text(made(kind)) == SAID[kind]


def test_what_cannot_be_done_in_place_is_undone_by_its_owner() -> None:
    asleep = made(OptionKind.SCALE_TO_ZERO, in_place=False)
    assert effects.rollback_text(asleep) == TO_THIS
    assert effects.restart_text(asleep) == "a new endpoint starts beside this one"
    assert effects.rollback_text(made(OptionKind.INSTANCE_TYPE, in_place=False)) == SAID[OptionKind.OTHER_ARCHITECTURE]


def test_components_are_put_to_sleep_and_woken_again_where_they_are() -> None:
    money = Money(SAMPLE.usd_per_month, SAMPLE.saving_usd_per_month, Decimal(0), 0.0)
    nap = scale_to_zero_option(
        ("ml.g5.xlarge", 1), price("ml.g5.xlarge", "1.40"), money, 9.0, 15, 0.9, False, of_components=True
    )
    assert effects.effect_note(nap) == (
        "nothing restarts; can be rolled back by its owner, who puts back the old least copies of its components"
    )


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(proposal(approvable=False), id="this role may not"),
        pytest.param(proposal(approvable=False, recommendation=recommendation(owned_by="stack ml")), id="a stack does"),
    ],
)
def test_what_cannot_be_approved_here_is_not_said_to_be_undone_here(asked: Proposal) -> None:
    shown = (str(said_in_slack(asked)), text.proposal(asked)[1], details_page(asked))
    for each in shown:
        assert SAID[OptionKind.OTHER_ARCHITECTURE] in each
        assert "rightsizer deploys" not in each
    for each in (str(said_in_slack(proposal())), text.proposal(proposal())[1], details_page(proposal())):
        assert DEPLOYED in each


def test_what_a_stack_owns_is_undone_there_by_explanation_and_json_too() -> None:
    ours, theirs = recommendation(), recommendation(owned_by="CloudFormation stack ml")
    found = []
    for each in (ours, theirs):
        console = Console(width=200)
        with console.capture() as captured:
            console.print(explanation(each))
        document = explanation_document(each)
        found.append((DEPLOYED in captured.get(), [o["way_back"] for o in document["options"]]))
        assert document["recommended"]["way_back"] == document["options"][0]["way_back"]
    assert found == [(True, ["rightsizer"]), (False, ["owner"])]


def test_message_text_and_page_say_the_same_of_a_deletion() -> None:
    asked = proposal(recommendation=recommendation(options=(made(OptionKind.DELETE, in_place=False),)))
    page, (_, body) = details_page(asked), text.proposal(asked)
    for shown in (str(said_in_slack(asked)), body, page):
        assert SAID[OptionKind.DELETE] in shown
    assert "nothing restarts" in body
    assert "any request ends that" in str(said_in_slack(asked))


def test_a_change_without_a_deployment_is_watched_by_its_requests_and_another_by_alarms_too() -> None:
    count, moved = (recommendation(options=(made(kind),)) for kind in (OptionKind.INSTANCE_COUNT, OptionKind.ROUTING))
    first = "It goes back by itself when the requests that it serves say so."
    assert effects.guard_sentence(count) == f"{first} {effects.approval_note(count)}"
    assert effects.guard_sentence(moved) == "It goes back by itself when its alarms or requests say so."


def test_the_approval_of_a_type_or_count_says_that_it_permits_the_way_back() -> None:
    option = made(OptionKind.INSTANCE_COUNT)
    found = recommendation(options=(option,), instance_type="ml.g5.12xlarge", instance_count=2)
    note = "For 14 days this also permits the way back to 2 × ml.g5.12xlarge, if users suffer and nothing else changed."
    assert effects.approval_note(found) == note
    asked = proposal(recommendation=found)
    assert note in text.proposal(asked)[1]
    assert note in str(said_in_slack(asked))
    assert note not in text.proposal(replace(asked, approvable=False))[1]
    others = [replace(found, kind=EndpointKind.ASYNC), replace(found, options=())]
    others += [replace(found, options=(replace(option, restores=True),))]
    others += [replace(found, options=(replace(option, growth_usd=Decimal(5)),))]
    others += [replace(found, options=(made(OptionKind.ROUTING),))]
    assert [effects.approval_note(one) for one in others] == [""] * len(others)


def test_a_shadow_test_promises_no_way_back_for_it_changes_nothing() -> None:
    found = recommendation(options=(made(OptionKind.INSTANCE_TYPE),), gate=Gate.TEST)
    assert effects.way_back_of(found) == "the shadow of the test is removed when it ends"
    assert effects.guard_sentence(found).startswith("A shadow gets copies of the requests")


def test_a_shadow_test_says_in_each_view_that_what_serves_is_deployed_twice_for_it() -> None:
    twice = "the fleet is deployed twice, to add and to remove the shadow"
    option = replace(made(OptionKind.INSTANCE_TYPE), test_usd=Decimal("4.5"))
    long = "chat-with-a-name-as-long-as-names-of-endpoints-may-ever-become-x"
    plain, found = (recommendation(long, options=(option,), gate=gate) for gate in (Gate.PROPOSE, Gate.TEST))
    asked = proposal(recommendation=found)
    (actions,) = (b for b in proposal_blocks(asked) if b["type"] == "actions")
    console = Console(width=200)
    with console.capture() as captured:
        console.print(explanation(found))
    confirmed = actions["elements"][0]["confirm"]["text"]["text"]
    for each in (
        confirmed,
        text.proposal(asked)[1],
        str(said_in_slack(asked)),
        details_page(asked),
        captured.get(),
    ):
        assert twice in each
    assert "is removed when it ends" in captured.get()
    assert effects.restart_of(plain) == "the model starts on new instances"


@pytest.mark.parametrize("asks_callers", ["must retry while the endpoint wakes", ""])
def test_who_meets_a_fleet_that_sleeps_is_told_in_message_details_page_and_explanation(asks_callers: str) -> None:
    told = "967 of 60,135 requests would have failed for about 10 minutes"
    nap = replace(made(OptionKind.SCALE_TO_ZERO), notes=("asleep 69 %", told), client_change=asks_callers)
    asked = proposal(recommendation=recommendation(options=(nap,)))
    console = Console(width=400)
    with console.capture() as captured:
        console.print(explanation(asked.recommendation))
    message, modal = str(proposal_blocks(asked)), str(details_blocks(asked))
    for each in (message, modal, text.proposal(asked)[1], details_page(asked), captured.get()):
        assert told in each
        assert asks_callers in each


def test_a_note_of_an_option_stands_in_its_explanation() -> None:
    note = "2 in place of 8 GPUs in an instance: a server that is told how many has to be told anew"
    console = Console(width=400)
    with console.capture() as captured:
        console.print(explanation(recommendation(options=(replace(SAMPLE, notes=(note,)),))))
    assert note in captured.get()
