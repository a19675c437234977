"""Growth: what is proposed where today's fleet does not serve, with its cost, its budget and its way back."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender import growth
from tests import labelled
from tests.recommender import kit

CASES = Path(__file__).parents[1] / "cases"
LATE = labelled.read(CASES / "grow-within-its-budget.yaml")


def judged(**more: Any) -> Recommendation:
    """The late endpoint with another endpoint section, or other sections beside it."""
    sections = {
        key: {**LATE.get(key, {}), **value} if isinstance(value, dict) else value for key, value in more.items()
    }
    return labelled.judged({**LATE, **sections})


def grown_before(**more: Any) -> PastChange:
    at = kit.NOW - timedelta(days=30)
    made = PastChange(at, "ml.g6.xlarge", "ml.g6.xlarge", 1, 2, PastEnd.PROVEN, grows=True)
    return replace(made, **more)


def test_growth_is_a_cost_and_no_saving_and_counts_in_no_sum_of_what_could_be_saved() -> None:
    found = judged()
    assert found.finding is Finding.UNDER_PROVISIONED
    assert found.chosen_option is not None
    assert found.chosen_option.grows
    assert found.chosen_option.saving_usd_per_month == -found.chosen_option.growth_usd  # type: ignore[operator]
    assert found.identified_usd_per_month == 0
    assert found.replay is not None
    assert found.replay.requests_over_objective < found.replay.over_objective_today


def test_the_cheapest_sure_growth_comes_first_and_what_is_guessed_behind_it() -> None:
    first, *others = judged().options
    sure = [o for o in others if o.risk <= 1]
    assert [o.usd_per_month for o in (first, *sure)] == sorted(o.usd_per_month for o in (first, *sure))
    assert [o.risk > 1 for o in others] == sorted(o.risk > 1 for o in others)


def test_no_cooldown_silences_growth() -> None:
    row = {"days_ago": 1, "from": "ml.g6.xlarge", "to": "ml.g6.xlarge", "ended": "rolled-back", "failure": "capacity"}
    assert judged(history=[row]).gate is Gate.APPLY


def test_requests_that_fail_keep_no_growth_from_being_applied() -> None:
    """Growth is to mend them; a change that saves would be asked about first."""
    found = judged(usage={"errors_per_hour": 300})
    assert (found.finding, found.gate) == (Finding.UNDER_PROVISIONED, Gate.APPLY)


def test_growth_that_went_back_for_how_it_served_is_not_applied_again_by_itself() -> None:
    row = {"days_ago": 3, "from": "ml.g6.xlarge", "to": "ml.g6.xlarge", "from_count": 1, "to_count": 2}
    found = judged(history=[{**row, "ended": "rolled-back", "failure": "errors"}])
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.BLACKLISTED)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 3000))
def test_nothing_beyond_the_budget_is_ever_applied_by_itself(usd: int) -> None:
    found = judged(endpoint={**LATE["endpoint"], "tags": {"rightsizer:may-grow": str(usd)}})
    option = found.chosen_option
    assert option is not None
    assert option.growth_usd is not None
    assert (found.gate is Gate.APPLY) == (option.growth_usd <= usd)
    assert f"USD {option.growth_usd:,.2f} a month more" in found.gate_reason.sentence


def test_a_budget_is_for_all_growth_together() -> None:
    history = (grown_before(),)
    assert growth.first_growth(history) == history[0]
    assert growth.first_growth((grown_before(ended=PastEnd.ROLLED_BACK),)) is None
    assert growth.first_growth((grown_before(grows=False),)) is None
    older = grown_before(to_count=3)
    assert growth.first_growth((older, *history)) is older


@pytest.mark.parametrize("counts", [{}, {"min_instances": 3}, {"count": 2}])
def test_the_parts_of_its_cost_make_up_the_whole(counts: dict[str, int]) -> None:
    found = judged(endpoint={**LATE["endpoint"], **counts}, usage={**LATE["usage"], "per_slot": 1300})
    assert found.options
    for option in found.options:
        assert found.usd_per_month is not None
        assert option.usd_per_month == found.usd_per_month - option.saving_usd_per_month
        assert option.growth_usd == max(-option.saving_usd_per_month, Decimal(0))
