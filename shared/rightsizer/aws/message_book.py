"""Where each message stands and what it shows, its picture, and the digests: port `MessageBook` on the table."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from rightsizer import wire
from rightsizer.aws.documents import noun_of
from rightsizer.aws.proposals import park_proposal
from rightsizer.aws.table import Row, Table, epoch, read_if_readable, text, unknown_attributes, whole_number
from rightsizer.domain.message import Gathering
from rightsizer.domain.proposal import MessageRef

OURS_OF_MESSAGES = frozenset({"pk", "sk", "channel", "ts", "shown", "version", "owner", "thread", "event_due"})
"""Attributes of a message's item that this program writes."""
PICTURE, GATHERING = "MESSAGE#picture#", "MESSAGE#digest"
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
DIGEST_DAYS = 400
"""As long as the proposals of a digest can move: 14 days of waiting, the change, its proof, and a way back."""


class Messages:
    """Keeps the promises of `ports.evaluation.MessageBook`."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._unknown: dict[str, Row] = {}
        """Attributes of a later release, by the key of each row that has some."""

    def message(self, proposal_id: str) -> MessageRef | None:
        """Where the proposal was posted; None also where that cannot be read, so that it is posted anew."""
        key = f"MESSAGE#{proposal_id}"
        found = self._table.get(key, "MESSAGE")
        self._unknown.pop(key, None)
        if unknown := unknown_attributes(found or {}, OURS_OF_MESSAGES):
            self._unknown[key] = unknown
        message_ref = read_if_readable(found, _revive)
        if message_ref is None or not message_ref.ts:
            return message_ref
        kept = self._table.get(f"{PICTURE}{proposal_id}", "MESSAGE")
        is_its = kept is not None and kept.get("ts") == message_ref.ts
        return replace(message_ref, picture=text(kept, "file")) if kept is not None and is_its else message_ref

    def keep_picture(self, proposal_id: str, ts: str, file: str) -> None:
        """Store the uploaded picture of the message that was posted at `ts`."""
        row: Row = {"pk": f"{PICTURE}{proposal_id}", "sk": "MESSAGE", "ts": ts, "file": file}
        self._table.put(row)

    def gathering(self, name: str = "") -> Gathering | None:
        """New proposals of the digest of that name; None also where they cannot be read."""
        row = self._table.get(_gathering_key(name), "MESSAGE")
        if row is None:
            return None
        gathering = read_if_readable(row, lambda found: noun_of(Gathering, found))
        return replace(gathering or Gathering(LONG_AGO), version=whole_number(row, "version"))

    def swap_gathering(self, gathering: Gathering, version: int, name: str = "") -> None:
        """Store it where the stored one has that version, 0 for none. ConflictError."""
        row: Row = {
            "pk": _gathering_key(name),
            "sk": "MESSAGE",
            "version": gathering.version,
            "doc": wire.dump_stored(gathering),
            "expires": epoch(gathering.began_at, DIGEST_DAYS),
        }
        if version:
            self._table.swap(row, version)
        else:
            self._table.put(row, unless="pk")

    def remember(self, message: MessageRef) -> None:
        """Store the place and contents of a message, with what its row held beyond when it was read."""
        row: Row = {
            "pk": f"MESSAGE#{message.proposal_id}",
            "sk": "MESSAGE",
            "channel": message.channel,
            "ts": message.ts,
            "shown": message.shown,
            "version": message.version,
        }
        row |= {name: said for name, said in (("owner", message.owner), ("thread", message.thread)) if said}
        row |= {"event_due": "yes"} if message.event_due else {}
        self._table.put(self._unknown.get(f"MESSAGE#{message.proposal_id}", {}) | row)

    def park(self, proposal_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> bool:
        """Leave a proposal that cannot be read, and tell of it once; whether people know."""
        return park_proposal(self._table, proposal_id, cause, now, tell)


def _gathering_key(name: str) -> str:
    return f"{GATHERING}#{name}" if name else GATHERING


def _revive(row: Row) -> MessageRef:
    proposal_id = text(row, "pk").removeprefix("MESSAGE#")
    version = whole_number(row, "version") if "version" in row else 0
    owner, thread = (text(row, name) if name in row else "" for name in ("owner", "thread"))
    message_ref = MessageRef(
        proposal_id, text(row, "channel"), text(row, "ts"), text(row, "shown"), version, owner, thread
    )
    return replace(message_ref, event_due="event_due" in row)
