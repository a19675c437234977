"""The deployed function of the office hours: its schedule, its role and its rows, from an evening to the morning."""

from datetime import UTC, datetime, timedelta

from rightsizer.aws.hours import HoursTable
from rightsizer.aws.table import Table
from rightsizer.domain.hours_record import HoursState
from sandbox.sagemaker.load import Served
from tests.doors.scene import scene

EVENING = datetime(2026, 11, 16, 17, 30, tzinfo=UTC)
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/chat@sha256:" + "a" * 64
TAGS = {"rightsizer:hours": "mon-fri 08:00-19:00 Europe/Berlin", "rightsizer:owner": "search"}


def test_a_deployed_stack_stops_an_endpoint_in_the_evening_and_starts_it_before_the_morning() -> None:
    with scene(now=EVENING, MayStop="tagged") as at:
        at.box.add_endpoint("chat", tags=TAGS, image=IMAGE)
        at.box.load("chat", lambda minute, kind, count: Served(0))
        at.pass_time(hours=3)
        assert "chat" not in at.box.world.fleet.endpoints
        with at.box.gate.unrecorded():
            name = at.stack.parts.names["Table"]
            record = HoursTable(Table(at.box.client("dynamodb"), name)).load("chat")
        assert record is not None
        assert record.state is HoursState.STOPPED
        at.pass_time(hours=10, minutes=30)
        assert at.box.clock.now == EVENING + timedelta(hours=13, minutes=30)
        assert at.box.status("chat") == "InService"
        assert at.stack.failures == []
        assert at.refused() == []
        assert "hours" in {run.door for run in at.stack.invocations}


def test_without_the_parameter_nothing_is_stopped() -> None:
    with scene(now=EVENING) as at:
        at.box.add_endpoint("chat", tags=TAGS, image=IMAGE)
        at.pass_time(hours=2)
        assert at.box.status("chat") == "InService"
        assert at.box.calls.of("sagemaker", "DeleteEndpoint") == []
        assert "hours" not in {run.door for run in at.stack.invocations}
