"""Recording one decision on a proposal by one conditional write. Neither pydantic nor boto3: `respond` uses it.

The document of the proposal is changed as JSON, so a field that a newer program added survives.
"""

import json
from datetime import datetime
from typing import Any

from rightsizer.aws.table import Table, Value, epoch, stamp
from rightsizer.errors import ConflictError, ReadError, VanishedError
from rightsizer.model.proposal import Decision, ProposalState
from rightsizer.model.schema import newer_than_known

PREFIX = "PROPOSAL#"
SORT = "PROPOSAL"
ASKED_BACK = f"{PREFIX}asked-back"
"""Index key of a proposal, whatever its state, while an order to go back is not settled."""
KEPT_DAYS = {
    ProposalState.SNOOZED: 30,
    ProposalState.EXPIRED: 30,
    ProposalState.WITHDRAWN: 30,
    ProposalState.REJECTED: 180,
    ProposalState.APPLIED: 400,
    ProposalState.PROVEN: 400,
    ProposalState.ROLLED_BACK: 400,
    ProposalState.HANDED_OVER: 400,
}
"""After these days the item goes (TTL), and the same recommendation may be asked again: a no is not for ever."""


def find(table: Table, proposal_id: str) -> dict[str, Value] | None:
    """The proposal's item, or None."""
    return table.get(f"{PREFIX}{proposal_id}", SORT)


def document(item: dict[str, Value]) -> dict[str, Any]:
    """The proposal as plain JSON values; ReadError when the item holds none that this release may act on."""
    try:
        found = json.loads(str(item["doc"]))
    except (KeyError, ValueError):
        raise ReadError(f"reading {item.get('pk')}: its attribute doc holds no JSON; restore it or delete it") from None
    if not isinstance(found, dict):
        raise ReadError(f"reading {item.get('pk')}: its attribute doc is no JSON object; restore it or delete it")
    if newer := newer_than_known(found):
        raise ReadError(f"reading {item.get('pk')}: {newer}")
    return found


def moved(item: dict[str, Value], state: ProposalState, now: datetime, **fields: Any) -> dict[str, Value]:
    """The item in another state: attributes, index, document, version and TTL agree with each other."""
    body = document(item) | {"state": str(state)} | fields
    after: dict[str, Value] = item | {
        "state": str(state),
        "doc": json.dumps(body, separators=(",", ":")),
        "version": int(item["version"]) + 1,
        "gsi1pk": ASKED_BACK if "asked_back" in item else f"{PREFIX}{state}",
    }
    after.pop("expires", None)
    if state in KEPT_DAYS:
        after["expires"] = epoch(now, KEPT_DAYS[state])
    return after


def decide(table: Table, proposal_id: str, decision: Decision, now: datetime) -> dict[str, Any]:
    """Record the decision and return the proposal's document after it.

    VanishedError when there is no such proposal; ConflictError, with who was first or what happened, when it is not
    pending, has expired, or an approval is asked of one that may not be approved.
    """
    item = find(table, proposal_id)
    if item is None:
        raise VanishedError(f"deciding on {proposal_id}: there is no such proposal; it may be older than its retention")
    _check(item, decision, now)
    fields = {
        "state": str(decision.state),
        "by": decision.by,
        "at": stamp(decision.at),
        "comment": decision.comment,
    }
    after = moved(item, decision.state, now, decision=fields)
    try:
        table.swap(after, int(item["version"]))
    except ConflictError:
        _check(find(table, proposal_id) or item, decision, now)
        raise
    return document(after)


UNDOABLE = frozenset({ProposalState.APPLYING, ProposalState.APPLIED, ProposalState.PROVEN})
"""States of a proposal whose change can be taken back."""


def ask_back(table: Table, proposal_id: str, by: str, now: datetime) -> dict[str, Any]:
    """Record that `by` wants the change of the proposal undone; `apply` is told by the stream and acts.

    VanishedError when there is no such proposal; ConflictError when it was asked already, nothing was changed, or there
    is nothing to undo.
    """
    item = find(table, proposal_id)
    if item is None:
        raise VanishedError(f"undoing {proposal_id}: there is no such proposal; it may be older than its retention")
    body, state = document(item), str(item.get("state"))
    if body.get("asked_back_by"):
        raise ConflictError(f"{body['asked_back_by']} asked for the way back of {proposal_id} already")
    if state not in UNDOABLE or not body.get("change_id"):
        raise ConflictError(f"the proposal {proposal_id} is {state}; there is nothing to undo")
    after = moved(item | {"asked_back": by}, ProposalState(state), now, asked_back_by=by)
    table.swap(after, int(item["version"]))
    return document(after)


def _check(item: dict[str, Value], decision: Decision, now: datetime) -> None:
    state, body = item.get("state"), document(item)
    name = str(item["pk"]).removeprefix(PREFIX)
    if state != ProposalState.PENDING:
        taken = body.get("decision")
        by = f" by {taken.get('by')} at {str(taken.get('at'))[:16]}" if isinstance(taken, dict) else ""
        raise ConflictError(f"the proposal {name} is {state} already{by}; nothing was recorded")
    if int(item["expires_at"]) <= epoch(now):
        raise ConflictError(f"the proposal {name} has expired; a new one comes if the saving is still there")
    if decision.state is ProposalState.APPROVED and not body.get("approvable"):
        raise ConflictError(f"the proposal {name} cannot be carried out yet: {body.get('enable') or 'not enabled'}")
