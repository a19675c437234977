"""What was promised and what came of it is shown in every form of the report, and what is not known is said."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer import wire
from rightsizer.domain.history import EndedChange, PastChange, PastEnd
from rightsizer.domain.outcome import LedgerEntry, UnreadRow
from rightsizer.domain.policy import Policy
from rightsizer.domain.report import Report
from rightsizer.render import report_promises, text
from rightsizer.render.report_page import report
from rightsizer.render.slack import report_blocks
from rightsizer.reporting.totals import Records, make_report
from rightsizer.reporting.track_record import track_record
from tests.render.test_pages import EVIL, Outline
from tests.samples import NOW

SINCE = NOW - timedelta(days=180)
BETWEEN = "between 16 Jul 2025 and 13 Jan 2026"
PAST = PastChange(NOW, "ml.g5.2xlarge", "ml.g6.2xlarge", 1, 1, PastEnd.PROVEN, framework="vllm")
EMPTY = make_report(Records("111122223333", "eu-west-1", [], [], [], []), NOW - timedelta(days=7), NOW, NOW)


def one(number: int, endpoint: str = "chat", **changes: Any) -> EndedChange:
    return EndedChange(endpoint, f"c-{number}", replace(PAST, **changes))


def told(*remembered: EndedChange) -> Report:
    return replace(EMPTY, track_record=track_record(remembered, SINCE, NOW + timedelta(days=1), Policy()))


def measured(number: int, promised: float | None, seen: float, bound: float | None = None, **more: Any) -> EndedChange:
    return one(number, promised_slowdown=promised, realised_slowdown=seen, promised_bound=bound, **more)


def slack(made: Report) -> str:
    return json.dumps(report_blocks(made), ensure_ascii=False)


def email(made: Report) -> str:
    return text.report(made)[1]


def html(made: Report) -> str:
    return Outline(report(made)).words


SEVERAL = told(
    measured(1, 1.2, 1.5, 1.4, latency_ratio=1.31, stated_risk=1),
    measured(2, 1.3, 1.1, 1.6, endpoint="rank", framework="triton", ended=PastEnd.TESTED),
    one(3, "tts", ended=PastEnd.ROLLED_BACK, failure="alarm", stated_risk=1),
)


@pytest.mark.parametrize("view", [html, email])
def test_every_form_says_how_the_slowdowns_and_the_risks_turned_out(view: Any) -> None:
    said = view(SEVERAL)
    assert f"Of 3 changes and shadow tests that ended {BETWEEN}, 2 showed how fast the new type is." in said
    assert "They ran 3 % slower than promised on average" in said
    assert "1 of 2 was slower than the limit that was promised (it takes 39 outcomes to see whether 97.5 % stay" in said
    assert f"2 changes ended {BETWEEN}; 2 tell whether the stated risk was right: 1 proven, 1 rolled back" in said
    assert "too few to say anything of the stated risk: at least 65 more are needed" in said
    assert "Brier" not in said


def test_the_page_lists_each_outcome_with_its_units_and_each_level_with_its_range() -> None:
    said = html(SEVERAL)
    for part in ("1.20 ×", "1.50 ×beyond the limit", "1.31 ×", "shadow test", "one outcome has none", "triton"):
        assert part in said
    assert "low (1 of 4)" in said
    assert "0.5 to 2 %" in said
    assert "1 of 2 (50 %); at 95 % confidence 1.3 % to 99 %" in said
    assert "too few to tell: 65 more are needed" in said


def test_what_a_restore_took_back_later_is_not_called_proven() -> None:
    stood = one(1, stated_risk=0, at=NOW - timedelta(days=9))
    back = one(2, from_type=PAST.to_type, to_type=PAST.from_type, restores=True)
    made = told(stood, back)
    assert "1 tells whether the stated risk was right: 1 rolled back for how it served." in email(made)
    assert "where a later change had to restore what ran before" in html(made)


@pytest.mark.parametrize("view", [html, email, slack])
def test_every_form_says_how_many_stored_rows_could_not_be_read(view: Any) -> None:
    assert "could not be read" not in view(EMPTY).replace("Could not be read", "")
    lost = tuple(UnreadRow(f"ENDPOINT#{EVIL} PAST#c-{k}", EVIL) for k in range(2))
    assert "2 stored rows could not be read and are in no figure of this report." in view(replace(EMPTY, unread=lost))
    assert "1 stored row could not be read and is in no figure" in view(replace(EMPTY, unread=lost[:1]))


def test_the_page_lists_each_row_that_could_not_be_read_with_its_cause_and_both_stay_text() -> None:
    lost = UnreadRow(f"ENDPOINT#{EVIL} PAST#c-1", f"reading a PastChange: at: {EVIL}")
    outline = Outline(report(replace(EMPTY, unread=(lost,))))
    assert (outline.count("script"), outline.count("img")) == (1, 0)
    assert lost.key in outline.words
    assert lost.cause in outline.words
    assert "read-failed" in outline.words


def test_the_json_of_a_report_holds_the_same_and_comes_back_equal() -> None:
    assert wire.loads(Report, wire.dumps(SEVERAL)) == SEVERAL
    record = json.loads(wire.dumps(SEVERAL))["track_record"]
    assert [(row["endpoint"], row["promised"], row["measured"], row["ratio"]) for row in record["outcomes"]] == [
        ("chat", 1.2, 1.5, 1.25),
        ("rank", 1.3, 1.1, pytest.approx(1.1 / 1.3)),
    ]
    assert [(row["name"], row["n"]) for row in record["frameworks"]] == [("triton", 1), ("vllm", 1)]
    assert [(row["risk"], row["n"], row["fell_short"]) for row in record["levels"]] == [(1, 2, 1)]


@pytest.mark.parametrize("view", [html, email])
def test_where_nothing_ended_that_is_said_and_no_zero(view: Any) -> None:
    said = view(told())
    assert f"No change and no shadow test ended {BETWEEN}" in said
    assert f"No change ended {BETWEEN}." in said
    assert "Brier" not in said
    assert "0 changes" not in said


@pytest.mark.parametrize("view", [html, email])
def test_one_outcome_is_said_to_tell_nothing_about_the_next(view: Any) -> None:
    said = view(told(measured(1, 1.2, 1.5, stated_risk=0)))
    assert (
        "1 showed how fast the new type is. It ran 25 % slower than promised; no limit was promised. One outcome"
        in said
    )
    assert "One outcome tells nothing about the next." in said
    assert "too few to say anything of the stated risk: at least 12 more are needed" in said


def test_the_channel_is_spared_what_promises_came_to_and_page_and_mail_have_it() -> None:
    assert "how fast the new type is" in html(SEVERAL)
    assert "how fast the new type is" in email(SEVERAL)
    assert "how fast the new type is" not in slack(SEVERAL)


def test_what_ended_without_a_measurement_a_promise_or_an_answer_is_told_apart() -> None:
    assert "none shows how fast the new type is: that takes another type" in email(told(one(1)))
    assert "1 showed how fast the new type is, and none of them was promised a speed" in email(
        told(measured(1, None, 1.4))
    )
    assert f"1 change ended {BETWEEN}, and it does not tell whether a stated risk" in email(told(one(1)))
    assert "No change ended" in email(told(measured(1, 1.2, 1.4, ended=PastEnd.TESTED)))
    both = email(
        told(one(1, ended=PastEnd.APPLIED, stated_risk=1), one(2, ended=PastEnd.UPDATE_FAILED, failure="capacity"))
    )
    assert f"2 changes ended {BETWEEN}, and none tells whether a stated risk" in both


def test_enough_outcomes_do_without_the_remark_on_how_many_are_needed() -> None:
    every = [measured(number, 1.2, 1.3 + number / 1000, 1.4) for number in range(39)]
    assert "are needed to see" not in email(told(*every))
    assert "none of 39 was slower than the limit that was promised." in email(told(*every))
    assert "none of 38 was slower than the limit that was promised (it takes 39 outcomes" in email(told(*every[1:]))


def test_what_was_seen_is_held_against_what_was_stated() -> None:
    def judged(stated: int, proven: int, back: int) -> str:
        stood = [one(number, stated_risk=stated) for number in range(proven)]
        went = [one(1000 + n, stated_risk=stated, ended=PastEnd.ROLLED_BACK, failure="alarm") for n in range(back)]
        record = told(*stood, *went).track_record
        assert record is not None
        return report_promises.risk_assessment(record.levels[0])

    assert judged(0, 2, 1) == "too few to tell: 58 more are needed", "one of three is chance"
    assert judged(0, 3, 2) == "too few to tell: 60 more are needed"
    assert judged(0, 60, 20) == "more often than stated"
    assert judged(4, 60, 1) == "less often than stated"
    assert judged(4, 40, 40) == "as stated"
    assert judged(1, 4, 0) == "too few to tell: 9 more are needed"
    assert judged(1, 40, 0) == "not contradicted by 40 changes"


def test_enough_outcomes_get_a_score() -> None:
    back = [one(100 + n, stated_risk=3, ended=PastEnd.ROLLED_BACK, failure="alarm") for n in range(4)]
    said = email(told(*(one(number, stated_risk=3) for number in range(60)), *back))
    assert "Brier score 0.078 (0 is best; calling each harmless: 0.062)." in said


def test_what_prices_and_hours_say_is_no_error_of_an_estimate() -> None:
    entry = LedgerEntry("e1", "chat", "c-1", "", NOW - timedelta(days=9), "estimated", Decimal(730), 730, True, "")
    paid = replace(entry, id="e2", at=NOW - timedelta(days=1), kind="realised", usd=Decimal(48), hours=48)
    page = html(replace(EMPTY, ledger=(entry, paid)))
    assert "not reconciled" in page
    assert "+0.0 %" not in page


def test_a_report_from_before_it_was_kept_says_so_and_is_read() -> None:
    old = json.loads(wire.dumps(EMPTY))
    del old["track_record"]
    read = wire.revive(Report, old)
    assert read.track_record is None
    assert html(read).count("made before this was kept") == 2
    assert "Slowdown" not in email(read)


@pytest.mark.parametrize(("value", "said"), [(1.4, "1.40 ×"), (1000.0, "1000.00 ×"), (0.001, "0.001 ×")])
def test_a_factor_is_said_to_be_one(value: float, said: str) -> None:
    assert report_promises.factor(value) == said


def test_names_stay_text() -> None:
    made = told(measured(1, 1.2, 1.5, 1.4, endpoint=EVIL, framework=EVIL, from_type=EVIL, stated_risk=1))
    outline = Outline(report(made))
    assert (outline.count("script"), outline.count("img")) == (1, 0)
    assert outline.words.count(EVIL) == 5


NUMBERS = st.none() | st.floats() | st.floats(0.2, 5.0)


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, st.none() | st.integers(-1, 6)), max_size=5),
    st.sampled_from(
        [
            PastEnd.PROVEN,
            PastEnd.TESTED,
            PastEnd.ROLLED_BACK,
            PastEnd.HANDED_OVER,
            PastEnd.APPLIED,
            PastEnd.UPDATE_FAILED,
            PastEnd.RUNNING,
        ]
    ),
)
def test_whatever_was_measured_every_form_is_whole_and_has_no_number_that_is_none(rows: Any, ended: str) -> None:
    made = told(
        *(
            one(
                number,
                ended=ended,
                failure="alarm",
                promised_slowdown=promised,
                realised_slowdown=seen,
                promised_bound=bound,
                latency_ratio=bound,
                stated_risk=risk,
            )
            for number, (promised, seen, bound, risk) in enumerate(rows)
        )
    )
    for said in (html(made), email(made), slack(made)):
        words = said.replace("(", " ").replace(";", " ").replace(",", " ").split()
        assert not {"nan", "inf", "-inf", "None"} & set(words)
