"""Every labelled case of tests/cases: a configuration, a fortnight of metrics in short, and what must be said of it."""

import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from rightsizer.changes.overruled import overruling_reason
from rightsizer.domain.option import OptionKind
from tests.frozen.answers import differences_of
from tests.labelled import judged, outside, partners, read, said, told, unread, unstable

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
APART = {"not_to", "ruled_out", "also", "said", "unsaid", "not_checked", "shares_with", "saves", "p95_s"}
"""Expectations that are not compared word for word."""
CLOSED = ("bounds-closed", "routing-closed", "schedule-closed")
AUDITED = [f"D{n}" for n in (*range(1, 14), 15, 16, 17, 18, 21, 27, 28)]
"""Findings of the audit of the decisions that wait for rules of their own (tests/cases/README.md)."""


def marked(path: Path) -> ParameterSet:
    """The case; one that waits for a rule fails, and fails the suite on the day on which it no longer does.

    `make fast` takes each fourth.
    """
    case = read(path)
    marks = [] if CASES.index(path) % 4 == 0 else [pytest.mark.slow]
    if "expected_from" in case:
        why = f"{case['shows']}: its rule does not exist yet; with the rule, take the line `expected_from` out"
        marks.append(pytest.mark.xfail(strict=True, raises=AssertionError, reason=why))
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", [marked(path) for path in CASES])
def test_the_case_is_judged_as_labelled(path: Path) -> None:
    case = read(path)
    recommendation = judged(case)
    found, expected, why = said(recommendation), case["expect"], case["why"]
    open_to_dispute = {"gate"} if "disputed" in case else set()
    plain = {key: value for key, value in expected.items() if key not in APART | open_to_dispute}
    assert {key: found[key] for key in plain} == plain, (why, found, told(recommendation))
    for key in open_to_dispute:
        assert found[key] != expected[key], f"settled: take the line `disputed` out of {path.name}"
    assert expected.get("ruled_out", {}).items() <= found["ruled_out"].items(), (why, found)
    assert set(expected.get("also", [])) <= set(found["behind"]), (why, found)
    assert found["to"] not in expected.get("not_to", []), why
    for text in expected.get("said", []):
        assert text in told(recommendation), (why, told(recommendation))
    for text in expected.get("not_checked", []):
        assert any(text in unchecked for unchecked in recommendation.open_questions), (
            why,
            recommendation.open_questions,
        )
    for text in expected.get("unsaid", []):
        assert text not in told(recommendation), (why, told(recommendation))
    assert outside(recommendation, expected) == [], why
    assert "alike" not in case or unstable(case, recommendation) == [], why
    for option in recommendation.options:
        both_run = option.switch_usd > 0
        assert option.restart_needed == both_run or option.kind is OptionKind.SERVERLESS, (why, option)
    if "shares_with" in expected:
        assert partners(case, recommendation) == expected["shares_with"], why
    changed = differences_of(path.stem, recommendation)
    assert changed == [], "on purpose? then run `python -m tests.frozen.write answers` (tests/frozen)"


def test_each_case_says_why_and_nothing_that_is_not_read() -> None:
    cases = {path.name: read(path) for path in CASES}
    assert [name for name, case in cases.items() if not case["why"]] == []
    assert {name: unread(case) for name, case in cases.items() if unread(case)} == {}


@pytest.mark.parametrize(
    ("expect", "error"),
    [
        ("gate: silent", "new.yaml: expect.finding is missing; say one of Idle, OverProvisioned, "),
        ("{finding: Oversized, gate: silent}", "new.yaml: expect.finding is Oversized; say one of Idle, "),
        ("finding: Idle", "new.yaml: expect.gate is missing; say one of silent, propose, test, apply"),
    ],
)
def test_a_case_without_finding_or_gate_is_refused_by_name(tmp_path: Path, expect: str, error: str) -> None:
    path = tmp_path / "new.yaml"
    path.write_text(f"why: a new case\nexpect:\n  {expect}\n")
    with pytest.raises(ValueError, match=re.escape(error)):
        read(path)


def test_there_are_two_hundred_cases_each_for_a_reason_of_its_own() -> None:
    reasons = [read(path)["why"] for path in CASES]
    assert len(reasons) >= 200
    assert len(set(reasons)) == len(reasons)


@pytest.mark.parametrize("name", [*CLOSED, "tracking-minimum-of-two", "tracking-target-too-low"])
def test_an_approval_of_a_closed_dimension_is_carried_out_where_the_next_day_asks_the_same(name: str) -> None:
    asked = judged(read(CASES[0].parent / f"{name}.yaml"))
    assert asked.chosen_option is not None
    next_day = replace(asked, evaluated_at=asked.evaluated_at + timedelta(days=1))
    assert overruling_reason(asked.chosen_option, asked, next_day) is None


def test_sixty_cases_are_written_from_the_world_and_cite_it() -> None:
    cited = [(path.name, read(path)["source"]) for path in CASES if "source" in read(path)]
    assert len(cited) >= 60
    for name, source in cited:
        assert source["url"].startswith("https://"), name
        assert len(source["fact"]) > 30, name


def test_each_finding_that_waits_for_a_rule_has_a_case_that_says_what_is_right() -> None:
    shown = [read(path) for path in CASES if "shows" in read(path)]
    assert sorted(set(AUDITED) - {case["shows"] for case in shown}) == []
    assert [case["why"] for case in shown if case.get("expected_from", "decide") != "decide"] == []
    assert [path.name for path in CASES if "expected_from" in read(path) and "shows" not in read(path)] == []


def test_the_readme_counts_the_cases_that_wait() -> None:
    text = (CASES[0].parent / "README.md").read_text().partition("## Waiting for a rule")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| (D\d+) \| .* \| (\d+) \|$", text, re.MULTILINE))
    waiting = Counter(read(path)["shows"] for path in CASES if "expected_from" in read(path))
    assert {name: int(number) for name, number in rows.items()} == waiting


def test_what_the_readme_says_of_cases_and_traps_is_there() -> None:
    text = (CASES[0].parent / "README.md").read_text()
    root, stems = Path(__file__).parents[1], {path.stem for path in CASES}
    traps = [row for row in text.partition("## Traps")[2].splitlines() if row.startswith("| ")]
    held = {name for row in traps for name in re.findall(r"`([^`]+)`", row.split("|")[2])}
    assert [name for name in sorted(held) if name not in stems and not (root / name).is_file()] == []
    told = text.partition("Disputed now:")[2].partition("## Traps")[0]
    disputed = {path.stem for path in CASES if "disputed" in read(path)}
    assert set(re.findall(r"`([^`]+)`", told)) == disputed
