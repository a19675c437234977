"""`rightsizer freeze`: the brake for every change and every stop of the stack, and what it leaves open."""

from collections.abc import Iterable
from typing import Annotated

import typer

from rightsizer import bootstrap
from rightsizer.changes.hours.steps import commands_by_hand
from rightsizer.changes.reconcile import undo_commands
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.plan import terminal_command
from rightsizer.domain.reason import one_line
from rightsizer.flows.wake import away_records
from rightsizer.render import sentences
from rightsizer.terminal import document, tables
from rightsizer.terminal.app import app, examples, print_json
from rightsizer.terminal.options import StackOptions, order, require_approver
from rightsizer.terminal.wake_page import asleep_document, asleep_line

HARD = (
    "Frozen hard: no step at all is taken, interrupted Spot capacity is not replaced, and no endpoint is stopped or "
    "woken by its office hours."
)
PLAIN = (
    "Frozen: no change goes forward, and no endpoint is stopped by its office hours any more. Steps that restore go "
    "on, due starts and wakes too, and interrupted Spot capacity is still replaced."
)


@app.command(
    epilog=examples(
        "rightsizer freeze         # no change starts or goes forward",
        "rightsizer freeze --hard  # in an emergency: nothing at all is done",
        "rightsizer freeze --off   # changes go on",
    )
)
@order
def freeze(
    options: StackOptions,
    hard: Annotated[
        bool,
        typer.Option(
            "--hard", help="Stop everything: also steps that restore, wakes, and replacements of Spot instances."
        ),
    ] = False,
    off: Annotated[bool, typer.Option("--off", help="End the freeze.")] = False,
) -> None:
    """Stop all changes, or let them go on (--off).

    No change starts and none goes forward, and no endpoint is stopped by its office hours. Steps that restore an
    endpoint go on, so do due starts and wakes, and Spot instances that AWS takes away are still replaced. Changes that
    are under way are listed. With --hard nothing at all is done, so the list has the command lines that bring each
    endpoint back by hand, and the endpoints that are asleep.
    """
    if hard and off:
        raise typer.BadParameter("--hard and --off cannot be given together")
    at, now = options.desk(), bootstrap.now()
    if hard or off:  # what only stops the way forward is the brake: it is open to whoever may write to the table
        require_approver(at, "lifting the freeze" if off else "freezing hard", of_account=True)
    if off:
        at.orders.thaw(at.decider, now)
    else:
        at.orders.freeze(at.decider, now, hard=hard)
    unread: list[UnreadRow] = []
    still, capacity_changes = list(at.journal.open_changes(unread)), at.capacity_changes.open_capacity_changes(unread)
    away, limits = away_records(at.hours, unread), at.wake_orders().limits
    if options.as_json:
        state = {"frozen": not off, "hard": hard, "by": at.decider, "at": now.isoformat()}
        left = [document.open_change_document(one, hard) for one in still]
        asked = [document.open_capacity_change_document(one, hard) for one in capacity_changes]
        asleep = [asleep_document(one, now, limits, hard, options.stack) for one in away]
        found = {"freeze": state, "open": left, "errands": asked, "asleep": asleep}
        print_json({"version": document.VERSION, **found, "unreadable": document.unread_documents(unread)})
        return
    _show_switch(off, hard, at.table.region)
    tables.say("Changes under way:" if still or capacity_changes else "No change is under way.")
    for one in still:
        _show_open(one.id, one.ref.name, one.state, one.outcome, undo_commands(one) if hard else one.remaining)
    for capacity_change in capacity_changes:
        lines = [capacity_change.rollback_command] if hard and capacity_change.rollback_command else []
        _show_open(capacity_change.id, capacity_change.subject, capacity_change.state, capacity_change.outcome, lines)
    for record in away if hard else ():
        tables.say(f"  {asleep_line(record, now, limits)}")
        tables.say_commands(commands_by_hand(record, now))
    for row in unread:
        tables.output().print(f"  {one_line(sentences.unread_row(row))}", markup=False)


def _show_switch(off: bool, hard: bool, region: str) -> None:
    """Say what holds now, and how a freeze ends."""
    tables.output().print("Thawed." if off else HARD if hard else PLAIN)
    if not off:
        tables.say("To end it:")
        tables.say_commands([terminal_command("freeze --off", region)])


def _show_open(name: str, subject: str, state: str, outcome: str, lines: Iterable[str]) -> None:
    """A change or a capacity change that is open, with the command lines that are left."""
    console = tables.output()
    console.print(f"  {name}  {subject}  {state}  {one_line(outcome)}", markup=False)
    tables.say_commands(lines)
