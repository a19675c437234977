"""Records of the table's stream: proposals that were written, decided on or moved by their change;
and endpoints that fell asleep or woke.

Shape: DynamoDB Developer Guide, "DynamoDB Streams and Lambda". The document itself is JSON by `wire` in the attribute
``doc``; its keys are in docs/ledger.md.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import Field

from rightsizer import wire
from rightsizer.domain.capacity_change import CapacityChange, CapacityChangeMoved
from rightsizer.domain.message import SleepMoved, SleepNote
from rightsizer.domain.proposal import Proposal, ProposalMoved, ProposalState
from rightsizer.domain.reason import one_line
from rightsizer.errors import InputError
from rightsizer.intake.fields import EventModel, read_model, records_with_ids, require_mapping
from rightsizer.telemetry import Failure, attempt, count

PROPOSAL, ASLEEP = "PROPOSAL#", "ASLEEP#"
ERRAND = "errand"
LONGEST_KEY = 1024
"""Characters of a key that is acted on, all of ASCII; DynamoDB takes 2,048 bytes of a partition key."""


class Attribute(EventModel):
    text: str = Field(alias="S")


class Number(EventModel):
    text: str = Field(alias="N")


class Keys(EventModel):
    pk: Attribute
    sk: Attribute


class RowImage(Keys):
    state: Attribute
    doc: Attribute
    kind: Attribute | None = None
    version: Number | None = None


def parse_moves(event: Any) -> list[ProposalMoved | CapacityChangeMoved]:
    """The records of the batch in their order, each with its proposal or its problem: one never stops another.

    InputError when the event is no stream batch at all.
    """
    found = require_mapping(event, "a DynamoDB stream batch").get("Records")
    if not isinstance(found, list):
        raise InputError("reading a DynamoDB stream batch: Records: a list is expected; is this invoked by a stream?")
    rows = records_with_ids(found, "a DynamoDB stream batch", "dynamodb", "SequenceNumber")
    return [_move(sequence, record["dynamodb"]) for sequence, record in rows]


def parse_sleeps(event: Any) -> list[SleepMoved]:
    """The records of the batch that are about endpoints asleep, in their order; one that cannot be read is counted."""
    found = require_mapping(event, "a DynamoDB stream batch").get("Records")
    rows = records_with_ids(found if isinstance(found, list) else [], "a stream batch", "dynamodb", "SequenceNumber")
    read = [attempt("reading a record of the stream", at, partial(_sleep, at, row["dynamodb"])) for at, row in rows]
    count(RecordsMalformed=sum(isinstance(one, Failure) for one in read))
    return [one for one in read if isinstance(one, SleepMoved)]


def _sleep(sequence: str, images: Mapping[str, Any]) -> SleepMoved | None:
    new = images.get("NewImage")
    if not _is_about(new, ASLEEP):
        return None
    row = read_model(RowImage, new, "endpoint asleep in the stream")
    return SleepMoved(sequence, wire.load_stored(SleepNote, row.doc.text))


def _move(sequence: str, images: Mapping[str, Any]) -> ProposalMoved | CapacityChangeMoved:
    read_one = attempt("reading a record of the stream", sequence, partial(_proposal, sequence, images))
    if isinstance(read_one, Failure):
        return ProposalMoved(sequence, None, None, str(read_one), _identity(images))
    return read_one


def _identity(images: Mapping[str, Any]) -> str:
    """What the key says that a malformed record is about; DynamoDB itself writes the key."""
    found: Any = images
    for name in ("Keys", "pk", "S"):
        found = found.get(name) if isinstance(found, Mapping) else None
    if not (isinstance(found, str) and found.startswith(PROPOSAL) and len(found) <= LONGEST_KEY):
        return ""
    return found.removeprefix(PROPOSAL) if found.isascii() and found.isprintable() else ""


def _proposal(sequence: str, images: Mapping[str, Any]) -> ProposalMoved | CapacityChangeMoved:
    new, old = images.get("NewImage"), images.get("OldImage")
    if not _is_about(new, PROPOSAL):
        return ProposalMoved(sequence, None)
    image = read_model(RowImage, new, "proposal in the stream")
    before = _before(old) if old else None
    version = int(image.version.text) if image.version is not None and image.version.text.isdecimal() else 0
    if image.kind is not None and image.kind.text == ERRAND:
        return CapacityChangeMoved(sequence, wire.load_stored(CapacityChange, image.doc.text), before, version)
    return ProposalMoved(sequence, wire.load_stored(Proposal, image.doc.text), before, version=version)


def _is_about(image: Any, kind: str) -> bool:
    """Whether the row that a record shows is of this kind, by its key."""
    return bool(image) and read_model(Keys, image, "stream record").pk.text.startswith(kind)


def _before(old: Any) -> ProposalState | None:
    """The state before; None where the old row could not be read either: somebody has put it right."""
    try:
        return _state(read_model(RowImage, old, "proposal in the stream").state.text)
    except InputError:
        return None


def _state(text: str) -> ProposalState:
    try:
        return ProposalState(text)
    except ValueError:
        raise InputError(
            f"reading a proposal in the stream: state: {one_line(text, 40)!r} is no state of a proposal"
        ) from None
