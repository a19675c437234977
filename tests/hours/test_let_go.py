"""An endpoint is taken out of its office hours for good: it rises where it sleeps, people are told, and it stays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast

import pytest

from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.hours_record import HoursState
from rightsizer.domain.reason import Code
from rightsizer.errors import ConflictError, InputError
from rightsizer.flows.orders import Orders
from rightsizer.flows.wake import WakeOrders
from rightsizer.ports.changes import HoursAccount
from tests.hours.world import CLOSES, NAME, OPENS, HoursWorld, hours_world

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
NIGHT = CLOSES + 2 * HOUR


def orders(w: HoursWorld) -> WakeOrders:
    ports = w.flow.ports
    return WakeOrders(ports.book, ports.limits.hours, ports.journal.switch)


@dataclass(frozen=True)
class Lagging:
    """An account whose list of tagged endpoints does not show the new ones yet."""

    account: HoursAccount

    def __getattr__(self, name: str) -> Any:
        return getattr(self.account, name)

    def tagged_endpoints(self) -> Mapping[str, tuple[EndpointRef, Mapping[str, str]]]:
        return {}


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
        assert "ana took it out" in text
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


def test_an_order_after_the_tag_changed_means_its_new_value() -> None:
    with hours_world(scaled=False) as w:
        w.until(OPENS + 2 * HOUR)
        tag(w, "mon-fri 08:00-18:30 Europe/Berlin")
        w.until(OPENS + 3 * HOUR)
        assert w.record.hours == "mon-fri 08:00-18:30 Europe/Berlin", "though the reason is the same as before"
        orders(w).let_go(NAME, "cli:ana", w.now)
        w.until(NIGHT + DAY)
        assert w.exists()


def test_an_order_means_the_value_that_the_tag_has_though_no_look_saw_it_yet() -> None:
    with hours_world(scaled=False) as w:
        w.until(OPENS + 2 * HOUR)
        tag(w, "mon-fri 08:00-18:30 Europe/Berlin")
        orders(w).let_go(NAME, "cli:ana", w.now)
        w.until(NIGHT + DAY)
        assert w.exists()
        tag(w, "mon-fri 08:00-18:00 Europe/Berlin")
        w.until(NIGHT + DAY + HOUR)
        assert not w.exists(), "another value after the order counts"


def test_what_was_handed_over_is_refused_with_the_commands_since_nothing_starts_it() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        with w.others() as sagemaker:
            sagemaker.delete_endpoint_config(EndpointConfigName=f"{NAME}-config")
        w.until(OPENS)
        assert w.state is HoursState.HANDED_OVER
        answer = orders(w).let_go(NAME, "cli:ana", w.now)
        assert answer.reason is not None
        assert (answer.is_recorded, answer.reason.code) == (False, Code.NEEDS_APPROVAL)
        assert any("create-endpoint-config" in line for line in answer.by_hand)
        assert w.record.let_go is None


def test_an_order_outlives_a_list_of_tags_that_lags_behind() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        orders(w).let_go(NAME, "cli:ana", w.now)
        whole = w.flow
        w.flow = replace(whole, ports=replace(whole.ports, account=cast("HoursAccount", Lagging(whole.ports.account))))
        w.until(NIGHT + 2 * HOUR)
        assert (w.state, w.record.let_go is None) == (HoursState.RUNNING, False)
        w.flow = whole
        w.until(NIGHT + DAY)
        assert w.exists()


@pytest.mark.parametrize("gone", [True, False])
def test_an_order_about_what_is_gone_or_was_just_created_is_kept(gone: bool) -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        orders(w).let_go(NAME, "cli:ana", w.now)
        w.until(NIGHT + 2 * HOUR)
        with w.others() as sagemaker:
            sagemaker.delete_endpoint(EndpointName=NAME)
            w.box.clock.advance(10 * MINUTE)
            if not gone:
                sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName=f"{NAME}-config")
        w.until(NIGHT + 2 * HOUR + 20 * MINUTE)
        assert w.record.let_go is not None


def test_a_name_without_hours_and_a_hard_freeze_are_refused() -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        with pytest.raises(InputError, match="no endpoint of that name"):
            orders(w).let_go("nobody", "cli:ana", w.now)
        with w.box.gate.unrecorded():
            Orders(w.flow.ports.journal).freeze("U1", w.now, hard=True)
        with pytest.raises(ConflictError, match="frozen hard by U1"):
            orders(w).let_go(NAME, "cli:ana", w.now)
