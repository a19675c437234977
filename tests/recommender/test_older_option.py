"""What earlier releases kept among the facts of an option is read where the field of today is empty."""

import pytest

from rightsizer.changes.plan.shadow_test import test_hours as hours_of_plan
from rightsizer.domain.older_option import with_older_facts
from tests import samples


@pytest.mark.parametrize(
    ("facts", "field", "hours", "planned"),
    [
        ({"test hours": "2.5"}, None, 2.5, 2.5),
        ({"test hours": "3"}, 5.0, 5.0, 5.0),
        ({"test hours": "a while"}, None, None, 2.0),
        ({}, None, None, 2.0),
        ({}, 0.2, 0.2, 1.0),
        ({"test hours": "90"}, None, 90.0, 24.0),
    ],
)
def test_the_hours_of_a_shadow_test(
    facts: dict[str, str], field: float | None, hours: float | None, planned: float
) -> None:
    option = samples.option(facts=facts, test_hours=field)
    assert with_older_facts(option).test_hours == hours
    assert hours_of_plan(option) == planned
