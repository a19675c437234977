"""What is put on the event bus keeps to the published schemas and is what the golden files say."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]

from rightsizer.aws import messaging
from rightsizer.aws.messaging import EventBus
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.errors import WriteRefusedError
from rightsizer.reporting.totals import Records, make_report
from tests.samples import NOW, proposal

OUT = Path(__file__).parents[2] / "events" / "outgoing"
SCHEMAS = {
    messaging.PROPOSAL: "proposal-state-change",
    messaging.CHANGE: "change-state-change",
    messaging.REPORT: "report-stored",
}


class Bus:
    """Takes events, and refuses the last one of a request where it is told to."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.entries: list[dict[str, Any]] = []
        self.refuses = refuses

    def put_events(self, **given: Any) -> dict[str, Any]:
        self.entries += given["Entries"]
        rows: list[dict[str, str]] = [{"EventId": "1"} for _ in given["Entries"]]
        if self.refuses:
            rows[-1] = {"ErrorCode": "InternalFailure", "ErrorMessage": "no"}
        return {"FailedEntryCount": int(self.refuses), "Entries": rows}


def schema(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((OUT / "schemas" / f"{SCHEMAS[kind]}.json").read_text())
    return found


def sent(kind: str) -> dict[str, Any]:
    """The event of a kind, from samples."""
    bus = Bus()
    asked = replace(
        proposal(),
        state=ProposalState.PROVEN,
        change_id="c-1",
        measured_usd_per_month=Decimal("412.50"),
        decision=Decision(ProposalState.APPROVED, "slack:U1", NOW),
    )
    if kind == messaging.REPORT:
        made = make_report(Records("111122223333", "eu-west-1", [], [], [], []), NOW - timedelta(days=7), NOW, NOW)
        detail = messaging.report_detail(made, {"html": "s3://bucket/reports/a.html"})
        EventBus(bus).report_stored(detail)  # type: ignore[arg-type]
    else:
        EventBus(bus).proposal_moved(asked)  # type: ignore[arg-type]
    (found,) = [one for one in bus.entries if one["DetailType"] == kind]
    return found | {"Detail": json.loads(found["Detail"])}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_what_is_sent_keeps_to_its_schema_and_has_no_key_that_the_schema_lacks(kind: str) -> None:
    published = schema(kind)
    Draft202012Validator.check_schema(published)
    assert published["title"] == kind
    detail = sent(kind)["Detail"]
    Draft202012Validator(published, format_checker=FormatChecker()).validate(detail)
    assert detail.keys() <= published["properties"].keys()


@pytest.mark.parametrize("kind", SCHEMAS)
def test_what_is_sent_is_the_golden_file(kind: str) -> None:
    assert sent(kind) == json.loads((OUT / "golden" / f"{SCHEMAS[kind]}.json").read_text())


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_detail_without_one_of_its_keys_breaks_the_schema(kind: str) -> None:
    detail = sent(kind)["Detail"]
    checked = Draft202012Validator(schema(kind))
    for name in schema(kind)["required"]:
        assert not checked.is_valid({key: value for key, value in detail.items() if key != name}), name


@pytest.mark.parametrize("state", ProposalState)
def test_every_state_is_in_the_schema_and_a_change_is_told_where_there_is_one(state: ProposalState) -> None:
    bus = Bus()
    EventBus(bus).proposal_moved(replace(proposal(), state=state, change_id="c-1"))  # type: ignore[arg-type]
    kinds = [one["DetailType"] for one in bus.entries]
    assert state in schema(messaging.PROPOSAL)["properties"]["state"]["enum"]
    is_of_a_change = state in schema(messaging.CHANGE)["properties"]["state"]["enum"]
    assert kinds == [messaging.PROPOSAL, messaging.CHANGE][: 1 + is_of_a_change]


def test_an_event_of_several_that_is_refused_is_an_error() -> None:
    asked = replace(proposal(), state=ProposalState.APPLYING, change_id="c-1")
    with pytest.raises(WriteRefusedError, match="InternalFailure"):
        EventBus(Bus(refuses=True)).proposal_moved(asked)  # type: ignore[arg-type]


def test_the_page_names_each_kind_and_each_key() -> None:
    page = (OUT.parents[1] / "docs" / "events.md").read_text()
    for kind in SCHEMAS:
        assert kind in page
        for name in schema(kind)["properties"]:
            assert f"`{name}`" in page, (kind, name)
