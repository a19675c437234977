"""Outgoing messages: events on the account's default bus, pages on the evaluation queue.

The events are for machines that follow proposals and reports (docs/events.md). The queue carries pages of endpoints as
messages that `intake` reads back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import batched
from typing import TYPE_CHECKING, Any

from rightsizer import wire
from rightsizer.aws.errors import translate_write_errors
from rightsizer.aws.table import Row, document, epoch, readable_rows, text
from rightsizer.errors import RightsizerError, WriteRefusedError
from rightsizer.telemetry import Failure, attempt, logger

if TYPE_CHECKING:
    from types_boto3_events import EventBridgeClient
    from types_boto3_lambda import LambdaClient
    from types_boto3_sqs.client import SQSClient

    from rightsizer.aws.table import Table
    from rightsizer.domain.proposal import Proposal
    from rightsizer.domain.report import Report
    from rightsizer.domain.trigger import LookAt, LookBeyond

SOURCE = "rightsizer"
"""The only source that the role may send (the template's condition on ``events:source``)."""
MOST_MESSAGES = 10
"""Messages of one SendMessageBatch at most (SQS API reference)."""
PROPOSAL = "Rightsizer Proposal State Change"
CHANGE = "Rightsizer Change State Change"
REPORT = "Rightsizer Report Stored"
OF_A_CHANGE = frozenset({"applying", "applied", "proven", "rolled-back", "handed-over"})
"""States in which a proposal shows its change."""
REPORT_EVENTS = "REPORT#EVENTS"
"""Partition of the events of reports that the bus refused."""
DUE, SENT = "due", "sent"
"""States of such an event."""
OWED_DAYS = 30
"""So long such an event is kept, sent or not."""


class EventBus:
    """Keeps the promise of `ports.evaluation.EventSink`."""

    def __init__(self, client: EventBridgeClient) -> None:
        self._client = client

    def proposal_moved(self, proposal: Proposal) -> None:
        """Send one event about the state that the proposal has now, and one about its change where it has one.

        WriteRefusedError when the bus does not take one of them.
        """
        sent = [_entry(PROPOSAL, proposal.ref.arn, event_detail(proposal))]
        if proposal.change_id and proposal.state in OF_A_CHANGE:
            sent.append(_entry(CHANGE, proposal.ref.arn, change_detail(proposal)))
        self._put(sent, f"sending the events of proposal {proposal.id}")

    def report_stored(self, detail: Mapping[str, Any]) -> None:
        """Send one event about a report (`report_detail`). WriteRefusedError when the bus does not take it."""
        self._put([_entry(REPORT, "", detail)], "sending the event of a report")

    def _put(self, entries: list[Any], doing: str) -> None:
        with translate_write_errors("events:PutEvents", doing):
            answer = self._client.put_events(Entries=entries)
        for failed in answer["Entries"] if answer["FailedEntryCount"] else ():
            if failed.get("ErrorCode"):
                raise WriteRefusedError(doing, failed["ErrorCode"], failed.get("ErrorMessage", ""))


class ReportEvents:
    """Sends the event of a report, and keeps one that the bus refused until a sweep has sent it."""

    def __init__(self, bus: Callable[[], EventBus], table: Table, clock: Callable[[], datetime]) -> None:
        self._bus, self._table, self._clock = bus, table, clock

    def send(self, report: Report, files: Mapping[str, str]) -> None:
        """Send the event of the report. Where that fails it is kept, and the error of the bus goes up."""
        detail = report_detail(report, files)
        try:
            self._bus().report_stored(detail)
        except RightsizerError:
            key = report_key(report)
            attempt("keeping the event of the report", key, partial(self._keep, key, detail, DUE))
            raise

    def send_again(self) -> int:
        """Send each event that is kept and due; returns how many the bus took. One that it refuses stops no other."""
        sent = 0
        for key, detail in filter(None, list(readable_rows(self._table.partition(REPORT_EVENTS), _due_event))):
            done = attempt("sending the event of a report again", key, partial(self._send_kept, key, detail))
            sent += not isinstance(done, Failure)
        return sent

    def _send_kept(self, key: str, detail: Mapping[str, Any]) -> None:
        self._bus().report_stored(detail)
        self._keep(key, detail, SENT)
        logger.info("the event of a report was sent again", extra={"report": key})

    def _keep(self, key: str, detail: Mapping[str, Any], state: str) -> None:
        kept = {"pk": REPORT_EVENTS, "sk": key, "state": state, "doc": json.dumps(detail)}
        self._table.put({**kept, "expires": epoch(self._clock(), OWED_DAYS)})


def _due_event(row: Row) -> tuple[str, dict[str, Any]] | None:
    return (text(row, "sk"), document(row)) if text(row, "state") == DUE else None


def _entry(kind: str, resource: str, detail: Mapping[str, Any]) -> dict[str, Any]:
    resources = {"Resources": [resource]} if resource else {}
    return {"Source": SOURCE, "DetailType": kind, "Detail": json.dumps(detail)} | resources


def change_detail(proposal: Proposal) -> dict[str, Any]:
    """Names and figures of the event about a change, as its proposal shows it."""
    option = proposal.recommendation.chosen_option
    said: dict[str, Any] = {
        "version": 1,
        "key": f"{proposal.change_id}/{proposal.state}",
        "change": proposal.change_id,
        "proposal": proposal.id,
        "state": str(proposal.state),
        "endpoint": proposal.ref.name,
        "owner": proposal.recommendation.owner,
    }
    if option is not None:
        said |= {"kind": str(option.kind), "saving-usd-per-month": str(option.saving_usd_per_month)}
    if proposal.measured_usd_per_month is not None:
        said["measured-usd-per-month"] = str(proposal.measured_usd_per_month)
    return said


def report_key(report: Report) -> str:
    """Account, Region and window: the same for a report that is made twice."""
    return f"{report.account}/{report.region}/{report.start.isoformat()}/{report.end.isoformat()}"


def report_detail(report: Report, files: Mapping[str, str]) -> dict[str, Any]:
    """The sums of a report and where its files are."""
    totals = report.money.totals()
    return {
        "version": 1,
        "key": report_key(report),
        "account": report.account,
        "region": report.region,
        "start": report.start.isoformat(),
        "end": report.end.isoformat(),
        "endpoints": totals.endpoints,
        "spend-usd-per-month": str(totals.spend),
        "waiting-usd-per-month": str(totals.waiting),
        "proven-usd-per-month": str(totals.proven),
        "realised-usd": str(totals.realised),
        "files": dict(files),
    }


def event_detail(proposal: Proposal) -> dict[str, Any]:
    """Names and figures of the event; no comment of a person, no metric, no secret."""
    recommendation, option = proposal.recommendation, proposal.recommendation.chosen_option
    said: dict[str, Any] = {
        "version": 1,
        "key": f"{proposal.id}/{proposal.created_at.isoformat()}/{proposal.state}",
        "proposal": proposal.id,
        "state": str(proposal.state),
        "endpoint": proposal.ref.name,
        "owner": recommendation.owner,
        "finding": str(recommendation.finding),
        "approvable": proposal.approvable,
        "created-at": proposal.created_at.isoformat(),
        "expires-at": proposal.expires_at.isoformat(),
        "from": {"instance-type": recommendation.instance_type, "instance-count": recommendation.instance_count},
    }
    if option is not None:
        said |= {
            "kind": str(option.kind),
            "to": {"instance-type": option.target.instance_type, "instance-count": option.target.instance_count},
            "saving-usd-per-month": str(option.saving_usd_per_month),
            "performance-risk": int(option.performance_risk),
        }
    if proposal.decision is not None:
        said |= {"decided-by": proposal.decision.by, "decided-at": proposal.decision.at.isoformat()}
    return said


class PictureOrders:
    """Starts the function that draws the picture of a proposal, and waits for nothing."""

    def __init__(self, client: LambdaClient, function: str) -> None:
        self._client = client
        self._function = function

    def start(self, proposal_id: str) -> None:
        """Ask for the picture of a proposal. WriteRefusedError when Lambda does not take the event."""
        event = json.dumps({"proposal": proposal_id}).encode()
        with translate_write_errors("lambda:InvokeFunction", f"starting the picture of {proposal_id}"):
            self._client.invoke(FunctionName=self._function, InvocationType="Event", Payload=event)


class SqsPages:
    """PageQueue on SQS. Ten pages of 25 names of at most 63 characters are far below the limit of a call (1 MiB)."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    def send_pages(self, pages: Sequence[LookAt]) -> list[tuple[LookAt, RightsizerError]]:
        """Send these pages, ten in a call; those that SQS refuses, each with an error that names the queue."""
        refused: list[tuple[LookAt, RightsizerError]] = []
        doing = f"sending pages to {self._url}"
        for some in batched(pages, MOST_MESSAGES):
            entries: Any = [{"Id": str(i), "MessageBody": wire.dumps(page)} for i, page in enumerate(some)]
            try:
                with translate_write_errors("sqs:SendMessage", doing):
                    answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
            except RightsizerError as error:
                refused += [(page, error) for page in some]
                continue
            refused += [
                (some[int(each["Id"])], WriteRefusedError(doing, each["Code"], each.get("Message", "")))
                for each in answer.get("Failed", ())
            ]
        return refused

    def send_look(self, look: LookBeyond) -> None:
        """Ask for a look at groups or jobs; RightsizerError names the queue, and the remedy, when SQS refuses."""
        with translate_write_errors("sqs:SendMessage", f"sending a page to {self._url}"):
            self._client.send_message(QueueUrl=self._url, MessageBody=wire.dumps(look))
