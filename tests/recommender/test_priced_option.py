"""Late requests: by itself few, after an approval as many as the objective allows, and said."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rightsizer.domain.option import Risk, RiskResource
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender import priced_option
from tests import labelled

CASES = Path(__file__).parents[1] / "cases"
ONE_IN_TWENTY = labelled.read(CASES / "decide-p95-allows-one-in-twenty.yaml")
TWO_A_WEEK = labelled.read(CASES / "decide-two-late-a-week-are-asked-about.yaml")


def judged(case: Mapping[str, Any], **more: Any) -> Recommendation:
    return labelled.judged({**case, **more})


@pytest.mark.parametrize("case", [ONE_IN_TWENTY, TWO_A_WEEK], ids=["one in twenty", "two a week"])
def test_who_is_asked_reads_the_share_and_the_risk(case: Mapping[str, Any]) -> None:
    found = judged(case)
    option = found.chosen_option
    assert option is not None
    assert found.gate is Gate.PROPOSE
    assert option.late_share is not None
    assert priced_option.BY_ITSELF < option.late_share <= 0.05
    assert option.risks[RiskResource.LATENCY] == Risk.MEDIUM
    said = f"{100 * option.late_share:.1f} % of the requests would be late (0.0 % are today)"
    assert any(note.startswith(said) and note.endswith("allows 5 %") for note in option.notes)
    assert option.p95_s is not None
    assert option.p95_s <= case["endpoint"]["p95_s"]


def test_nobody_is_asked_about_a_p95_that_would_be_missed_or_that_nobody_declared() -> None:
    endpoint = ONE_IN_TWENTY["endpoint"]
    for p95_s in (1.15, None):
        found = judged(ONE_IN_TWENTY, endpoint={**endpoint, "p95_s": p95_s})
        assert [o for o in found.options if o.target.instance_count == 1] == []


def test_what_makes_few_late_is_taken_by_itself_as_before() -> None:
    found = judged(ONE_IN_TWENTY, endpoint={**ONE_IN_TWENTY["endpoint"], "p95_s": 6.0})
    assert found.gate is Gate.APPLY
    assert found.chosen_option is not None
    assert found.chosen_option.late_share is None


@pytest.mark.parametrize(("share", "finding"), [(0.013, Finding.OPTIMIZED), (None, Finding.UNDER_PROVISIONED)])
def test_what_a_person_accepted_is_not_taken_back_the_next_day(share: float | None, finding: Finding) -> None:
    usage = {**ONE_IN_TWENTY["usage"]}
    past = {"days_ago": 4, "from": "ml.g6.xlarge", "to": "ml.g6.xlarge", "from_count": 2, "to_count": 1}
    found = judged(
        ONE_IN_TWENTY,
        endpoint={**ONE_IN_TWENTY["endpoint"], "count": 1},
        before={"until_days_ago": 4, "type": "ml.g6.xlarge", "count": 2, "usage": usage},
        usage={**usage, "latency_s": 0.7, "gpu": 44},
        history=[{**past, "ended": "proven", "late_share": share}],
    )
    assert found.finding is finding
