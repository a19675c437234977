"""The message of an endpoint that sleeps by its office hours, as text and as Slack blocks."""

from rightsizer.domain.hours_record import HoursState
from rightsizer.domain.message import WAKE_MINUTES, SleepNote, wake_command
from rightsizer.domain.plan import terminal_command
from rightsizer.domain.reason import count, time_text
from rightsizer.render.blocks import FIELD, SECTION, Block, context, escape, plain, section


def line(note: SleepNote) -> str:
    """Where the endpoint stands, in one sentence without its mark: ``chat sleeps until 2026-11-03 07:00 UTC``."""
    hour = time_text(note.serves_at) if note.serves_at is not None else "somebody wakes it"
    match note.state:
        case HoursState.STOPPED | HoursState.STOPPING:
            return f"{note.endpoint} sleeps by its office hours until {hour}"
        case HoursState.STARTING:
            return f"{note.endpoint} is being started; it should serve by {hour}"
        case HoursState.RUNNING:
            return f"{note.endpoint} serves again since {time_text(note.at)}"
        case HoursState.HANDED_OVER:
            return f"{note.endpoint} is handed over: {note.why}"


def blocks(note: SleepNote) -> list[Block]:
    """The message; with the choice to wake it while it sleeps."""
    made = [section(f"*{escape(line(note), SECTION - 10)}*")]
    if note.can_wake:
        menu = wake_menu(note)
        made.append({"type": "actions", "block_id": f"wake_{note.endpoint}"[:255], "elements": [menu]})
    parts = [escape(f"rightsizer:hours {note.hours}", FIELD)]
    if note.can_wake:
        parts.append(f"Calls fail meanwhile. At a terminal: `{wake_command(note.endpoint, note.region, stay='2h')}`")
    if note.state is HoursState.HANDED_OVER:
        listing = terminal_command("doctor", note.region)
        parts.append(f"The commands that bring it back are in the topic's message, and in `{listing}`")
    return [*made, context(parts)]


def wake_menu(note: SleepNote) -> Block:
    """The menu of stays; its value is the endpoint, no revision, and the minutes."""
    stays = [minutes for minutes in WAKE_MINUTES if minutes <= note.longest_minutes] or [note.longest_minutes]
    return {
        "type": "static_select",
        "action_id": "rightsizer_wake",
        "placeholder": plain("Wake"),
        "options": [
            {"text": plain(f"Wake for {stay_text(minutes)}"), "value": f"{note.endpoint}~0~{minutes}"}
            for minutes in stays
        ],
        "confirm": {
            "title": plain("Wake this endpoint?"),
            "text": plain("It is created again and billed from then on. At the end of the stay it is stopped."),
            "confirm": plain("Wake"),
            "deny": plain("Cancel"),
        },
    }


def stay_text(minutes: int) -> str:
    """``2 hours``, ``1 hour``, ``90 minutes``."""
    hours, rest = divmod(minutes, 60)
    return count(minutes, "minute") if rest else count(hours, "hour")
