"""The last words of the demo: one sentence of money, the story in its order, the files to open."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.recommendation import Finding
from sandbox.demo_end import files, headline, story
from sandbox.demo_table import ASKED, BY_TAG, LEFT, Row, recommended
from tests.samples import option, recommendation


def row(happened: str, saving: str, cost: str | None = "100") -> Row:
    known = None if cost is None else Decimal(cost)
    return Row("e", "1 x ml.g5.xlarge", "Idle", "", Decimal(saving), happened, "", known)


def test_the_sentence_adds_up_what_is_saved_and_what_waits() -> None:
    rows = [
        row("changed by itself, proven", "10"),
        row(ASKED, "7"),
        row(ASKED, "0"),
        row(LEFT, "0", None),
        row("withdrawn", "9", None),
    ]
    report = {
        "totals": {"spend": "290.40", "endpoints": 5, "proven": "10.00", "waiting": "7.20"},
        "money": {"waits": [{"proposals": 1}, {"proposals": 2}]},
    }
    assert headline(report, [*rows, row(BY_TAG + ": went home", "3")]) == (
        "You pay $290 a month for 5 endpoints. $10 a month is proven saved, and office hours save $3. "
        "$7 a month waits for 3 answers in Slack; 1 more must be answered, for want of capacity."
    )


def test_the_column_of_what_is_recommended_names_the_later_stages_whose_savings_are_in_the_sum() -> None:
    hours, alone = option(), recommendation()
    tracked = replace(option(), target=replace(option().target, minimum=1, maximum=4, metric="requests"))
    assert recommended(replace(alone, stages=(hours,))) == f"{recommended(alone)}, then fewer by the hour"
    assert recommended(replace(alone, stages=(tracked,))).endswith(f", then 1 to 4 x {tracked.target.instance_type}")
    short = replace(alone, options=(), stages=(), finding=Finding.UNDER_PROVISIONED)
    assert recommended(short) == "more than it has; no option is known"


def test_the_story_has_the_day_the_kind_and_the_sentence() -> None:
    at = datetime(2026, 11, 20, 4, 36, tzinfo=UTC)
    told = [Occurrence("1", at, "change-rolled-back", "e", "its alarm fired"), Occurrence("2", at, "other", "e", "x")]
    assert list(story(told)) == ["Fri 04:36  went back  its alarm fired", "Fri 04:36  other      x"]


def test_the_pages_come_first_and_each_path_ends_its_line() -> None:
    written = [Path("o/a.csv"), Path("o/a.html"), Path("o/slack.html")]
    assert list(files(written)) == [
        "Open the weekly report:",
        "  o/a.html",
        "Open what people saw in Slack:",
        "  o/slack.html",
        "Data:",
        "  o/a.csv",
    ]
