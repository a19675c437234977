"""Machines can follow a proposal on the event bus."""

import json

from rightsizer import bootstrap
from rightsizer.aws.messaging import REPORT_EVENTS
from tests.doors.scene import BIG, PROPOSE, Scene, scene


def sent(at: Scene) -> list[dict[str, object]]:
    calls = at.box.calls.of("events", "PutEvents")
    return [json.loads(entry["Detail"]) for call in calls if not call.error for entry in call.params["Entries"]]


def test_each_state_of_a_proposal_is_one_event_of_our_source() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.click(BIG, "Reject")
        at.stack.settle()
        made, rejected = sent(at)
        (asked,) = at.proposals()
        assert (made["state"], rejected["state"]) == ("pending", "rejected")
        assert made["proposal"] == rejected["proposal"] == asked.id
        assert made["key"] != rejected["key"]
        assert made["endpoint"] == BIG
        entry = at.box.calls.of("events", "PutEvents")[0].params["Entries"][0]
        assert (entry["Source"], entry["DetailType"]) == ("rightsizer", "Rightsizer Proposal State Change")
        assert entry["Resources"] == [asked.ref.arn]
        assert at.refused() == []


def test_a_bus_that_refuses_does_not_stop_the_message() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.box.deny("events:PutEvents")
        at.sweep()
        assert "Approve" in at.message(BIG).buttons()
        assert at.stack.failures == []
        assert at.stack.dead_letters() == []


def test_a_report_that_is_stored_is_one_event_and_a_bus_that_refuses_it_stops_nothing() -> None:
    with scene() as at:
        at.stack.fire("Report.Weekly")
        (told,) = sent(at)
        assert told["key"]
        assert str(told["files"]).count("s3://") >= 3
        at.box.deny("events:PutEvents")
        at.stack.fire("Report.Weekly")
        assert at.stack.failures == []


def reports(at: Scene) -> list[dict[str, object]]:
    return [one for one in sent(at) if "files" in one]


def test_a_report_event_that_was_refused_is_sent_once_by_the_first_hourly_sweep_that_can() -> None:
    with scene() as at:
        at.stack.quiet |= {"Report.Weekly"}
        at.box.deny("events:PutEvents")
        at.stack.fire("Report.Weekly")
        at.pass_time(hours=2)
        assert reports(at) == []
        assert at.stack.failures == [], "a sweep that cannot send it looks at the endpoints all the same"
        at.box.gate.heal()
        at.pass_time(hours=3)
        (told,) = reports(at)
        assert str(told["files"]).count("s3://") >= 3
        assert told["key"]
        assert len(at.refused()) == 3, "one by the report, two by sweeps"


def test_a_report_event_is_told_although_the_row_of_another_cannot_be_read() -> None:
    with scene() as at:
        at.stack.quiet |= {"Report.Weekly"}
        at.box.deny("events:PutEvents")
        at.stack.fire("Report.Weekly")
        at.box.gate.heal()
        bootstrap.table().put({"pk": REPORT_EVENTS, "sk": "spoilt", "state": "due", "doc": "{"})
        at.pass_time(hours=1)
        assert len(reports(at)) == 1


def test_a_change_is_told_beside_its_proposal() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.drive(BIG)
        at.sweep()
        at.click(BIG, "Approve")
        at.stack.settle()
        told = [one for one in sent(at) if "change" in one]
        assert [one["state"] for one in told] == ["applying"]
        assert told[0]["proposal"] == at.proposals()[0].id
