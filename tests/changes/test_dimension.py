"""What a dimension does where it says nothing: nobody carries it out, and nothing of it is deployed or watched."""

from typing import Any

from rightsizer.changes.dimension import Planning
from rightsizer.domain.option import CHANGEABLE, OptionKind
from rightsizer.domain.reason import Code
from tests.changes.test_capacity import COUNT, approved


class Silent(Planning):
    """Only the defaults."""


def test_a_dimension_without_a_plan_is_not_carried_out() -> None:
    (why,) = Silent().plan(approved(COUNT))  # type: ignore[misc]
    assert (why.code, why.sentence) == (Code.NOT_IN_PLACE, "instance-count is not carried out by this program")


def test_the_defaults_deploy_nothing_on_the_kinds_that_may_be_changed() -> None:
    one: Any = Silent()
    assert (one.applies_to, one.deploys, one.is_watched(OptionKind.ROUTING)) == (CHANGEABLE, (), False)
    inputs = approved(COUNT).inputs
    assert one.with_live_counts(inputs) is inputs
