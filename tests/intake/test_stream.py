"""The table's stream: proposals with the state before, one poisoned record alone."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer import wire
from rightsizer.domain.capacity_change import CapacityChange, CapacityChangeMoved, PoolRelease
from rightsizer.domain.proposal import ProposalMoved, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import InputError
from rightsizer.intake.stream import parse_moves as stream_moves

EVENTS = Path(__file__).parents[2] / "events"


def moves(document: Any) -> list[ProposalMoved]:
    found = stream_moves(document)
    assert all(isinstance(move, ProposalMoved) for move in found)
    return [move for move in found if isinstance(move, ProposalMoved)]


def event(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())


@pytest.mark.parametrize(
    ("name", "state", "before"),
    [
        ("proposal-opened", ProposalState.PENDING, None),
        ("proposal-approved", ProposalState.APPROVED, ProposalState.PENDING),
        ("proposal-expired", ProposalState.EXPIRED, ProposalState.PENDING),
    ],
)
def test_a_record_says_how_the_proposal_moved(name: str, state: ProposalState, before: ProposalState | None) -> None:
    (moved,) = moves(event(f"stream/{name}"))
    assert moved.proposal is not None
    assert (moved.proposal.state, moved.before, moved.problem) == (state, before, "")


def test_a_poisoned_record_fails_alone_and_says_why() -> None:
    poisoned, good = moves(event("stream/one-poisoned-among-good"))
    assert poisoned.proposal is None
    assert "id: Field required" in poisoned.problem
    assert good.proposal is not None


def test_a_removal_by_ttl_is_nothing_to_tell() -> None:
    (moved,) = moves(event("unrouted/stream-proposal-removed"))
    assert (moved.proposal, moved.problem) == (None, "")


def test_an_item_of_another_sort_is_nothing_to_tell() -> None:
    document = event("stream/proposal-opened")
    document["Records"][0]["dynamodb"]["NewImage"]["pk"]["S"] = "MESSAGE#p-1"
    (moved,) = moves(document)
    assert (moved.proposal, moved.problem) == (None, "")


def test_an_errand_among_the_proposals_is_told_as_one() -> None:
    now = datetime(2026, 11, 20, tzinfo=UTC)
    reason = Reason(Code.WARM_POOL_IDLE, "it idles")
    asked = CapacityChange("e-1", "job", "", PoolRelease("job"), "h", reason, now, now, ProposalState.APPROVED, True)
    image = {"pk": "PROPOSAL#e-1", "sk": "PROPOSAL", "kind": "errand", "state": "approved", "doc": wire.dumps(asked)}
    new = {key: {"S": value} for key, value in image.items()}
    old = new | {"state": {"S": "pending"}}
    (moved,) = stream_moves({"Records": [{"dynamodb": {"SequenceNumber": "1", "NewImage": new, "OldImage": old}}]})
    assert moved == CapacityChangeMoved("1", asked, ProposalState.PENDING)


trees = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda t: st.lists(t, max_size=2) | st.dictionaries(st.sampled_from(["S", "pk", "sk", "state", "doc"]), t),
)


@given(st.dictionaries(st.sampled_from(["NewImage", "OldImage", "SequenceNumber"]), trees | st.just("7")))
def test_garbage_images_are_problems_or_refused_never_another_exception(images: dict[str, Any]) -> None:
    try:
        (moved,) = moves({"Records": [{"dynamodb": images}]})
    except InputError:
        return
    assert moved.proposal is None


@pytest.mark.parametrize("wrong", [None, {}, {"Records": 1}, {"Records": [7]}, {"Records": [{"dynamodb": {}}]}])
def test_what_is_no_stream_batch_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError):
        moves(wrong)
