"""Every labelled case of tests/cases/components: what an endpoint holds, and what must be said of each component."""

from pathlib import Path

import pytest

from tests.recommender.component_cases import judged, read, said, told, unread

CASES = sorted((Path(__file__).parents[1] / "cases" / "components").glob("*.yaml"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_the_case_is_judged_as_labelled(path: Path) -> None:
    case = read(path)
    found, expected = judged(case), case["expect"]
    answer = said(found)
    plain = {key: value for key, value in expected.items() if key not in ("saves", "said")}
    assert {key: answer[key] for key in plain} == plain, (case["why"], answer, told(found))
    for text in expected.get("said", []):
        assert text in told(found), (case["why"], told(found))
    if "saves" in expected:
        low, high = expected["saves"]
        assert low <= float(found.saving_usd_per_month) <= high, case["why"]


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_the_case_says_why_with_its_source_and_nothing_that_is_not_read(path: Path) -> None:
    case = read(path)
    assert case["why"]
    assert case["source"]["url"].startswith("https://docs.aws.amazon.com/")
    assert unread(case) == []


def test_each_finding_has_a_case() -> None:
    named = {finding for path in CASES for finding in read(path)["expect"]["findings"].values()}
    assert named == {"Idle", "OverProvisioned", "Optimized", "UnderProvisioned", "NotEnoughData"}
