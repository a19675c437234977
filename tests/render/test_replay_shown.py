"""Whoever is asked sees what the past days would have been on the option, in every view alike."""

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser

import pytest
from rich.console import Console

from rightsizer.domain.proposal import Proposal
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.render import sentences, text
from rightsizer.render.details_page import details_page
from rightsizer.render.report_page import report
from rightsizer.reporting.totals import Records, make_report
from rightsizer.terminal.document import explanation_document
from rightsizer.terminal.tables import explanation
from tests.notifiers import said_in_slack
from tests.samples import NOW, option, proposal, recommendation


class Words(HTMLParser):
    """What a page says, without its marks."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.said: list[str] = []
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def _words(page: str) -> str:
    return " ".join(Words(page).said)


def _terminal(asked: Proposal) -> str:
    console = Console(width=200)
    with console.capture() as captured:
        console.print(explanation(asked.recommendation))
    return captured.get()


def _report(asked: Proposal) -> str:
    records = Records("111122223333", "eu-west-1", (asked.recommendation,), (), (), ())
    return _words(report(make_report(records, NOW, NOW, NOW)))


VIEWS: dict[str, Callable[[Proposal], str]] = {
    "terminal": _terminal,
    "Slack": lambda asked: json.dumps(said_in_slack(asked)),
    "e-mail": lambda asked: text.proposal(asked)[1],
    "details page": lambda asked: _words(details_page(asked)),
    "report": _report,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_hours_p95_memory_and_late_requests_of_the_replay_are_shown(view: Callable[[Proposal], str]) -> None:
    said = view(proposal())
    for part in (
        "3 h above 80 %, 1 h above 100 %",
        "440 ms, objective 500 ms",
        "8.9 GiB",
        "7 of 1,240 (2 today)",
    ):
        assert part in said
    assert "the test is to show" not in said


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_the_replay_of_a_test_says_which_speed_it_assumes(view: Callable[[Proposal], str]) -> None:
    tested = replace(proposal(), recommendation=recommendation(gate=Gate.TEST))
    assert "at the speed that the test has to show" in view(tested)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_nothing_is_said_of_a_replay_that_there_was_not(view: Callable[[Proposal], str]) -> None:
    assert "replayed" not in view(proposal(recommendation=recommendation(replay=None)))


def test_what_is_not_known_is_said_so() -> None:
    told = recommendation().replay
    assert told is not None
    found = recommendation(replay=replace(told, worst_p95_s=None, memory_margin_gib=None))
    facts = dict(sentences.replay_figures(found))
    assert facts["worst p95 of an hour"] == "no hour had 20 requests"
    assert facts["GPU memory left"] == "not known"


def test_the_json_has_every_figure() -> None:
    found: Recommendation = recommendation()
    assert explanation_document(found)["replay"] == {
        "days": 14,
        "hours_above_80_percent": 3.0,
        "hours_above_100_percent": 1.0,
        "worst_p95_s": 0.44,
        "memory_margin_gib": 8.9,
        "requests_over_objective": 7,
        "requests": 1240,
        "requests_over_objective_today": 2,
        "objective_s": 0.5,
    }


def test_what_a_shadow_test_costs_is_not_called_a_switch() -> None:
    first = option(switch_usd=Decimal("6.1"), test_usd=Decimal("4.5"), payback_days=0.4)
    second = option(switch_usd=Decimal("3.2"), payback_days=0.1)
    tested = recommendation(gate=Gate.TEST, options=(first, second))
    said = [" ".join(line.split()) for line in _terminal(proposal(recommendation=tested)).splitlines()]
    assert "shadow test USD 4.50 once, whatever it shows" in said
    assert [line for line in said if line.startswith("switch")] == [
        "switch USD 6.10 once; with the test paid back in 10 hours",
        "switch USD 3.20 once, paid back in 2 hours",
    ]
    asked = _terminal(proposal(recommendation=recommendation(options=(second,))))
    assert "whatever it shows" not in asked
