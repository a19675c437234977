"""`rightsizer proposals` and `history`: what was proposed, who decided it and where, and what was done."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from rightsizer.aws.message_book import Messages
from rightsizer.bootstrap.changes import Desk
from rightsizer.changes.ending import shown_outcome
from rightsizer.changes.shadow_test_result import change_id_after, passed_test
from rightsizer.changes.stages import change_id_of_next, proven_stage
from rightsizer.domain.approvers import caller_name
from rightsizer.domain.change import Change, JournalEvent
from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.plan import terminal_command
from rightsizer.domain.proposal import DecidedBy, DecisionSource, Proposal, ProposalState, change_id_of
from rightsizer.domain.reason import one_line
from rightsizer.errors import InputError
from rightsizer.render import sentences
from rightsizer.terminal import document, naming, tables
from rightsizer.terminal.app import app, examples, print_json
from rightsizer.terminal.options import StackOptions, order

STACK, AUTOMATIC, TERMINAL = "the stack", "automatic mode", "terminal"
TOLD = {
    JournalEvent.STEER,
    JournalEvent.FINISH,
    JournalEvent.AGAIN,
    JournalEvent.WAY_BACK,
    JournalEvent.OWNER_EDITS,
    JournalEvent.IMAGES,
}
"""Journal lines beside writes that a person wants to see; --json has all."""
UPDATE = "sagemaker:UpdateEndpoint"
ENDED = frozenset({ProposalState.WITHDRAWN, ProposalState.EXPIRED, ProposalState.PROVEN})
"""States that a proposal may have reached without its change: no journal tells of it then."""
ASKED_BACK = "asked for the way back"
NEEDS_MORE = "run more than it has; no option is known"
STATE_COLOURS = {
    ProposalState.PENDING: "yellow",
    ProposalState.PROVEN: "green",
    ProposalState.ROLLED_BACK: "red",
    ProposalState.HANDED_OVER: "bold red",
}


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an endpoint, or was said about it."""

    at: datetime
    kind: str
    """proposed, decided, asked-back, step, failed, note, stopped, started or woken."""
    text: str
    by: str = ""
    """Slack user or ARN of the caller; empty where no person acted."""
    place: str = STACK
    """Slack, terminal, automatic mode or the stack."""
    proposal: str = ""
    change: str = ""
    name: str = ""
    """Of a step the action of IAM, of a note the journal's own name."""

    @property
    def actor(self) -> str:
        """Who acted, and where, in a few words."""
        return f"{caller_name(self.by)}, {self.place}" if self.by else self.place


@app.command(
    epilog=examples(
        "rightsizer proposals --state pending  # what waits for an answer",
        "rightsizer proposals --json | jq -r '.proposals[].id'",
    )
)
@order
def proposals(
    options: StackOptions,
    state: Annotated[
        list[ProposalState] | None, typer.Option("--state", help="Show only this state; repeat it for several.")
    ] = None,
) -> None:
    """List proposals and how each stands, the newest first.

    Reads only. The id of a change is what rightsizer rollback takes.
    """
    unread: list[UnreadRow] = []
    found = sorted(options.desk().store.proposals(state or (), unread), key=_listing_order)
    if options.as_json:
        listed = [document.proposal_document(proposal) for proposal in found]
        print_json({"version": document.VERSION, "proposals": listed, "unreadable": document.unread_documents(unread)})
        return
    console = tables.output()
    if found:
        console.print(proposal_page(found, console.width))
    elif not unread:
        console.print("No proposal has this state." if state else "No proposal yet.")
    for lost in unread:
        tables.say(one_line(sentences.unread_row(lost)))


def proposal_page(found: Sequence[Proposal], width: int) -> RenderableType:
    """The proposals as a table, or where that would break ids and sentences as a list."""
    return _proposal_table(found) if width >= tables.PIPED else _proposal_list(found)


def _proposal_table(found: Sequence[Proposal]) -> RenderableType:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    for head in ("Proposal", "Endpoint", "State"):
        grid.add_column(head, no_wrap=head != "Endpoint", overflow="fold")
    grid.add_column("Change", overflow="fold")
    grid.add_column("Saving a month", justify="right", overflow="fold")
    grid.add_column("Id of change", no_wrap=True)
    grid.add_column("How it stands", overflow="fold", ratio=1)
    for proposal in found:
        what, saving, stands = _standing(proposal)
        state = Text(proposal.state.value, style=STATE_COLOURS.get(proposal.state, ""))
        grid.add_row(proposal.id, Text(proposal.ref.name), state, Text(what), saving, proposal.change_id, Text(stands))
    return grid


def _proposal_list(found: Sequence[Proposal]) -> RenderableType:
    """The proposals for a terminal that is too narrow for a table; ids are whole, so that they can be copied."""
    parts: list[RenderableType] = []
    for proposal in found:
        what, saving, stands = _standing(proposal)
        head = Text.assemble(
            (proposal.ref.name, "bold"), "  ", (proposal.state.value, STATE_COLOURS.get(proposal.state, ""))
        )
        ids = Text(f"{proposal.id}  {proposal.change_id}".rstrip(), style="dim")
        worth = f", {saving} a month" if saving else ""
        parts += [head, *(Padding(each, (0, 0, 0, 2)) for each in (Text(f"{what}{worth}"), Text(stands), ids))]
    return Group(*parts)


def _standing(proposal: Proposal) -> tuple[str, str, str]:
    """What is proposed, what that saves a month, and how it stands; nothing is saved where more is needed."""
    usd = proposal.recommendation.approval_usd_per_month
    what = ", ".join(sentences.planned_changes(proposal.recommendation)) or NEEDS_MORE
    stands = proposal.outcome or sentences.standing_sentence(proposal)
    return one_line(what), sentences.money(usd) if usd else "", one_line(stands)


def _listing_order(proposal: Proposal) -> tuple[float, Decimal, str]:
    """The newest first; of one evaluation the largest saving first."""
    return -proposal.created_at.timestamp(), -proposal.recommendation.approval_usd_per_month, proposal.ref.name


@app.command(epilog=examples("rightsizer history chat-prod", "rightsizer history chat-prod --json | jq .events"))
@order
def history(
    options: StackOptions,
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT", help="Name of the endpoint.")],
) -> None:
    """Show what happened to an endpoint: who decided and did what.

    Reads only, the oldest first: when it was, what was done, who did it, and where: in Slack, at a terminal, or
    automatically.
    """
    unread: list[UnreadRow] = []
    at = options.desk()
    events = list(events_of(at, endpoint, unread))
    if not events and not unread:
        meant = naming.did_you_mean(endpoint, (proposal.ref.name for proposal in at.proposals()))
        raise InputError(
            f"the history of {endpoint}: the stack's table knows nothing about an endpoint of this name{meant}; "
            f"{terminal_command('proposals', options.session.region)} lists those that it knows"
        )
    if options.as_json:
        rows = [event_document(event) for event in events]
        lost = document.unread_documents(unread)
        print_json({"version": document.VERSION, "endpoint": endpoint, "events": rows, "unreadable": lost})
        return
    console = tables.output()
    for part in _page(list(summarised(events)), console.width):
        console.print(part)
    for row in unread:
        tables.say(one_line(sentences.unread_row(row)))


def events_of(at: Desk, endpoint: str, unread: list[UnreadRow]) -> Iterator[Event]:
    """Everything that is stored about the endpoint, the oldest first."""
    events: list[Event] = []
    for proposal in at.store.proposals((), unread):
        if proposal.ref.name == endpoint:
            changes = list(changes_of(at.journal.load, proposal))
            events += _of_proposal(proposal, Messages(at.table).message(proposal.id) is not None, changes)
            for change in changes:
                events += events_of_change(change)
    record = at.hours.load(endpoint)
    events += _of_hours(record) if record else ()
    yield from sorted(events, key=lambda event: event.at)


def changes_of(load: Callable[[str], Change | None], proposal: Proposal) -> Iterator[Change]:
    """The change that the proposal names, its other stages, the shadow test before it, and what was approved first."""
    waiting, seen = [proposal.change_id, change_id_of(proposal)], {""}
    while waiting:
        name = waiting.pop(0)
        change = load(name) if name not in seen else None
        seen.add(name)
        if change is None:
            continue
        yield change
        test, stage = passed_test(change), proven_stage(change)
        waiting += [change.after.change_id] if change.after is not None else []
        waiting += [change.stage_before.change_id] if change.stage_before is not None else []
        waiting += [change_id_after(test)] if test is not None else []
        waiting += [change_id_of_next(stage)] if stage is not None else []


def _of_proposal(proposal: Proposal, was_posted: bool, changes: Sequence[Change]) -> Iterator[Event]:
    planned = ", ".join(sentences.planned_changes(proposal.recommendation))
    what = f"to {planned}" if planned else "a look at it"
    saving = proposal.recommendation.approval_usd_per_month
    saves = f", saves {sentences.plan_saving(proposal.recommendation)}" if saving > 0 else ""
    shown = "; shown in Slack" if was_posted else ""
    told = any(shown_outcome(change) == proposal.outcome for change in changes)
    stands = f"; now {proposal.state.value}: {proposal.outcome}" if proposal.state in ENDED and not told else ""
    yield Event(proposal.created_at, "proposed", f"proposed {what}{saves}{shown}{stands}", proposal=proposal.id)
    ids = proposal.id, proposal.change_id
    if proposal.decision is not None:
        text = f"{proposal.decision.state.value}{', the test first' if proposal.decision.test_first else ''}"
        why = f": {proposal.decision.comment}" if proposal.decision.comment else ""
        yield _by(proposal.decision.by, proposal.decision.at, "decided", f"{text}{why}", *ids)
    noted = any(entry.step == JournalEvent.ASK_BACK for change in changes for entry in change.journal)
    if proposal.asked_back_by and proposal.asked_back_at and not noted:
        yield _by(proposal.asked_back_by, proposal.asked_back_at, "asked-back", ASKED_BACK, *ids)


def _by(text: str, at: datetime, kind: str, said: str, proposal: str, change: str) -> Event:
    by = DecidedBy.read(text)
    places = {DecisionSource.SLACK: "Slack", DecisionSource.CLI: TERMINAL, DecisionSource.POLICY: AUTOMATIC}
    return Event(at, kind, said, by.person, places.get(by.source, "unknown place"), proposal, change)


def events_of_change(change: Change) -> Iterator[Event]:
    actions = {entry.step: entry.detail for entry in change.journal if entry.status == "intended"}
    ids = change.proposal_id, change.id
    for entry in change.journal:
        match entry.status:
            case "noted" if entry.step == JournalEvent.ASK_BACK:
                yield _by(entry.detail, entry.at, "asked-back", ASKED_BACK, *ids)
            case "noted":
                yield Event(entry.at, "note", entry.detail, "", STACK, *ids, entry.step)
            case "done":
                yield Event(entry.at, "step", entry.step, "", STACK, *ids, actions.get(entry.step, entry.step))
            case "failed":
                text = f"{entry.step} failed: {entry.answer}"
                yield Event(entry.at, "failed", text, "", STACK, *ids, actions.get(entry.step, entry.step))


def _of_hours(record: HoursRecord) -> Iterator[Event]:
    for stop in record.stopped_times:
        yield Event(stop.start, "stopped", "stopped by its office hours")
        if stop.end is not None:
            yield Event(stop.end, "started", "runs again")
    for wake in record.wakes:
        by = DecidedBy.read(wake.by)
        text = f"woken until {sentences.time_text(wake.until)}"
        yield Event(wake.at, "woken", text, by.person, TERMINAL if by.source is DecisionSource.CLI else "")


def summarised(events: Sequence[Event]) -> Iterator[Event]:
    """The events for a person: notes that matter, and the writes of one minute of a change in one line."""
    wanted = [event for event in events if event.kind != "note" or event.name in TOLD]
    for (_, kind, _), group in groupby(wanted, key=lambda event: (event.at, event.kind, event.change)):
        some = list(group)
        yield from _joined_steps(some) if kind == "step" else some


def _joined_steps(events: Sequence[Event]) -> Iterator[Event]:
    """The update of the endpoint in its own words, the other writes by their number."""
    counted = Counter(event.name for event in events if event.name != UPDATE)
    if counted:
        text = ", ".join(f"{name} × {times}" if times > 1 else name for name, times in counted.items())
        yield replace(events[0], text=text)
    yield from (event for event in events if event.name == UPDATE)


def event_document(event: Event) -> dict[str, Any]:
    """An event with the keys of docs/cli-json.md."""
    return {
        "at": event.at.isoformat(),
        "event": event.kind,
        "text": event.text,
        "by": event.by,
        "from": event.place,
        "proposal": event.proposal or None,
        "change": event.change or None,
    }


def _page(events: Sequence[Event], width: int) -> Iterator[Grid | Text | Padding]:
    if width < tables.SLIM:
        for event in events:
            yield Text.assemble((sentences.time_text(event.at), "bold"), f"  {one_line(event.actor)}")
            yield Padding(Text(one_line(event.text)), (0, 0, 0, 2))
        return
    grid = Grid("When", "What", "Who and where", "Id", box=None, pad_edge=False, header_style="bold")
    for event in events:
        known = event.change if event.kind in ("step", "failed", "note") else event.proposal
        style = {"step": "dim", "failed": "red", "decided": "bold", "asked-back": "bold"}.get(event.kind, "")
        cells = (sentences.time_text(event.at), event.text, event.actor, known)
        grid.add_row(*(Text(one_line(cell)) for cell in cells), style=style)
    yield grid
