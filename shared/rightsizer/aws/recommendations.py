"""The RecommendationStore on the table: the latest recommendation of each endpoint, with at most one open proposal."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from rightsizer import wire
from rightsizer.aws import decisions, proposals
from rightsizer.aws.documents import noun_of
from rightsizer.aws.errors import TRIES
from rightsizer.aws.ledger import HistoryTable, spending
from rightsizer.aws.proposals import OPEN, Proposals
from rightsizer.aws.table import (
    Item,
    Row,
    Table,
    document,
    epoch,
    moment,
    money,
    pass_over,
    read_if_readable,
    readable_rows,
    stamp,
    text,
    whole_number,
)
from rightsizer.domain.history import History
from rightsizer.domain.option import ORDERED
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.reason import UNREADABLE, Code
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.errors import ConflictError, UnreadableError

KEPT_DAYS = 90
"""A recommendation that is not renewed goes: its endpoint does not exist any more."""
RECENT = timedelta(days=2)
"""An endpoint that was not evaluated for so long does not exist any more, or costs nobody knows what."""
ZERO = Decimal(0)
RESTS = timedelta(days=1)
"""How long the same proposal is not asked again after its change was refused; the reason is seldom gone at once."""
ASKED_AGAIN = (ProposalState.WITHDRAWN, ProposalState.EXPIRED)
"""A proposal of the same id in these states is opened again when it is recommended again."""


class Recommendations(Proposals):
    """Keeps the promises of `ports.evaluation.RecommendationStore` and `ports.evaluation.EvaluationLog`."""

    def __init__(self, table: Table, clock: Callable[[], datetime]) -> None:
        super().__init__(table)
        self._clock = clock
        self._history = HistoryTable(table)

    def last_evaluated(self, endpoint: str) -> tuple[datetime, str] | None:
        """When the endpoint was last evaluated and its fingerprint then; None where that cannot be read."""
        found = self._table.get(f"ENDPOINT#{endpoint}", "RECOMMENDATION")
        return read_if_readable(found, lambda row: (moment(row, "evaluated_at"), text(row, "fingerprint")))

    def recommendation(self, endpoint: str) -> Recommendation | None:
        """The latest recommendation of the endpoint, or None. InputError where what is stored cannot be read."""
        found = self._table.get(f"ENDPOINT#{endpoint}", "RECOMMENDATION")
        return noun_of(Recommendation, found) if found else None

    def created_at(self) -> datetime:
        """When the table was made; what is dated before that was restored or copied into it."""
        return self._table.made_at()

    def last_evaluations(self) -> Mapping[str, datetime]:
        """Time of the last evaluation by endpoint name."""
        rows = self._table.index("RECOMMENDATION", only=("pk", "sk", "gsi1sk", "evaluated_at"))
        return dict(readable_rows(rows, lambda row: (text(row, "gsi1sk"), moment(row, "evaluated_at"))))

    def note_spending(self, at: datetime) -> None:
        """Keep what GPU endpoints cost a month, by the last two days' recommendations; nothing where there is none."""
        rows = self._table.index("RECOMMENDATION", only=("pk", "sk", "usd", "evaluated_at"))
        total = sum(readable_rows(rows, lambda row: _usd_since(row, at - RECENT)), ZERO)
        if total > 0:
            self._table.put(spending(total, at))

    def recommendations(self, unread: list[UnreadRow] | None = None) -> Iterator[Recommendation]:
        """The latest recommendation of every endpoint; rows that cannot be read are passed over, into `unread`."""
        rows = self._table.index("RECOMMENDATION")
        yield from readable_rows(rows, lambda row: noun_of(Recommendation, row), unread)

    def history(self, endpoint: str) -> History:
        """Past changes, tests and failures of the endpoint and of its account."""
        return self._history.history(endpoint, self._clock())

    def follow(
        self, proposal_id: str, state: ProposalState, change_id: str, outcome: str, now: datetime | None = None
    ) -> None:
        """Let the proposal follow its change."""
        super().follow(proposal_id, state, change_id, outcome, now or self._clock())

    def save(self, recommendation: Recommendation, proposal: Proposal | None) -> bool:
        """Store the recommendation and, in the same write, the proposal; False when that proposal already existed.

        An older pending proposal of the endpoint is withdrawn; an approved one or one that is being applied stays,
        and then the new one is not opened.
        """
        doing = f"saving the recommendation for {recommendation.ref.name}"
        return self._write_until_done(recommendation, proposal, doing, lambda writes, _: writes)

    def order(self, proposal: Proposal) -> bool:
        """Open what a person asks for as the endpoint's only open proposal; no recommendation is stored.

        False when that proposal existed, or another one is approved or being applied. A pending one is withdrawn.
        """
        doing = f"asking about {proposal.ref.name}"
        return self._write_until_done(
            proposal.recommendation, proposal, doing, lambda writes, asked: writes[1:] if asked else []
        )

    def _write_until_done(
        self,
        recommendation: Recommendation,
        proposal: Proposal | None,
        doing: str,
        kept: Callable[[list[Any], bool], list[Any]],
    ) -> bool:
        """Make the writes that `kept` selects, anew after a conflict; whether the proposal is opened.

        Raises ConflictError after `TRIES` conflicts.
        """
        for attempt in range(TRIES):
            writes, asked = self._writes(recommendation, proposal)
            wanted = kept(writes, asked)
            try:
                if wanted:
                    self._table.transact(wanted, doing)
            except ConflictError:
                if attempt == TRIES - 1:
                    raise
                continue
            return asked
        return False

    def _writes(self, recommendation: Recommendation, proposal: Proposal | None) -> tuple[list[Any], bool]:
        """The write of the recommendation, then those of the proposal, and whether it is opened by them."""
        judged = self._table.put_if(_item(recommendation))
        try:
            about, asked = self._proposal_writes(recommendation, proposal)
        except UnreadableError as error:  # it stays as it is, for a release that can read it, and nothing else is asked
            pass_over(f"ENDPOINT#{recommendation.ref.name} OPEN, or a proposal about it,", error)
            return [judged], False
        return [judged, *about], asked

    def _proposal_writes(self, recommendation: Recommendation, proposal: Proposal | None) -> tuple[list[Any], bool]:
        """The writes of the proposal, and whether it is opened by them. UnreadableError."""
        now = recommendation.evaluated_at
        current = self._open(recommendation.ref.name)
        if current:
            if decisions.state_of(current) is not ProposalState.PENDING:
                return [], False
            if _is_still_wanted(current, recommendation) and not _is_ordered(proposal):
                return [], False
        if proposal is None:
            if current and _is_outdated(current, recommendation):
                return [
                    self._withdraw(current, now, "The endpoint or its need has changed since this was asked.")
                ], False
            return [], False
        known = decisions.find(self._table, proposal.id)
        if known and (decisions.state_of(known) not in ASKED_AGAIN or _was_just_refused(known, proposal, now)):
            return [], False
        older = [self._withdraw(current, now, f"A newer proposal, {proposal.id}, takes its place.")] if current else []
        return [*older, *self._opening_write(proposal, known)], True

    def _open(self, endpoint: str) -> Row | None:
        """The endpoint's open proposal as an item, or None."""
        lock = self._table.get(f"ENDPOINT#{endpoint}", "OPEN")
        found = decisions.find(self._table, text(lock, "proposal")) if lock else None
        return found if found and decisions.state_of(found) in OPEN else None

    def _withdraw(self, current: Row, now: datetime, outcome: str) -> Any:
        after = decisions.item_in_state(current, ProposalState.WITHDRAWN, now, outcome=outcome)
        return self._table.put_over(after, current, "version")

    def _opening_write(self, proposal: Proposal, known: Row | None) -> Any:
        """The proposal and the lock that makes it the endpoint's only open one, both on condition."""
        if known:
            document(known)  # one of a newer release is not asked anew by this one
        opened = self._table.put_over(proposals.item(proposal, known), known, "version")
        pk = f"ENDPOINT#{proposal.ref.name}"
        held = self._table.get(pk, "OPEN")
        lock: Row = {"pk": pk, "sk": "OPEN", "proposal": proposal.id, "at": stamp(proposal.created_at)}
        return [opened, self._table.put_over((held or {}) | lock, held, "proposal", "at")]


def _item(recommendation: Recommendation) -> Item:
    name = recommendation.ref.name
    return {
        "pk": f"ENDPOINT#{name}",
        "sk": "RECOMMENDATION",
        "gsi1pk": "RECOMMENDATION",
        "gsi1sk": name,
        "evaluated_at": stamp(recommendation.evaluated_at),
        "fingerprint": recommendation.fingerprint,
        "finding": str(recommendation.finding),
        "usd": str(ZERO if recommendation.reason.code is Code.NO_ACCELERATOR else recommendation.usd_per_month or ZERO),
        "expires": epoch(recommendation.evaluated_at, KEPT_DAYS),
        "doc": wire.dump_stored(recommendation),
    }


def _usd_since(row: Row, start: datetime) -> Decimal:
    """What the endpoint costs a month; nothing where it was not evaluated since. The first rows had no such sum."""
    return money(row, "usd") if moment(row, "evaluated_at") >= start and "usd" in row else ZERO


def _was_just_refused(known: Row, proposal: Proposal, now: datetime) -> bool:
    """Whether the proposal was withdrawn by its own change less than a day ago; what brings room back never waits."""
    option = proposal.recommendation.chosen_option
    refused = decisions.state_of(known) is ProposalState.WITHDRAWN and "expires" in known
    if not refused or (option and option.restores):
        return False
    withdrawn = whole_number(known, "expires") - decisions.KEPT_DAYS[ProposalState.WITHDRAWN] * 86_400
    return bool(document(known).get("change_id")) and epoch(now - RESTS) < withdrawn


def _is_ordered(proposal: Proposal | None) -> bool:
    """Whether a person asked for it."""
    option = proposal.recommendation.chosen_option if proposal is not None else None
    return option is not None and option.kind in ORDERED


def _is_still_wanted(current: Row, recommendation: Recommendation) -> bool:
    """Whether a person asked for what is pending, on the configuration that still runs: their answer comes first."""
    asked = proposals.revive(current)
    configs = {r.fingerprint.partition("|")[0] for r in (asked.recommendation, recommendation)}
    return _is_ordered(asked) and len(configs) == 1


def _is_outdated(current: Row, recommendation: Recommendation) -> bool:
    """Missing data does not withdraw a proposal; another configuration or another recommendation does."""
    asked = proposals.revive(current).recommendation
    if recommendation.gate_reason.code in UNREADABLE:
        return False
    return asked.fingerprint != recommendation.fingerprint or recommendation.finding is not Finding.NOT_ENOUGH_DATA
