"""Recording one decision on a proposal by one conditional write. Neither pydantic nor boto3: `respond` uses it.

The document of the proposal is changed as JSON, so a field that a newer program added survives.
"""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from rightsizer.aws.table import Row, Table, document, epoch, stamp, text, whole_number
from rightsizer.domain.checks import SCHEMA_TEST_FIRST
from rightsizer.domain.option import MOST_RISK_TAKEN
from rightsizer.domain.plan import region_option
from rightsizer.domain.proposal import (
    DEMAND_MOVED,
    SILENCE,
    STOPPABLE,
    USUAL_SNOOZE,
    Decision,
    ProposalState,
    decider_name,
)
from rightsizer.domain.reason import Code, time_text
from rightsizer.domain.recommendation import Gate
from rightsizer.errors import ConflictError, UnreadableError, VanishedError

PREFIX = "PROPOSAL#"
SORT = "PROPOSAL"
ASKED_BACK = f"{PREFIX}asked-back"
"""Index key of a proposal, whatever its state, while an order to go back is not settled."""
KEPT_DAYS = {
    ProposalState.SNOOZED: USUAL_SNOOZE,
    ProposalState.EXPIRED: 30,
    ProposalState.WITHDRAWN: 30,
    ProposalState.REJECTED: SILENCE // timedelta(days=1),
    ProposalState.APPLIED: 400,
    ProposalState.PROVEN: 400,
    ProposalState.ROLLED_BACK: 400,
    ProposalState.HANDED_OVER: 400,
}
"""After these days the item goes (TTL), and the same recommendation may be asked again: a no is not for ever."""


TAKE_BACK = "press Roll back in its message as it is now, or run: rightsizer rollback {proposal}{region}"
NEXT_STEPS = {
    ProposalState.APPROVED: "to stop it before it begins, press Stop it in its message, or run: rightsizer rollback"
    " {proposal}{region}",
    ProposalState.APPLYING: "to stop the change and go back, " + TAKE_BACK,
    ProposalState.APPLIED: "to go back, " + TAKE_BACK,
    ProposalState.PROVEN: "to go back, " + TAKE_BACK,
    ProposalState.REJECTED: f"it is asked again when the requests a day moved by {100 * DEMAND_MOVED:.0f} %, or after"
    f" {KEPT_DAYS[ProposalState.REJECTED]} days",
    ProposalState.SNOOZED: "it comes back when its days are over, if it is still worth it",
    ProposalState.ROLLED_BACK: "the endpoint runs as before; nothing is left to do here",
    ProposalState.HANDED_OVER: "a person has to look at the endpoint; its message says what is left to do",
}
"""What a person can do who answers a proposal that was answered before."""
NEWER = "answer the newest message about its endpoint, if there is one; rightsizer proposals{region} lists what waits"


class RowSource(Protocol):
    """A table, or rows of it that were read before."""

    def get(self, pk: str, sk: str) -> Row | None:
        """The row, or None."""
        ...


def find(table: RowSource, proposal_id: str) -> Row | None:
    """The proposal's item, or None."""
    return table.get(f"{PREFIX}{proposal_id}", SORT)


def state_of(item: Row) -> ProposalState:
    """The state of a proposal or a capacity change; UnreadableError for one that this release does not know."""
    said = text(item, "state")
    try:
        return ProposalState(said)
    except ValueError:
        raise UnreadableError(f"its state {said[:40]!r} is none that this release knows") from None


def item_in_state(item: Row, state: ProposalState, now: datetime, **fields: Any) -> Row:
    """The item in another state: attributes, index, document, version and TTL agree with each other.

    What is not ours stays in it. UnreadableError where this release cannot read the item.
    """
    state_of(item)
    body = document(item) | {"state": str(state)} | fields
    after: Row = item | {
        "state": str(state),
        "doc": json.dumps(body, separators=(",", ":")),
        "version": whole_number(item, "version") + 1,
        "gsi1pk": ASKED_BACK if "asked_back" in item else f"{PREFIX}{state}",
    }
    after.pop("expires", None)
    if state in KEPT_DAYS:
        after["expires"] = epoch(now, KEPT_DAYS[state])
    return after


def decide(table: Table, proposal_id: str, decision: Decision, now: datetime) -> dict[str, Any]:
    """Record the decision and return the proposal's document after it.

    VanishedError when there is no such proposal; ConflictError, with who was first or what happened, when it is not
    pending, has expired, or an approval is asked of one that may not be approved. Who rejects what is approved and was
    not begun gives the order to stop it, as by `request_rollback`.
    """
    item = find(table, proposal_id)
    if item is None:
        raise VanishedError(f"deciding on {proposal_id}: there is no such proposal any more; {_newer(table)}")
    try:
        return _record_decision(table, item, decision, now)
    except UnreadableError as error:
        raise UnreadableError(f"reading the proposal {proposal_id}: {error}") from error


def _record_decision(table: Table, item: Row, decision: Decision, now: datetime) -> dict[str, Any]:
    if decision.state is ProposalState.REJECTED and state_of(item) is ProposalState.APPROVED and "kind" not in item:
        return _record_rollback_request(table, text(item, "pk").removeprefix(PREFIX), item, decision.by, now)
    _check(item, decision, now)
    fields = {
        "state": str(decision.state),
        "by": decision.by,
        "at": stamp(decision.at),
        "comment": decision.comment,
    }
    marks: dict[str, Any] = {"decision": fields}
    if decision.test_first:
        marks = {"decision": fields | {"test_first": True}, "schema": SCHEMA_TEST_FIRST}
    if decision.snooze_days != USUAL_SNOOZE:
        marks = {"decision": fields | {"snooze_days": decision.snooze_days}}
    after = item_in_state(item, decision.state, now, **marks)
    if decision.state is ProposalState.SNOOZED:
        after["expires"] = epoch(now, decision.snooze_days)
    try:
        table.swap(after, whole_number(item, "version"))
    except ConflictError:
        _check(table.get(text(item, "pk"), SORT) or item, decision, now)
        raise
    return document(after)


def request_rollback(table: Table, proposal_id: str, by: str, now: datetime) -> dict[str, Any]:
    """Record that `by` wants the change undone, or not begun; `apply` is told by the stream and acts.

    VanishedError when there is no such proposal; ConflictError when it was asked already, nothing was changed, or there
    is nothing to undo.
    """
    item = find(table, proposal_id)
    if item is None:
        raise VanishedError(f"undoing {proposal_id}: there is no such proposal any more; {_newer(table)}")
    try:
        return _record_rollback_request(table, proposal_id, item, by, now)
    except UnreadableError as error:
        raise UnreadableError(f"reading the proposal {proposal_id}: {error}") from error


def _record_rollback_request(table: Table, proposal_id: str, item: Row, by: str, now: datetime) -> dict[str, Any]:
    body, state = document(item), state_of(item)
    if first := body.get("asked_back_by"):
        asked = "to stop" if state is ProposalState.APPROVED else "for the rollback of"
        raise ConflictError(f"{decider_name(str(first))} asked {asked} {proposal_id} already; its message follows it")
    begun = state is not ProposalState.APPROVED
    if state not in STOPPABLE or (begun and not body.get("change_id")) or "kind" in item:
        raise ConflictError(
            f"the proposal {proposal_id} is {state}; there is nothing to undo: {_next_step(proposal_id, state, body)}"
        )
    after = item_in_state(item | {"asked_back": by}, state, now, asked_back_by=by, asked_back_at=stamp(now))
    table.swap(after, whole_number(item, "version"))
    return document(after)


def take_option(table: Table, proposal_id: str, revision: int, place: int, by: str, now: datetime) -> dict[str, Any]:
    """Put another option of a pending proposal in the place of the recommended one; its document after that.

    The proposal waits on, as its next revision: an answer to the earlier one counts no more, and the other option is
    approved by the same rules; by four eyes somebody else approves. Its later stages were planned behind the other one,
    and go. `place` counts from 1, the option behind the recommended one.
    VanishedError, ConflictError with what to do, UnreadableError.
    """
    item = find(table, proposal_id)
    if item is None:
        raise VanishedError(
            f"taking another option of {proposal_id}: there is no such proposal any more; {_newer(table)}"
        )
    try:
        return _take(table, proposal_id, item, Decision(ProposalState.PENDING, by, now, revision=revision), place)
    except UnreadableError as error:
        raise UnreadableError(f"reading the proposal {proposal_id}: {error}") from error


def _take(table: Table, name: str, item: Row, decision: Decision, place: int) -> dict[str, Any]:
    _check(item, decision, decision.at)
    body = document(item)
    found = body.get("recommendation")
    options = found.get("options") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(options, list) or not 0 < place < len(options):
        raise ConflictError(f"the proposal {name} has no option {place + 1}; open its details again")
    if why := taking_refusal(options[place], approvable=body.get("approvable") is True):
        raise ConflictError(f"option {place + 1} of the proposal {name} cannot be taken: {why}")
    others = [one for number, one in enumerate(options) if number != place]
    said = f"{decision.by} took option {place + 1} of the list in place of the recommended one"
    taken = found | {
        "options": [options[place], *others],
        "stages": [],
        "gate": str(Gate.PROPOSE),
        "gate_reason": {"code": str(Code.NEEDS_APPROVAL), "sentence": said},
        "reason": {"code": str(Code.CHEAPER_OPTION), "sentence": said},
        "replay": None,
    }
    after = item_in_state(
        item,
        ProposalState.PENDING,
        decision.at,
        recommendation=taken,
        revision=revision_of(body) + 1,
        outcome=f"{said}.",
        ordered_by=decision.by,
    )
    try:
        table.swap(after, whole_number(item, "version"))
    except ConflictError:
        raise ConflictError(
            f"somebody else answered the proposal {name} at this moment; open its details again"
        ) from None
    return document(after)


def taking_refusal(option: Any, *, approvable: bool) -> str:
    """Why an option of a proposal cannot be taken in place of the recommended one; empty where it can."""
    if not isinstance(option, dict) or not approvable:
        return "the endpoint may not be changed by rightsizer; its message says what would allow that"
    if option.get("in_place") is not True:
        return f"its owner carries it out: {option.get('client_change') or 'it is not done on the same endpoint'}"
    risk = option.get("risk")
    if not isinstance(risk, int) or risk > MOST_RISK_TAKEN:
        return f"its risk is {risk} of 4, and at most {int(MOST_RISK_TAKEN)} may be taken"
    return ""


def freezer(table: RowSource) -> str:
    """Who froze all changes, as people know them; empty where nobody did. UnreadableError, and what reading raises."""
    row = table.get("CONTROL", "FREEZE")
    said = document(row) if row is not None else {}
    return decider_name(str(said.get("by") or "")) if said.get("frozen") is True else ""


def revision_of(body: dict[str, Any]) -> int:
    """How often a person took another option, as the proposal's document says."""
    found = body.get("revision", 0)
    return found if type(found) is int else 0


def _check(item: Row, decision: Decision, now: datetime) -> None:
    state, body = state_of(item), document(item)
    name = text(item, "pk").removeprefix(PREFIX)
    if state != ProposalState.PENDING:
        taken = body.get("decision")
        by = _decided(taken) if isinstance(taken, dict) else ""
        said = f"the proposal {name} is {state} already{by}; nothing was recorded"
        raise ConflictError(f"{said}: {_next_step(name, state, body)}")
    if whole_number(item, "expires_at") <= epoch(now):
        raise ConflictError(f"the proposal {name} has expired; a new message comes if the saving is still there")
    if decision.revision is not None and decision.revision != revision_of(body):
        why = "somebody took another option of it since this message was drawn; read the message as it is now"
        raise ConflictError(f"the proposal {name} asks for something else now: {why}, and press again")
    if decision.state is ProposalState.APPROVED and body.get("approvable") is not True:
        raise ConflictError(_approval_refusal(name, body))
    if decision.state is ProposalState.APPROVED and (why := _test_refusal(name, body, decision.test_first)):
        raise ConflictError(why)


def _next_step(name: str, state: ProposalState, body: Mapping[str, Any]) -> str:
    return NEXT_STEPS.get(state, NEWER).format(proposal=name, region=_region_option(body))


def _newer(table: Table) -> str:
    return NEWER.format(region=region_option(table.region))


def _region_option(body: Mapping[str, Any]) -> str:
    """The Region for a command line about the proposal; empty where its row names none."""
    ref = (body.get("recommendation") or {}).get("ref") or {}
    return region_option(str(ref.get("region", "")))


def _decided(taken: dict[str, Any]) -> str:
    """By whom, and when to the minute, as a stored decision says; without a time where none can be read."""
    by = f" by {decider_name(str(taken.get('by')))}"
    try:
        return f"{by} on {time_text(datetime.fromisoformat(str(taken.get('at'))))}"
    except ValueError:
        return by


def _test_refusal(name: str, body: dict[str, Any], test_first: bool) -> str:
    """Why an approval with a test, or without one, does not fit what is proposed; empty where it does."""
    found = body.get("recommendation")
    options = found.get("options") if isinstance(found, dict) else None
    chosen = options[0] if isinstance(options, list) and options and isinstance(options[0], dict) else {}
    offered = _gate(found) == Gate.TEST or bool(str(chosen.get("test_usd") or "0").strip("0."))
    if test_first and not offered:
        return f"the proposal {name} has no shadow test to run; approve it, or reject it: nothing was recorded"
    if test_first or chosen.get("test_needed") is not True or _gate(found) == Gate.TEST:
        return ""
    risk = f"its performance risk without that test is {chosen.get('untested_risk')} of 4, above what may be approved"
    run = f"run it with: rightsizer test {name}{_region_option(body)}"
    return f"the proposal {name} follows its shadow test only, for {risk}; {run}"


def _gate(found: object) -> str:
    return str(found.get("gate", "")) if isinstance(found, dict) else ""


def _approval_refusal(name: str, body: dict[str, Any]) -> str:
    """Why an approval of the pending proposal is refused, with what would allow it."""
    if body.get("approvable") is not False:
        text = f"the row of the proposal {name} does not say whether it may be approved (approvable is neither true nor"
        return f"{text} false), so nothing was recorded; restore the row from a backup, or delete it: docs/upgrade.md"
    enable = body.get("enable") or "its row does not name what would allow it; ask whoever runs rightsizer"
    return f"the proposal {name} cannot be carried out yet: {enable}"
