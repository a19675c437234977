"""What a dimension does where it says nothing: nobody carries it out, and nothing of it is deployed or watched."""

from dataclasses import replace
from typing import Any

from rightsizer.changes.dimension import PlannedChange, Planning
from rightsizer.domain.change import JournalEvent
from rightsizer.domain.option import CHANGEABLE, OptionKind
from rightsizer.domain.reason import Code
from tests.changes.account import MONDAY
from tests.changes.memory import world
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


def test_what_was_planned_is_in_the_change_before_its_first_write_with_a_line_of_the_journal() -> None:
    begun = world().start()
    assert begun.before is not None
    plan = replace(begun.plan, guardrail="no alarm watches it")
    bare = replace(begun, before=None, journal=begun.journal[:1], outcome="")
    planned = PlannedChange(begun.before, plan, ("one note", "another")).apply_to(bare, MONDAY)
    assert (planned.before, planned.plan, planned.outcome) == (begun.before, plan, "no alarm watches it")
    first, note = planned.journal
    assert first == bare.journal[0]
    assert (note.at, note.step, note.status) == (MONDAY, JournalEvent.PLAN, "noted")
    assert note.detail == "no alarm watches it; one note; another"


def test_what_needs_a_new_configuration_is_deployed_and_watched() -> None:
    class Typed(Planning):
        deploys = (OptionKind.INSTANCE_COUNT,)

    one: Any = Typed()
    option = approved(COUNT).inputs.option
    assert (one.is_deployed(option), one.is_watched(OptionKind.INSTANCE_COUNT)) == (True, True)
    other = replace(option, kind=OptionKind.ROUTING)
    assert (one.is_deployed(other), one.is_watched(OptionKind.ROUTING)) == (False, False)
