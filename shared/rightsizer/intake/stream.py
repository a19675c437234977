"""Records of the table's stream: proposals that were written, decided on or moved by their change.

Shape: DynamoDB Developer Guide, "DynamoDB Streams and Lambda". The document itself is JSON by `wire` in the attribute
``doc``; its keys are in docs/ledger.md.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import Field

from rightsizer import wire
from rightsizer.domain.capacity_change import Errand, ErrandMoved
from rightsizer.domain.proposal import Proposal, ProposalMoved, ProposalState
from rightsizer.domain.reason import one_line
from rightsizer.errors import InputError
from rightsizer.intake.fields import Shape, mapping, named, read
from rightsizer.telemetry import Failed, attempt

PROPOSAL = "PROPOSAL#"
ERRAND = "errand"
LONGEST_KEY = 1024
"""Characters of a key that is acted on, all of ASCII; DynamoDB takes 2,048 bytes of a partition key."""


class Attribute(Shape):
    text: str = Field(alias="S")


class Number(Shape):
    text: str = Field(alias="N")


class Keys(Shape):
    pk: Attribute
    sk: Attribute


class Image(Keys):
    state: Attribute
    doc: Attribute
    kind: Attribute | None = None
    version: Number | None = None


def moves(event: Any) -> list[ProposalMoved | ErrandMoved]:
    """The records of the batch in their order, each with its proposal or its problem: one never stops another.

    InputError when the event is no stream batch at all.
    """
    found = mapping(event, "a DynamoDB stream batch").get("Records")
    if not isinstance(found, list):
        raise InputError("reading a DynamoDB stream batch: Records: a list is expected; is this invoked by a stream?")
    rows = named(found, "a DynamoDB stream batch", "dynamodb", "SequenceNumber")
    return [_move(sequence, record["dynamodb"]) for sequence, record in rows]


def _move(sequence: str, images: Mapping[str, Any]) -> ProposalMoved | ErrandMoved:
    read_one = attempt("reading a record of the stream", sequence, partial(_proposal, sequence, images))
    if isinstance(read_one, Failed):
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


def _proposal(sequence: str, images: Mapping[str, Any]) -> ProposalMoved | ErrandMoved:
    new, old = images.get("NewImage"), images.get("OldImage")
    if not new or not read(Keys, new, "stream record").pk.text.startswith(PROPOSAL):
        return ProposalMoved(sequence, None)
    image = read(Image, new, "proposal in the stream")
    before = _before(old) if old else None
    version = int(image.version.text) if image.version is not None and image.version.text.isdecimal() else 0
    if image.kind is not None and image.kind.text == ERRAND:
        return ErrandMoved(sequence, wire.restored(Errand, image.doc.text), before, version)
    return ProposalMoved(sequence, wire.restored(Proposal, image.doc.text), before, version=version)


def _before(old: Any) -> ProposalState | None:
    """The state before; None where the old row could not be read either: somebody has put it right."""
    try:
        return _state(read(Image, old, "proposal in the stream").state.text)
    except InputError:
        return None


def _state(text: str) -> ProposalState:
    try:
        return ProposalState(text)
    except ValueError:
        raise InputError(
            f"reading a proposal in the stream: state: {one_line(text, 40)!r} is no state of a proposal"
        ) from None
