"""Orders to a deployed stack: ask, answer proposals, go back, freeze.

Conditional writes record the orders; `apply` acts. An order for an endpoint of inference components is a proposal,
which waits for its approval.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

import typer
from rich.padding import Padding
from rich.text import Text

from rightsizer import bootstrap
from rightsizer.domain.change import Change
from rightsizer.domain.option import ScaleIn
from rightsizer.domain.plan import order_command, terminal_command
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import SNOOZE_DAYS, USUAL_SNOOZE, Proposal, ProposalState, decider_name
from rightsizer.domain.reason import one_line
from rightsizer.errors import ConflictError, InputError, RightsizerError
from rightsizer.flows.orders import STANDING
from rightsizer.render import sentences
from rightsizer.render.blocks import MOST_REASON
from rightsizer.terminal import document, naming, tables
from rightsizer.terminal.app import app, examples, print_json
from rightsizer.terminal.options import StackOptions, order, require_approver

ProposalId = Annotated[
    str, typer.Argument(metavar="PROPOSAL", help="Name of the endpoint, or id of the proposal or its beginning.")
]


def _snooze_days(days: int) -> int:
    if days not in SNOOZE_DAYS:
        allowed = ", ".join(map(str, SNOOZE_DAYS))
        raise typer.BadParameter(f"{days} is none of {allowed}, as the menu in Slack has them")
    return days


SnoozeDays = Annotated[
    int, typer.Option("--days", callback=_snooze_days, metavar="7|30|90", help="Days until it may be asked again.")
]


def _reason(text: str) -> str:
    text = text.strip()
    if len(text) > MOST_REASON:
        raise typer.BadParameter(
            f"it has {len(text):,} characters, and may have {MOST_REASON}, as in Slack: shorten it"
        )
    return text


class Strategy(StrEnum):
    """How instances are given back."""

    CONSOLIDATION = "consolidation"
    IDLE_RELEASE = "idle-release"


STRATEGIES: Mapping[Strategy, Literal["CONSOLIDATION", "IDLE_RELEASE"]] = {
    Strategy.CONSOLIDATION: "CONSOLIDATION",
    Strategy.IDLE_RELEASE: "IDLE_RELEASE",
}


class CopyPlacement(StrEnum):
    """How copies are placed on instances."""

    BINPACK = "binpack"
    SPREAD = "spread"


PLACEMENTS: Mapping[CopyPlacement, Literal["BINPACK", "SPREAD"]] = {
    CopyPlacement.BINPACK: "BINPACK",
    CopyPlacement.SPREAD: "SPREAD",
}


@app.command(
    epilog=examples(
        "rightsizer components chat --scale-in consolidation --cooldown 30",
        "rightsizer components chat --placement binpack --component summariser",
    )
)
@order
def components(
    options: StackOptions,
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT", help="Name of an endpoint with inference components.")],
    scale_in: Annotated[
        Strategy | None,
        typer.Option(
            "--scale-in", help="Move copies together to free instances, or give back only those that are empty."
        ),
    ] = None,
    placement: Annotated[
        CopyPlacement | None, typer.Option("--placement", help="Pack copies on few instances, or spread them.")
    ] = None,
    step: Annotated[int | None, typer.Option("--step", help="Instances to give back at a time, 1 to 100.")] = None,
    cooldown: Annotated[
        int | None, typer.Option("--cooldown", help="Minutes between two such steps, 5 to 1440.")
    ] = None,
    variant: Annotated[str, typer.Option("--variant", help="Which variant, where there are several.")] = "",
    component: Annotated[
        list[str] | None,
        typer.Option("--component", help="Only this component; repeat it for several. Without it, all."),
    ] = None,
) -> None:
    """Propose how inference components use their instances.

    Either how instances are given back (--scale-in) or where copies are placed (--placement). It is only proposed:
    nothing happens until somebody approves it.
    """
    at = options.desk()
    if (scale_in is None) is (placement is None):
        raise typer.BadParameter(
            "give either --scale-in or --placement, not both and not neither: a change does one of them"
        )
    if scale_in is not None:
        wanted = ScaleIn(variant or endpoint, STRATEGIES[scale_in], step, cooldown)
        proposal = at.component_orders.scale_in(endpoint, variant, wanted, at.decider, bootstrap.now())
    if placement is not None:
        proposal = at.component_orders.placement(
            endpoint, PLACEMENTS[placement], component or (), at.decider, bootstrap.now()
        )
    _show_proposal(proposal, options.as_json)


def _show_proposal(proposal: Proposal, as_json: bool) -> None:
    option = proposal.recommendation.options[0]
    if as_json:
        row = {
            "id": proposal.id,
            "endpoint": proposal.ref.name,
            "state": proposal.state.value,
            "recommended": document.option_document(option),
        }
        print_json({"version": document.VERSION, "proposal": row})
        return
    unchecked = option.not_checked[0].capitalize()
    tables.say(f"Proposed: {proposal.ref.name} can {sentences.change(option)} ({proposal.id}). {unchecked}.")
    tables.say("Nothing happens until somebody approves it:")
    tables.say_commands([order_command("approve", proposal.id, proposal.ref.region)])


@app.command(epilog=examples("rightsizer approve chat-prod --region eu-west-1", "rightsizer approve p-1f0c2a"))
@order
def approve(options: StackOptions, proposal: ProposalId) -> None:
    """Approve a proposal; the deployed stack carries it out.

    Where a shadow test is offered, it is carried out without it: rightsizer test runs the test first. The stack checks
    everything again, and goes back by itself where an alarm or the requests say so.
    """
    at = options.desk_for_order(f"approving {proposal}")
    proposal = naming.named_proposal(proposal, f"approving {proposal}", at.proposals)
    _show_decision(at.decide(proposal, ProposalState.APPROVED), options, at.journal.switch)


@app.command(epilog=examples("rightsizer test p-1f0c2a  # rightsizer proposals --json: what it costs, lasts and tells"))
@order
def test(options: StackOptions, proposal: ProposalId) -> None:
    """Run the shadow test of a proposal first; then its change.

    One instance of the proposed type serves copies of the requests beside the fleet for some hours, and is removed.
    An evaluation judges by what was measured, within a day; where it proves well, the change follows by this approval.
    Each request is served twice meanwhile: do not run it where a request writes, bills or sends something.
    rightsizer approve makes the change without the test, unless the proposal is the test itself.
    """
    at = options.desk_for_order(f"running the test of {proposal}")
    proposal = naming.named_proposal(proposal, f"running the test of {proposal}", at.proposals)
    _show_decision(at.decide(proposal, ProposalState.APPROVED, test_first=True), options, at.journal.switch)


@app.command(epilog=examples('rightsizer reject p-1f0c2a --reason "needed for the launch in May"'))
@order
def reject(
    options: StackOptions,
    proposal: ProposalId,
    reason: Annotated[
        str, typer.Option("--reason", callback=_reason, help="Why not, for those who read it later.")
    ] = "",
) -> None:
    """Reject a proposal, or stop what has not begun.

    The same change is not proposed again for 90 days, unless the requests a day move by 25 %; the reason of a proposal
    that waited is kept. Between a shadow test and the change that follows it, this stops the change; of one that has
    begun, rightsizer rollback does.
    """
    at = options.desk_for_order(f"rejecting {proposal}")
    proposal = naming.named_proposal(proposal, f"rejecting {proposal}", at.proposals, naming.REJECTABLE)
    _show_decision(at.decide(proposal, ProposalState.REJECTED, reason), options)


@app.command(epilog=examples("rightsizer snooze p-1f0c2a", "rightsizer snooze chat-prod --days 90"))
@order
def snooze(options: StackOptions, proposal: ProposalId, days: SnoozeDays = USUAL_SNOOZE) -> None:
    """Put a proposal aside for 7, 30 or 90 days.

    It is proposed again after that, if the saving is still there.
    """
    at = options.desk_for_order(f"putting {proposal} aside")
    proposal = naming.named_proposal(proposal, f"putting {proposal} aside", at.proposals)
    _show_decision(at.decide(proposal, ProposalState.SNOOZED, snooze_days=days), options)


@app.command("apply", epilog=examples("rightsizer apply p-1f0c2a  # the same again shows how far the change is"))
@order
def apply_(options: StackOptions, proposal: ProposalId) -> None:
    """Approve a proposal if needed, and show its change so far.

    The deployed stack makes the change, not this terminal: it goes on when the terminal is closed.
    """
    at = options.desk()
    proposal = naming.named_proposal(proposal, f"applying {proposal}", at.proposals)
    found = at.store.proposal(proposal)
    if found is None:
        listing = terminal_command("proposals", options.session.region)
        raise InputError(f"applying {proposal}: there is no such proposal; see {listing}")
    if found.state is ProposalState.PENDING:
        require_approver(at, f"applying {proposal}")
        at.decide(proposal, ProposalState.APPROVED)
        found = at.store.proposal(proposal) or found
    elif found.state in (ProposalState.REJECTED, ProposalState.SNOOZED, ProposalState.EXPIRED, ProposalState.WITHDRAWN):
        raise ConflictError(f"applying {proposal}: it is {found.state.value}; nothing was recorded")
    change = at.journal.load(found.change_id) if found.change_id else None
    if options.as_json:
        print_json(
            {
                "version": document.VERSION,
                "proposal": document.proposal_document(found),
                "change": document.change_document(change),
            }
        )
        return
    tables.say(f"{found.id} is {found.state.value}. {found.outcome or sentences.standing_sentence(found)}")
    for line in journal_lines(change) if change else ():
        tables.output().print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def journal_lines(change: Change) -> Iterator[str]:
    """Lines of what a change did. That a step was intended is one while nothing is known of its end."""
    ended = {entry.step for entry in change.journal if entry.status in ("done", "failed")}
    for entry in change.journal:
        if entry.status == "intended" and entry.step in ended:
            continue
        said = entry.detail if entry.status == "noted" else f"{entry.step}  {entry.answer or entry.detail}".rstrip()
        yield f"{sentences.time_text(entry.at)}  {entry.status:8}  {one_line(said)}"


@app.command(
    epilog=examples(
        "rightsizer rollback chat-prod",
        "rightsizer rollback c-0a1b2c  # rightsizer proposals lists the ids of changes",
    )
)
@order
def rollback(
    options: StackOptions,
    change: Annotated[
        str,
        typer.Argument(
            metavar="CHANGE",
            help="Name of the endpoint, id of the change or its beginning, or id of a change of a group.",
        ),
    ],
) -> None:
    """Bring back what ran before a change.

    An endpoint gets its old configuration, a group its old policy; also after the change was proven. The deployed
    stack does it, within minutes.
    """
    at = options.desk_for_order(f"rolling back {change}")
    typed, change = change, naming.named_change(change, f"rolling back {change}", at.proposals)
    capacity_change = at.request_capacity_rollback(change)
    if capacity_change is not None:
        if options.as_json:
            row = {
                "id": capacity_change.id,
                "subject": capacity_change.subject,
                "state": capacity_change.state.value,
                "outcome": capacity_change.outcome,
            }
            print_json({"version": document.VERSION, "errand": row})
            return
        tables.say(f"Recorded: {capacity_change.subject} gets its old policy back within minutes.")
        return
    known = at.journal.load(change)
    if known is None:
        meant = naming.did_you_mean(typed, (one.ref.name for one in at.proposals() if one.change_id))
        listing = terminal_command("proposals", options.session.region)
        raise InputError(
            f"rolling back {typed}: there is no change {change}{meant}; {listing} lists the ids of changes"
        )
    at.require_decider(known.proposal_id)
    asked = at.orders.request_rollback(change, at.decider, bootstrap.now())
    if options.as_json:
        print_json({"version": document.VERSION, "change": document.change_document(asked)})
        return
    if asked.state in STANDING and not asked.asked_back_by:
        tables.say(f"Recorded: {asked.ref.name} is stopped by its office hours, and goes back once it serves again.")
        return
    if asked.before is None or not asked.asked_back_by:  # not begun, or a test that passed and stays as it ended
        tables.say(f"Recorded: what was approved for {asked.ref.name} is stopped before it begins.")
        return
    tables.say(f"Recorded: {asked.ref.name} goes back to {asked.before.config_name} within minutes.")


def _show_decision(found: dict[str, Any], options: StackOptions, switch: Callable[[], Switch] = Switch) -> None:
    """Say what was recorded, and of an approval when it begins."""
    decision, region = found["decision"], options.session.region
    if options.as_json:
        row = {"id": found["id"], "state": found["state"], "by": decision["by"], "at": decision["at"]}
        row |= {"test_first": decision.get("test_first", False)}
        row |= {"stopped_by": found["asked_back_by"]} if found.get("asked_back_by") else {}
        print_json({"version": document.VERSION, "proposal": row})
        return
    if found.get("asked_back_by"):
        tables.say(
            f"Recorded: {found['id']} was approved by {decider_name(decision['by'])} and is stopped before it begins."
        )
        return
    tables.say(f"Recorded: {found['id']} is {found['state']} by {decider_name(decision['by'])}.")
    if found["state"] == ProposalState.APPROVED:
        try:
            frozen = switch()
        except RightsizerError as error:  # the approval is recorded, and `apply` asks again
            tables.say(f"Whether changes are frozen is not known: {one_line(str(error))}")
            return
        if frozen.frozen:
            by = decider_name(frozen.by)
            tables.say(f"Changes are frozen by {by}: it begins once that is lifted, by:")
            tables.say_commands([terminal_command("freeze --off", region)])
            return
        what = "the test, or waits for the busiest hour" if decision.get("test_first") else "it now"
        tables.say(f"The stack starts {what}. To see how far it is:")
        tables.say_commands([order_command("apply", found["id"], region)])
