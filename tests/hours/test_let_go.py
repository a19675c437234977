"""An endpoint is taken out of its office hours for good: it rises where it sleeps, people are told, and it stays."""

from datetime import timedelta

import pytest

from rightsizer.domain.hours_record import HoursState
from rightsizer.errors import ConflictError, InputError
from rightsizer.flows.orders import Orders
from rightsizer.flows.wake import WakeOrders
from tests.hours.world import CLOSES, NAME, OPENS, HoursWorld, hours_world

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NIGHT = CLOSES + 2 * HOUR


def orders(w: HoursWorld) -> WakeOrders:
    ports = w.flow.ports
    return WakeOrders(ports.book, ports.limits.hours, ports.journal.switch)


def tag(w: HoursWorld, value: str = "") -> None:
    """Its owner removes the tag, or gives it another value."""
    with w.others() as sagemaker:
        arn = sagemaker.describe_endpoint(EndpointName=NAME)["EndpointArn"]
        if value:
            sagemaker.add_tags(ResourceArn=arn, Tags=[{"Key": "rightsizer:hours", "Value": value}])
        else:
            sagemaker.delete_tags(ResourceArn=arn, TagKeys=["rightsizer:hours"])


def test_what_sleeps_rises_and_is_not_stopped_again_and_people_are_told_once() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        orders(w).let_go(NAME, "cli:ana", w.now)
        w.until(NIGHT + HOUR)
        assert (w.state, w.exists()) == (HoursState.RUNNING, True)
        w.until(NIGHT + DAY)
        assert w.exists(), "the next evening too"
        ((subject, text),) = w.told
        assert subject == f"{NAME} runs and stays on"
        assert "cli:ana took it out" in text
        assert "aws sagemaker delete-tags" in text


def test_what_runs_is_not_stopped_in_the_evening() -> None:
    with hours_world(scaled=False) as w:
        w.until(OPENS + HOUR)
        orders(w).let_go(NAME, "cli:ana", w.now)
        w.until(NIGHT + DAY)
        assert w.exists()


@pytest.mark.parametrize("removed", [True, False])
def test_another_value_or_a_tag_that_was_removed_and_set_again_takes_it_in_again(removed: bool) -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        orders(w).let_go(NAME, "cli:ana", w.now)
        w.until(OPENS + HOUR)
        if removed:
            tag(w)
            w.until(OPENS + 2 * HOUR)
            assert w.record.let_go is None
        tag(w, "mon-fri 08:00-19:00 Europe/Berlin" if removed else "mon-fri 08:00-18:30 Europe/Berlin")
        w.until(NIGHT + DAY)
        assert not w.exists()


def test_a_name_without_hours_and_a_hard_freeze_are_refused() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        with pytest.raises(InputError, match="no endpoint of that name"):
            orders(w).let_go("nobody", "cli:ana", w.now)
        with w.box.gate.unrecorded():
            Orders(w.flow.ports.journal).freeze("U1", w.now, hard=True)
        with pytest.raises(ConflictError, match="frozen hard by U1"):
            orders(w).let_go(NAME, "cli:ana", w.now)
