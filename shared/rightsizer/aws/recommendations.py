"""The RecommendationStore on the table: the latest recommendation of each endpoint, with at most one open proposal."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import batched
from typing import Any

from rightsizer import wire
from rightsizer.aws import decisions, proposals
from rightsizer.aws.documents import MOST_READ, Batches, RowKey, noun_of
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
    readable_rows,
    stamp,
    text,
    whole_number,
)
from rightsizer.domain.history import History, OpenQuestion
from rightsizer.domain.option import ORDERED
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.proposal import Proposal, ProposalState, may_ask_again
from rightsizer.domain.reason import UNREADABLE, Code
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.errors import ConflictError, UnreadableError

RECOMMENDATION, EVALUATED = "RECOMMENDATION", "EVALUATED"
"""Sort keys of the two rows of a recommendation; the second is the key of the index too."""
KEPT_DAYS = 90
"""A recommendation that is not renewed goes: its endpoint does not exist any more."""
RECENT = timedelta(days=2)
"""An endpoint that was not evaluated for so long does not exist any more, or costs nobody knows what."""
ZERO = Decimal(0)
RESTS = timedelta(days=1)
"""How long the same proposal is not asked again after its change was refused; the reason is seldom gone at once."""
ASKED = frozenset({ProposalState.PENDING, ProposalState.APPROVED})
"""A proposal in these states waits for a person, or for its change to begin."""
ASKED_AGAIN = (ProposalState.WITHDRAWN, ProposalState.EXPIRED)
"""A proposal of the same id in these states is opened again when it is recommended again."""


class Recommendations(Proposals):
    """Keeps the promises of `ports.evaluation.RecommendationStore` and `ports.evaluation.EvaluationLog`."""

    def __init__(self, table: Table, clock: Callable[[], datetime]) -> None:
        super().__init__(table)
        self._batches = Batches(table)
        self._clock = clock
        self._history = HistoryTable(table)

    def last_evaluated(self, endpoints: Collection[str]) -> Mapping[str, datetime]:
        """When each of these endpoints was last evaluated; one of which that is not known is left out."""
        rows = self._batches.read([(f"ENDPOINT#{name}", EVALUATED) for name in endpoints])
        return dict(readable_rows(rows.values(), _name_and_time))

    def open_questions(self, endpoints: Collection[str]) -> Mapping[str, OpenQuestion]:
        """Pending options, and approved ones that did not begin, by endpoint; unreadable rows are passed over."""
        locks = self._batches.read([(f"ENDPOINT#{name}", "OPEN") for name in endpoints])
        ids = sorted(set(readable_rows(locks.values(), lambda lock: text(lock, "proposal"))))
        rows = self._batches.read([(f"{decisions.PREFIX}{one}", decisions.SORT) for one in ids])
        recommendations = (
            proposal.recommendation
            for proposal in readable_rows(rows.values(), proposals.revive)
            if proposal.state in ASKED
        )
        return {
            recommendation.ref.name: OpenQuestion(recommendation.chosen_option, recommendation.fingerprint)
            for recommendation in recommendations
            if recommendation.chosen_option is not None
        }

    def recommendation(self, endpoint: str) -> Recommendation | None:
        """The latest recommendation of the endpoint, or None. InputError where what is stored cannot be read."""
        found = self._table.get(f"ENDPOINT#{endpoint}", RECOMMENDATION)
        return noun_of(Recommendation, found) if found else None

    def created_at(self) -> datetime:
        """When the table was made; what is dated before that was restored or copied into it."""
        return self._table.made_at()

    def last_evaluations(self) -> Mapping[str, datetime]:
        """Time of the last evaluation by endpoint name."""
        return dict(readable_rows(self._table.index(EVALUATED), _name_and_time))

    def note_spending(self, at: datetime) -> None:
        """Keep what GPU endpoints cost a month, by the last two days' recommendations; nothing where there is none."""
        rows = self._table.index(EVALUATED)
        total = sum(readable_rows(rows, lambda row: _usd_since(row, at - RECENT)), ZERO)
        if total > 0:
            self._table.put(spending(total, at))

    def recommendations(self, unread: list[UnreadRow] | None = None) -> Iterator[Recommendation]:
        """The latest recommendation of every endpoint; rows that cannot be read are passed over, into `unread`."""
        yield from readable_rows(self._recommendation_rows(), lambda row: noun_of(Recommendation, row), unread)

    def _recommendation_rows(self) -> Iterator[Row]:
        """Rows with their documents, a hundred at a time; then those of releases that had them in the index."""
        seen = [text(row, "pk") for row in self._table.index(EVALUATED, only=("pk",))]
        for some in batched(seen, MOST_READ):
            yield from self._batches.read([(pk, RECOMMENDATION) for pk in some]).values()
        known = frozenset(seen)
        yield from (row for row in self._table.index(RECOMMENDATION) if text(row, "pk") not in known)

    def history(self, endpoint: str, modified_at: datetime | None = None) -> History:
        """Past changes, tests and failures of the endpoint and of its account.

        `modified_at` spares a read where the endpoint was not modified lately and no change of it is listed.
        """
        return self._history.history(endpoint, self._clock(), modified_at)

    def follow(
        self,
        proposal_id: str,
        state: ProposalState,
        change_id: str,
        outcome: str,
        now: datetime | None = None,
        measured: Decimal | None = None,
    ) -> None:
        """Let the proposal follow its change."""
        super().follow(proposal_id, state, change_id, outcome, now or self._clock(), measured)

    def save(self, recommendation: Recommendation, proposal: Proposal | None) -> bool:
        """Store the recommendation and, in the same write, the proposal; False when that proposal already existed.

        An older pending proposal of the endpoint is withdrawn; an approved one or one that is being applied stays,
        and then the new one is not opened.
        """
        doing = f"saving the recommendation for {recommendation.ref.name}"
        judged = [self._table.put_if(row) for row in _rows(recommendation)]
        return self._write_until_done(recommendation, proposal, doing, lambda writes, _: [*judged, *writes])

    def save_all(self, found: Sequence[tuple[Recommendation, Proposal | None]]) -> None:
        """Store these of different endpoints: in batches, and each that opens or closes a proposal by itself.

        An error leaves some stored and others not.
        """
        locks = self._batches.read([(_pk(each), "OPEN") for each, _ in found])
        ids = {proposal.id for _, proposal in found if proposal}
        ids |= set(readable_rows(locks.values(), lambda row: text(row, "proposal")))
        asked = self._batches.read([(f"{decisions.PREFIX}{one}", decisions.SORT) for one in ids])
        now = _Snapshot(locks | asked)
        plain: list[Item] = []
        for recommendation, proposal in found:
            if self._writes(recommendation, proposal, now)[0]:
                self.save(recommendation, proposal)
            else:
                plain += _rows(recommendation)
        self._batches.write(plain)

    def order(self, proposal: Proposal) -> bool:
        """Open what a person asks for as the endpoint's only open proposal; no recommendation is stored.

        False when that proposal existed, or another one is approved or being applied. A pending one is withdrawn.
        """
        doing = f"asking about {proposal.ref.name}"
        return self._write_until_done(
            proposal.recommendation, proposal, doing, lambda writes, asked: writes if asked else []
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
            writes, asked = self._writes(recommendation, proposal, self._table)
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

    def _writes(
        self, recommendation: Recommendation, proposal: Proposal | None, rows: decisions.RowSource
    ) -> tuple[list[Any], bool]:
        """The writes about proposals, and whether the proposal is opened by them."""
        try:
            return self._proposal_writes(recommendation, proposal, rows)
        except UnreadableError as error:  # it stays as it is, for a release that can read it, and nothing else is asked
            pass_over(f"ENDPOINT#{recommendation.ref.name} OPEN, or a proposal about it,", error)
            return [], False

    def _proposal_writes(
        self, recommendation: Recommendation, proposal: Proposal | None, rows: decisions.RowSource
    ) -> tuple[list[Any], bool]:
        """Writes of the proposal, and whether it is open. Raises UnreadableError."""
        now = recommendation.evaluated_at
        lock = rows.get(_pk(recommendation), "OPEN")
        current = _open_proposal(lock, rows)
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
        known = decisions.find(rows, proposal.id)
        if known and not _may_open_again(known, proposal, now):
            return [], False
        older = [self._withdraw(current, now, f"A newer proposal, {proposal.id}, takes its place.")] if current else []
        return [*older, *self._opening_write(proposal, known, lock)], True

    def _withdraw(self, current: Row, now: datetime, outcome: str) -> Any:
        after = decisions.item_in_state(current, ProposalState.WITHDRAWN, now, outcome=outcome)
        return self._table.put_over(after, current, "version")

    def _opening_write(self, proposal: Proposal, known: Row | None, held: Row | None) -> Any:
        """The proposal and the lock that makes it the endpoint's only open one, both on condition."""
        if known:
            document(known)  # one of a newer release is not asked anew by this one
        opened = self._table.put_over(proposals.item(proposal, known), known, "version")
        pk = f"ENDPOINT#{proposal.ref.name}"
        lock: Row = {"pk": pk, "sk": "OPEN", "proposal": proposal.id, "at": stamp(proposal.created_at)}
        mark = self._table.put_if(proposals.expiry_mark(proposal.id, proposal.expires_at))
        return [opened, self._table.put_over((held or {}) | lock, held, "proposal", "at"), mark]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Rows of a moment, read as the table itself is."""

    rows: Mapping[RowKey, Row]

    def get(self, pk: str, sk: str) -> Row | None:
        """The row, or None."""
        return self.rows.get((pk, sk))


def _pk(recommendation: Recommendation) -> str:
    return f"ENDPOINT#{recommendation.ref.name}"


def _open_proposal(lock: Row | None, rows: decisions.RowSource) -> Row | None:
    """The row of the open proposal that the endpoint's lock names, or None."""
    found = decisions.find(rows, text(lock, "proposal")) if lock else None
    return found if found and decisions.state_of(found) in OPEN else None


def _name_and_time(row: Row) -> tuple[str, datetime]:
    return text(row, "gsi1sk"), moment(row, "evaluated_at")


def _rows(recommendation: Recommendation) -> tuple[Item, Item]:
    """The recommendation, and the small row that lists of all endpoints are made from.

    The index holds every attribute of a row that has its keys: only the small one has them, a hundredth of the size.
    """
    name, pk = recommendation.ref.name, _pk(recommendation)
    spent = ZERO if recommendation.reason.code is Code.NO_ACCELERATOR else recommendation.usd_per_month or ZERO
    known: Item = {
        "evaluated_at": stamp(recommendation.evaluated_at),
        "fingerprint": recommendation.fingerprint,
        "finding": str(recommendation.finding),
        "usd": str(spent),
        "expires": epoch(recommendation.evaluated_at, KEPT_DAYS),
    }
    return (
        {"pk": pk, "sk": RECOMMENDATION, **known, "doc": wire.dump_stored(recommendation)},
        {"pk": pk, "sk": EVALUATED, "gsi1pk": EVALUATED, "gsi1sk": name, **known},
    )


def _usd_since(row: Row, start: datetime) -> Decimal:
    """What the endpoint costs a month; nothing where it was not evaluated since. The first rows had no such sum."""
    return money(row, "usd") if moment(row, "evaluated_at") >= start and "usd" in row else ZERO


def _may_open_again(known: Row, proposal: Proposal, now: datetime) -> bool:
    """Whether a proposal that exists is asked once more. TTL deletes late, so that a snooze may be over before it."""
    state = decisions.state_of(known)
    if state is ProposalState.SNOOZED:
        return "expires" in known and whole_number(known, "expires") <= epoch(now)
    if state is ProposalState.REJECTED:
        return may_ask_again(proposals.revive(known), proposal.recommendation, now)
    return state in ASKED_AGAIN and not _was_just_refused(known, proposal, now)


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
    proposal = proposals.revive(current)
    configs = {r.fingerprint.partition("|")[0] for r in (proposal.recommendation, recommendation)}
    return _is_ordered(proposal) and len(configs) == 1


def _is_outdated(current: Row, recommendation: Recommendation) -> bool:
    """Missing data does not withdraw a proposal; another configuration or another recommendation does."""
    asked = proposals.revive(current).recommendation
    if recommendation.gate_reason.code in UNREADABLE:
        return False
    return asked.fingerprint != recommendation.fingerprint or recommendation.finding is not Finding.NOT_ENOUGH_DATA
