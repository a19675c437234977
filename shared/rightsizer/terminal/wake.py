"""`rightsizer wake`: an endpoint that went home by its office hours serves again for some hours.

All that happens here is a conditional write on the endpoint's record; the stack's function `hours` creates it.
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

import typer

from rightsizer import bootstrap
from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.office_hours import HoursLimits
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.reason import one_line
from rightsizer.errors import ConflictError
from rightsizer.flows.wake import WakeAnswer, wake_text
from rightsizer.render import sentences
from rightsizer.terminal import document, tables
from rightsizer.terminal.app import Exit, app, examples, print_json
from rightsizer.terminal.options import StackOptions, order, require_approver
from rightsizer.terminal.wake_page import answer_document

STAY = re.compile(r"(?:(\d{1,3})h)?(?:(\d{1,4})m)?", re.ASCII)
SHORTEST = timedelta(minutes=15)
"""A shorter stay ends before anybody has used it."""


def parse_stay(text: str) -> timedelta:
    """The length of a stay, such as ``2h``, ``90m`` or ``1h30m``; BadParameter says what it should look like."""
    found = STAY.fullmatch(text)
    hours, minutes = found.groups() if found else (None, None)
    stay = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    if stay < SHORTEST:
        raise typer.BadParameter(f"{text!r} is no time of 15 minutes or more; it should look like 2h, 90m or 1h30m")
    return stay


@app.command(
    epilog=examples(
        "rightsizer wake chat-prod             # it serves for two hours, then goes home again",
        "rightsizer wake chat-prod --for 4h30m",
        "rightsizer wake --all --for 1h        # whatever is asleep, before the stack is removed",
    )
)
@order
def wake(
    options: StackOptions,
    endpoint: Annotated[
        str, typer.Argument(metavar="ENDPOINT", help="Name of the endpoint, upper and lower case as it was; or --all.")
    ] = "",
    everything: Annotated[bool, typer.Option("--all", help="Every endpoint that is asleep.")] = False,
    stay: Annotated[
        timedelta,
        typer.Option(
            "--for",
            parser=parse_stay,
            metavar="TIME",
            help="How long it serves, such as 2h, 90m or 1h30m; counted from when it should be there.",
        ),
    ] = "2h",  # type: ignore[assignment]
    for_good: Annotated[
        bool, typer.Option("--for-good", help="Take it out of its office hours: it is not stopped again.")
    ] = False,
) -> None:
    """Wake endpoints that office hours stopped.

    The order is only recorded here: the deployed stack creates the endpoint within five minutes, and a start takes as
    long as it always does. The answer says when it should serve, until when, and how many wakes a day are left (policy:
    wakes_per_day, longest_wake_hours). Afterwards it is stopped again, unless its hours began; with --for-good it is
    not. A later order with a longer time extends the stay. Needs MayStop=tagged.
    """
    if bool(endpoint) is everything:
        raise typer.BadParameter("give either the name of an endpoint or --all")
    if for_good and everything:
        raise typer.BadParameter("--for-good takes the name of one endpoint")
    at, now = options.desk_for_order(f"waking {endpoint or 'all'}"), bootstrap.now()
    orders, unread = at.wake_orders(), list[UnreadRow]()
    if not everything:
        at.require_waker(endpoint)
    if for_good:
        answers: tuple[WakeAnswer, ...] = (orders.let_go(endpoint, at.decider, now),)
        if answers[0].is_recorded:
            _tell_let_go(answers[0].record, options.as_json)
            return
    elif everything:
        require_approver(at, "waking all", of_account=True)
        answers = orders.wake_all(stay, at.decider, now, unread)
    else:
        answers = (orders.wake(endpoint, stay, at.decider, now),)
    if options.as_json:
        rows = [answer_document(answer, orders.limits) for answer in answers]
        print_json({"version": document.VERSION, "wakes": rows, "unreadable": document.unread_documents(unread)})
    else:
        _tell(answers, orders.limits, unread, everything)
    _end(answers, unread, everything)


def _end(answers: Sequence[WakeAnswer], unread: Sequence[UnreadRow], everything: bool) -> None:
    """Fail where an order was refused or a record could not be read."""
    refused = [answer for answer in answers if answer.times is None]
    if refused and not everything:
        why = refused[0].reason.sentence if refused[0].reason else ""
        raise ConflictError(f"waking {refused[0].record.ref.name}: nothing was recorded: {why}")
    if refused or unread:
        raise typer.Exit(Exit.FAILED)


def _tell_let_go(record: HoursRecord, as_json: bool) -> None:
    name = record.ref.name
    if as_json:
        print_json({"version": document.VERSION, "let_go": {"endpoint": name, "state": record.state.value}})
    else:
        tables.say(f"Recorded: {name} runs from now on and is not stopped any more. People are told when it serves.")


def _tell(answers: Sequence[WakeAnswer], limits: HoursLimits, unread: Sequence[UnreadRow], everything: bool) -> None:
    for answer in answers:
        if answer.times is not None or everything or answer.by_hand:
            tables.say(one_line(wake_text(answer, limits)))
        tables.say_commands(answer.by_hand)
    if not answers and not unread:
        tables.say("No endpoint is asleep.")
    for row in unread:
        tables.say(one_line(sentences.unread_row(row)))
