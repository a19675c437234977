"""Orders to wake an endpoint that a click in Slack leaves for the tick of the office hours. No pydantic: for `respond`.

`respond` may read the record of an endpoint and write nothing of it: the order is a row of its own, `WAKE#<endpoint>`,
which `hours` takes up at its next tick and deletes. So whoever takes over the public door can neither change what
brings an endpoint back nor create one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rightsizer.aws.table import (
    Row,
    Table,
    document,
    epoch,
    moment,
    read_if_readable,
    read_row,
    stamp,
    text,
    whole_number,
)
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.hours_record import HoursRecord, HoursState, LetGo, Wake
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.policy import Switch
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import UnreadableError

PREFIX, SORT = "WAKE#", "WAKE"
KEPT_DAYS = 4
"""Longer than the longest wake may last (72 hours)."""


@dataclass(frozen=True, slots=True)
class WakeRequests:
    """Keeps the promises of `ports.changes.WakeBook`, with a row of its own for each endpoint."""

    table: Table

    def load(self, endpoint: str) -> HoursRecord | None:
        """The record with what decides about a wake, and with the order that still waits; UnreadableError."""
        row = self.table.get(f"HOURS#{endpoint}", "HOURS")
        if row is None:
            return None
        record, waits = read_row(row, _light_record), waiting_wake(self.table, endpoint)
        if waits is None or waits in record.wakes:
            return record
        return replace(record, wakes=(*record.wakes, waits))

    def tags(self, endpoint: str) -> Mapping[str, str]:
        """The endpoint's tags before it was stopped; empty where it was not."""
        row = self.table.get(f"HOURS#{endpoint}", "HOURS")
        return {} if row is None else read_row(row, _tags)

    def records(self, unread: list[UnreadRow] | None = None) -> Iterator[HoursRecord]:  # noqa: ARG002
        """None: a click names its endpoint, and the index is not read for it."""
        return iter(())

    def save(self, record: HoursRecord) -> HoursRecord:
        """Leave the newest of its wakes for the next tick; ConflictError where somebody else left one in between."""
        name, wake = record.ref.name, record.wakes[-1]
        before = self.table.get(f"{PREFIX}{name}", SORT)
        version = whole_number(before, "version") if before is not None else 0
        row: Row = {
            "pk": f"{PREFIX}{name}",
            "sk": SORT,
            "asked_at": stamp(wake.at),
            "lasts_until": stamp(wake.until),
            "asked_by": wake.by,
            "version": version + 1,
            "expires": epoch(wake.at, KEPT_DAYS),
        }
        if before is None:
            self.table.put(row, unless="pk")
        else:
            self.table.swap(row, version)
        return record

    def switch(self) -> Switch:
        """The freeze switch; thawed when nobody ever froze, frozen where it cannot be read."""
        row = self.table.get("CONTROL", "FREEZE")
        return Switch() if row is None else read_if_readable(row, _switch) or Switch(frozen=True)


def waiting_wake(table: Table, endpoint: str) -> Wake | None:
    """The order that waits for the next tick; None where none does. UnreadableError."""
    row = table.get(f"{PREFIX}{endpoint}", SORT)
    return None if row is None else read_row(row, _wake)


def drop_wake(table: Table, endpoint: str, wake: Wake) -> None:
    """Delete the order that was taken up; ConflictError where another one was left since."""
    gone = table.delete_if(f"{PREFIX}{endpoint}", SORT, "asked_at = :at", at=stamp(wake.at))
    table.transact([gone], f"taking up the wake of {endpoint}")


def _wake(row: Row) -> Wake:
    return Wake(moment(row, "asked_at"), moment(row, "lasts_until"), text(row, "asked_by"))


def _light_record(row: Row) -> HoursRecord:
    body = document(row)
    ref, let_go, reason = body.get("ref"), body.get("let_go"), body.get("reason")
    if not isinstance(ref, dict):
        raise UnreadableError("its document names no endpoint")
    return HoursRecord(
        EndpointRef(text(ref, "account"), text(ref, "region"), text(ref, "name"), ref.get("partition", "aws")),
        HoursState(body.get("state", HoursState.RUNNING)),
        owner=str(body.get("owner", "")),
        hours=str(body.get("hours", "")),
        starts=tuple(float(took) for took in body.get("starts", ())),
        wakes=tuple(Wake(moment(w, "at"), moment(w, "until"), text(w, "by")) for w in body.get("wakes", ())),
        let_go=LetGo(moment(let_go, "at"), text(let_go, "by"), text(let_go, "hours")) if let_go else None,
        reason=Reason(Code(text(reason, "code")), text(reason, "sentence")) if reason else None,
        remaining=tuple(map(str, body.get("remaining", ()))),
        version=whole_number(row, "version"),
    )


def _tags(row: Row) -> dict[str, str]:
    before = document(row).get("before")
    tags = before.get("tags") if isinstance(before, dict) else None
    return {str(key): str(value) for key, value in tags.items()} if isinstance(tags, dict) else {}


def _switch(row: Row) -> Switch:
    body = document(row)
    return Switch(body.get("frozen") is not False, body.get("hard") is True, str(body.get("by", "")))
