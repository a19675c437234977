"""Records of the table's stream: proposals that were written, decided on or moved by their change.

Shape: DynamoDB Developer Guide, "DynamoDB Streams and Lambda". The document itself is JSON by `wire` in the attribute
``doc``; its keys are in docs/ledger.md.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import Field

from rightsizer import wire
from rightsizer.errors import InputError
from rightsizer.intake.edge import Shape, mapping, read
from rightsizer.model.proposal import Proposal, ProposalState

PROPOSAL = "PROPOSAL#"


class Attribute(Shape):
    text: str = Field(alias="S")


class Keys(Shape):
    pk: Attribute
    sk: Attribute


class Image(Keys):
    state: Attribute
    doc: Attribute


@dataclass(frozen=True, slots=True)
class ProposalChanged:
    """A proposal as the stream shows it now, and the state that it had before (None when it is new)."""

    proposal: Proposal
    before: ProposalState | None


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """One record; `sequence` is what Lambda wants back when it fails."""

    sequence: str
    body: Any

    def proposal(self) -> ProposalChanged | None:
        """The proposal, or None for a removal or an item of another sort; InputError when it is malformed."""
        images = mapping(mapping(self.body, "a stream record").get("dynamodb"), "a stream record's dynamodb")
        if not images.get("NewImage"):
            return None
        if not read(Keys, images["NewImage"], "stream record").pk.text.startswith(PROPOSAL):
            return None
        now = read(Image, images["NewImage"], "proposal in the stream")
        before = read(Image, images["OldImage"], "proposal in the stream").state.text if images.get("OldImage") else ""
        return ProposalChanged(wire.loads(Proposal, now.doc.text), _state(before))


def records(event: Any) -> tuple[StreamRecord, ...]:
    """The records of the batch in their order; InputError when the event is no stream batch."""
    found = mapping(event, "a DynamoDB stream batch").get("Records")
    if not isinstance(found, list):
        raise InputError("reading a DynamoDB stream batch: Records: a list is expected; is this invoked by a stream?")
    return tuple(_record(record, index) for index, record in enumerate(found))


def _record(record: object, index: int) -> StreamRecord:
    stream = mapping(record, f"record {index} of a stream batch").get("dynamodb")
    sequence = mapping(stream, f"record {index} of a stream batch").get("SequenceNumber")
    if not isinstance(sequence, str):
        raise InputError(f"reading record {index} of a stream batch: SequenceNumber must be a text")
    return StreamRecord(sequence, record)


def _state(text: str) -> ProposalState | None:
    try:
        return ProposalState(text) if text else None
    except ValueError:
        raise InputError(f"reading a proposal in the stream: state: {text[:40]!r} is no state of a proposal") from None
