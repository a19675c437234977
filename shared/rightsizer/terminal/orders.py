"""Orders to a deployed stack: answer proposals, go back, freeze. Conditional writes record them; `apply` acts."""

from typing import Annotated, Any

import typer
from rich.table import Table as Grid
from rich.text import Text

from rightsizer.changes.reconcile import left_open
from rightsizer.domain.cleaned import one_line
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.errors import ConflictError, InputError
from rightsizer.render import notice, sentences
from rightsizer.terminal import changes, document
from rightsizer.terminal import tables as show
from rightsizer.terminal.app import app, examples, print_json
from rightsizer.terminal.options import Given, obey, order

HARD = "Frozen hard: no step at all is taken, and interrupted Spot capacity is not replaced."
PLAIN = "Frozen: no change goes forward. Steps that restore go on, and interrupted Spot capacity is still replaced."
ProposalId = Annotated[
    str, typer.Argument(metavar="PROPOSAL", help="Id of the proposal, as rightsizer proposals lists it.")
]


@app.command(
    epilog=examples(
        "rightsizer proposals --state pending  # what waits for an answer",
        "rightsizer proposals --json | jq -r '.proposals[].id'",
    )
)
@order
def proposals(
    given: Given,
    state: Annotated[
        list[ProposalState] | None, typer.Option("--state", help="Show only this state; repeat it for several.")
    ] = None,
) -> None:
    """List proposals and how each stands, the newest first.

    Reads only. The id of a change is what rightsizer rollback takes.
    """
    unread: list[UnreadRow] = []
    found = list(given.desk().store.proposals(state or (), unread))
    if given.as_json:
        listed = [_proposal(one) for one in found]
        print_json({"version": document.VERSION, "proposals": listed, "unreadable": _lost(unread)})
        return
    grid = Grid("Proposal", "Endpoint", "State", "Change", "Saving a month", "Id of change", "How it stands", box=None)
    for one in found:
        option = one.recommendation.chosen
        saving = sentences.money(one.recommendation.saving_usd_per_month)
        said = one.outcome or sentences.standing(one)
        what = sentences.change(option) if option else ""
        row = (one.id, one.ref.name, one.state.value, what, saving, one.change_id, said)
        grid.add_row(*(Text(one_line(cell)) for cell in row))
    if found or not unread:
        show.output().print(grid if found else "No proposal yet." if not state else "No proposal has this state.")
    for lost in unread:
        show.say(one_line(notice.unread(lost)))


@app.command(epilog=examples("rightsizer approve p-1f0c2a --region eu-west-1"))
@order
def approve(given: Given, proposal: ProposalId) -> None:
    """Approve a proposal; the deployed stack carries it out.

    The stack checks everything again first, and goes back by itself where an alarm or the requests say so.
    """
    at = given.deciding(f"approving {proposal}")
    _decided(at.decide(proposal, ProposalState.APPROVED), given.as_json)


@app.command(epilog=examples('rightsizer reject p-1f0c2a --reason "needed for the launch in May"'))
@order
def reject(
    given: Given,
    proposal: ProposalId,
    reason: Annotated[str, typer.Option("--reason", help="Why not, for those who read it later.")] = "",
) -> None:
    """Reject a proposal, and keep the reason.

    The same change is not proposed again for 180 days.
    """
    at = given.deciding(f"rejecting {proposal}")
    _decided(at.decide(proposal, ProposalState.REJECTED, reason), given.as_json)


@app.command(epilog=examples("rightsizer snooze p-1f0c2a"))
@order
def snooze(given: Given, proposal: ProposalId) -> None:
    """Put a proposal aside for 30 days.

    It is proposed again after that, if the saving is still there.
    """
    at = given.deciding(f"putting {proposal} aside")
    _decided(at.decide(proposal, ProposalState.SNOOZED), given.as_json)


@app.command("apply", epilog=examples("rightsizer apply p-1f0c2a  # the same again shows how far the change is"))
@order
def apply_(given: Given, proposal: ProposalId) -> None:
    """Approve a proposal if needed, and show its change so far.

    The deployed stack makes the change, not this terminal: it goes on when the terminal is closed.
    """
    at = given.desk()
    found = at.store.proposal(proposal)
    if found is None:
        raise InputError(f"applying {proposal}: there is no such proposal; see rightsizer proposals")
    if found.state is ProposalState.PENDING:
        obey(at, f"applying {proposal}")
        at.decide(proposal, ProposalState.APPROVED)
        found = at.store.proposal(proposal) or found
    elif found.state in (ProposalState.REJECTED, ProposalState.SNOOZED, ProposalState.EXPIRED, ProposalState.WITHDRAWN):
        raise ConflictError(f"applying {proposal}: it is {found.state.value}; nothing was recorded")
    change = at.journal.load(found.change_id) if found.change_id else None
    if given.as_json:
        print_json({"version": document.VERSION, "proposal": _proposal(found), "change": changes.of_change(change)})
        return
    show.say(f"{found.id} is {found.state.value}. {found.outcome or sentences.standing(found)}")
    for entry in change.journal if change else ():
        show.say(f"  {sentences.when(entry.at)}  {entry.status:8}  {entry.step}  {entry.detail}")


@app.command(epilog=examples("rightsizer rollback c-0a1b2c  # rightsizer proposals lists the ids of changes"))
@order
def rollback(
    given: Given,
    change: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Id of the change, such as c-0a1b2c, or of a change of an Auto Scaling group."
        ),
    ],
) -> None:
    """Bring back what ran before a change.

    An endpoint gets its old configuration, a group its old policy; also after the change was proven. The deployed
    stack does it, within minutes.
    """
    from rightsizer import bootstrap

    at = given.deciding(f"rolling back {change}")
    errand = at.errand_back(change)
    if errand is not None:
        if given.as_json:
            row = {"id": errand.id, "subject": errand.subject, "state": errand.state.value, "outcome": errand.outcome}
            print_json({"version": document.VERSION, "errand": row})
            return
        show.say(f"Recorded: {errand.subject} gets its old policy back within minutes.")
        return
    asked = at.orders.ask_back(change, at.who, bootstrap.now())
    if given.as_json:
        print_json({"version": document.VERSION, "change": changes.of_change(asked)})
        return
    old = asked.before.config_name if asked.before else "what it ran before"
    show.say(f"Recorded: {asked.ref.name} goes back to {old} within minutes.")


@app.command(
    epilog=examples(
        "rightsizer freeze         # no change starts or goes forward",
        "rightsizer freeze --hard  # in an emergency: nothing at all is done",
        "rightsizer freeze --off   # changes go on",
    )
)
@order
def freeze(
    given: Given,
    hard: Annotated[
        bool,
        typer.Option("--hard", help="Stop everything: also steps that restore, and replacements of Spot instances."),
    ] = False,
    off: Annotated[bool, typer.Option("--off", help="End the freeze.")] = False,
) -> None:
    """Stop all changes, or let them go on (--off).

    No change starts and none goes forward. Steps that restore an endpoint go on, and Spot instances that AWS takes
    away are still replaced. Changes that are under way are listed. With --hard nothing at all is done, so the list has
    the command lines that bring each endpoint back by hand.
    """
    from rightsizer import bootstrap

    if hard and off:
        raise typer.BadParameter("--hard and --off cannot be given together")
    at, now = given.desk(), bootstrap.now()
    if hard or off:  # what only stops the way forward is the brake: it is open to whoever may write to the table
        obey(at, "lifting the freeze" if off else "freezing hard")
    if off:
        at.orders.thaw(at.who, now)
    else:
        at.orders.freeze(at.who, now, hard=hard)
    unread: list[UnreadRow] = []
    still = list(at.journal.open_changes(unread))
    if given.as_json:
        state = {"frozen": not off, "hard": hard, "by": at.who, "at": now.isoformat()}
        left = [changes.left(one, hard) for one in still]
        print_json({"version": document.VERSION, "freeze": state, "open": left, "unreadable": _lost(unread)})
        return
    console = show.output()
    console.print("Thawed." if off else HARD if hard else PLAIN)
    for one in still:
        console.print(f"  {one.id}  {one.ref.name}  {one.state.value}  {one_line(one.outcome)}", markup=False)
        for line in left_open(one) if hard else one.remaining:
            console.print(f"      {line}", markup=False)
    for row in unread:
        console.print(f"  {one_line(notice.unread(row))}", markup=False)


def _lost(unread: list[UnreadRow]) -> list[dict[str, str]]:
    """Rows that were passed over, with the cause."""
    return [{"row": one.key, "cause": one.cause} for one in unread]


def _decided(found: dict[str, Any], as_json: bool) -> None:
    """Say what was recorded."""
    decision = found["decision"]
    if as_json:
        row = {"id": found["id"], "state": found["state"], "by": decision["by"], "at": decision["at"]}
        print_json({"version": document.VERSION, "proposal": row})
        return
    show.say(f"Recorded: {found['id']} is {found['state']} by {decision['by']}.")
    if found["state"] == ProposalState.APPROVED:
        show.say(f"The stack starts it now; see rightsizer apply {found['id']}.")


def _proposal(one: Proposal) -> dict[str, Any]:
    option, decision = one.recommendation.chosen, one.decision
    return {
        "id": one.id,
        "endpoint": one.ref.name,
        "owner": one.recommendation.owner,
        "state": one.state.value,
        "approvable": one.approvable,
        "enable": one.enable,
        "recommended": document.of_option(option, one.approvable) if option else None,
        "saving_usd_per_month": str(one.recommendation.saving_usd_per_month),
        "created_at": one.created_at.isoformat(),
        "expires_at": one.expires_at.isoformat(),
        "decision": {"by": decision.by, "at": decision.at.isoformat(), "comment": decision.comment}
        if decision
        else None,
        "change": one.change_id,
        "outcome": one.outcome,
    }
