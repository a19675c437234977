"""Hours in which a stack stopped an endpoint are neither idle nor unknown in a scan either."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer import bootstrap
from rightsizer.aws.session import Session
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.policy import Policy
from rightsizer.domain.recommendation import Finding
from rightsizer.errors import ReadError
from rightsizer.terminal.survey import Survey, survey
from sandbox.account import Sandbox
from tests.cli.conftest import use

HOURS = "mon-fri 08:00-19:00 Europe/Berlin"


@pytest.fixture
def morning(box: Sandbox) -> Sandbox:
    """An endpoint with a fortnight of requests that its office hours created again an hour ago."""
    box.add_endpoint("chat", created=box.clock.now - timedelta(hours=1), tags={"rightsizer:hours": HOURS})
    use(box, "chat", 30.0, 200.0)
    return box


def scanned(box: Sandbox, hours: object = None) -> Survey:
    ports = bootstrap.reading_ports(Session("eu-west-1"))
    if callable(hours):
        ports = replace(ports, hours=hours)
    return survey(ports, "eu-west-1", Policy(), box.clock.now, lambda *_: None)


def test_a_start_of_ours_this_morning_is_no_new_endpoint(morning: Sandbox) -> None:
    now = morning.clock.now
    stopped = StoppedTime(
        now - timedelta(hours=13),
        now - timedelta(hours=1),
        was_modified_at=now - timedelta(days=60),
        modified_at=now - timedelta(hours=1),
    )
    record = HoursRecord(EndpointRef("111122223333", "eu-west-1", "chat"), hours=HOURS, stopped_times=(stopped,))

    def known(_: Collection[str]) -> Mapping[str, HoursRecord]:
        return {"chat": record}

    (without,) = scanned(morning).recommendations
    (found,) = scanned(morning, known).recommendations
    assert without.finding is Finding.NOT_ENOUGH_DATA
    assert found.finding is not Finding.NOT_ENOUGH_DATA


def test_records_that_cannot_be_read_make_a_scan_of_an_endpoint_with_hours_incomplete(morning: Sandbox) -> None:
    def unread(_: Collection[str]) -> Mapping[str, HoursRecord]:
        raise ReadError("DynamoDB is away")

    found = scanned(morning, unread)
    assert [reason.sentence for reason in found.incomplete] == ["DynamoDB is away"]
    assert not found.is_whole
