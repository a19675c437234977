"""A figure that is not known is a word or left out wherever people read: never None, nan, inf or null."""

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, get_args, get_type_hints

import pytest
from rich.console import Console

from rightsizer import wire
from rightsizer.domain.history import PastEnd
from rightsizer.domain.outcome import LedgerEntry, RiskLevel, SpeedOutcome, SpeedSummary, TrackRecord
from rightsizer.domain.proposal import Decision, Proposal, ProposalState
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import Report
from rightsizer.render import csv, report_json, slack, text
from rightsizer.render.details_page import details_page
from rightsizer.render.report_page import report
from rightsizer.reporting.totals import Records, make_report
from rightsizer.terminal import tables
from rightsizer.terminal.survey import Survey
from tests.notifiers import said_in_slack
from tests.samples import NOW, proposal, recommendation

UNKNOWN = re.compile(r"(?<![\w-])(None|nan|NaN|inf|null|undefined)(?![\w-])")


def optional(noun: Any) -> list[str]:
    """The fields of a noun that may be None."""
    hints = get_type_hints(type(noun))
    return [one.name for one in fields(noun) if type(None) in get_args(hints[one.name])]


def gaps(noun: Any) -> Iterator[tuple[str, Any]]:
    """The noun with each field in it that may be None set so, one at a time, at any depth; and with all at once."""
    names = optional(noun)
    for name in names:
        yield name, replace(noun, **{name: None})
    for one in fields(noun):
        value = getattr(noun, one.name)
        if is_dataclass(value) and not isinstance(value, type):
            for path, gap in gaps(value):
                yield f"{one.name}.{path}", replace(noun, **{one.name: gap})
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            for path, gap in gaps(value[0]):
                yield f"{one.name}[0].{path}", replace(noun, **{one.name: (gap, *value[1:])})
        elif isinstance(value, tuple) and any(isinstance(each, float) for each in value):
            yield f"{one.name}[]", replace(noun, **{one.name: (None,) * len(value)})
    if len(names) > 1:
        yield "everything", replace(noun, **dict.fromkeys(names))


def words(page: str) -> str:
    """A page without its marks, its style and its script."""
    return re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<(style|script)>.*?</\1>", " ", page))


def drawn(page: str) -> list[str]:
    """The points of the pictures."""
    return re.findall(r'(?:points|width|height|x1|x2|y1|y2|style|data-key)="([^"]*)"', page)


def strings(value: Any) -> Iterator[str]:
    """Every text in Slack's blocks."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def terminal(found: Recommendation) -> str:
    console = Console(width=160, file=io.StringIO(), record=True)
    console.print(tables.explanation(found))
    for width in (100, 160):
        console.print(tables.listing(Survey("eu-west-1", NOW, found.saving_usd_per_month, (found,), (), ()), width))
    return console.export_text()


OF_A_PROPOSAL: dict[str, Callable[[Proposal], str]] = {
    "e-mail": lambda asked: "\n".join(text.proposal(asked)),
    "Slack": lambda asked: "\n".join((*strings(said_in_slack(asked)), slack.proposal_text(asked))),
    "page": lambda asked: "\n".join((words(details_page(asked)), *drawn(details_page(asked)))),
    "terminal": lambda asked: terminal(asked.recommendation),
}
OF_A_REPORT: dict[str, Callable[[Report], str]] = {
    "e-mail": lambda report: "\n".join(text.report(report)),
    "Slack": lambda report: "\n".join(strings(slack.report_blocks(report))),
    "page": lambda told: "\n".join((words(report(told)), *drawn(report(told)))),
    "CSV": csv.report,
}
STATES = (ProposalState.PENDING, ProposalState.PROVEN)


def decided(state: ProposalState) -> Proposal:
    by = Decision(ProposalState.APPROVED, "slack:U1", NOW)
    return proposal(state=state, decision=None if state is ProposalState.PENDING else by, change_id="c-1")


@pytest.mark.parametrize("view", OF_A_PROPOSAL.values(), ids=OF_A_PROPOSAL)
@pytest.mark.parametrize("state", STATES)
def test_a_proposal_with_any_figure_missing_says_no_none(state: ProposalState, view: Callable[[Proposal], str]) -> None:
    tried = 0
    for path, gap in gaps(decided(state)):
        said = view(gap)
        assert not UNKNOWN.search(said), (path, UNKNOWN.search(said))
        tried += 1
    assert tried > 12, "the nouns have fields that may be None"


def told() -> Report:
    """A report with something in each part of it."""
    speed = SpeedSummary("vllm", 2, 1.1, 1.2, 2, 0)
    outcome = SpeedOutcome("chat", "c-1", NOW, "a", "b", "vllm", PastEnd.PROVEN, 1.2, 1.4, 1.1, 0.9, False, 1.0)
    level = RiskLevel(1, 0.005, 0.02, 14, 0, 0.0, 0.2)
    start = NOW - timedelta(days=7)
    record = TrackRecord(start, NOW, 2, (outcome,), speed, (speed,), (speed,), 14, (level,), 0.1, 0.2)
    entry = LedgerEntry(
        "l", "chat-7b", "c-1", "", start, "realised", recommendation().saving_usd_per_month, 24, True, ""
    )
    judged = [recommendation("one"), recommendation("two", options=()), recommendation("three", evidence=None)]
    made = make_report(
        Records("111122223333", "eu-west-1", judged, [decided(state) for state in STATES], [entry], []), start, NOW, NOW
    )
    return replace(made, track_record=record)


@pytest.mark.parametrize("view", OF_A_REPORT.values(), ids=OF_A_REPORT)
def test_a_report_with_any_figure_missing_says_no_none(view: Callable[[Report], str]) -> None:
    tried = 0
    for path, gap in gaps(told()):
        said = view(gap)
        assert not UNKNOWN.search(said), (path, UNKNOWN.search(said))
        tried += 1
    assert tried > 20


def test_the_json_of_a_report_has_null_and_no_number_that_is_none() -> None:
    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is no JSON")

    for _, gap in gaps(told()):
        json.loads(report_json.report(gap), parse_constant=refuse)
    holes = replace(recommendation(), hourly_requests=(1.0, None, 3.0))
    assert wire.plain(holes)["hourly_requests"] == [1.0, None, 3.0]


def test_a_gap_is_no_zero_in_the_pictures() -> None:
    whole = recommendation(hourly_requests=(5.0,) * 48)
    holes = replace(whole, hourly_requests=(5.0,) * 12 + (None,) * 24 + (5.0,) * 12)
    pages = [details_page(proposal(recommendation=one)) for one in (whole, holes)]
    assert [page.count('class="line"') for page in pages] == [2, 3], "the line is broken where nothing is known"
    assert "·" in text.proposal(proposal(recommendation=holes))[1]
