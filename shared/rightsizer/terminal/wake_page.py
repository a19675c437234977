"""What a terminal says of endpoints that are asleep by their office hours, and of orders to wake them."""

from datetime import datetime
from typing import Any

from rightsizer.changes.hours import demand_at
from rightsizer.changes.hours.steps import commands_by_hand
from rightsizer.domain.hours_record import HoursRecord
from rightsizer.domain.message import wake_command
from rightsizer.domain.office_hours import HoursLimits
from rightsizer.flows.wake import WakeAnswer
from rightsizer.render import sentences


def answer_document(answer: WakeAnswer, limits: HoursLimits) -> dict[str, Any]:
    """An order and what came of it, with the keys of docs/cli-json.md."""
    times = answer.times
    return {
        "endpoint": answer.record.ref.name,
        "recorded": answer.is_recorded,
        "state": answer.record.state.value,
        "serves_by": times.serves_by.isoformat() if times else None,
        "until": max(w.until for w in answer.record.wakes).isoformat() if times else None,
        "starts_measured": len(answer.record.starts),
        "wakes_left": answer.wakes_left,
        "wakes_per_day": limits.wakes_a_day,
        "reason": answer.reason.sentence if answer.reason else "",
        "remaining": list(answer.by_hand),
    }


def asleep_document(
    record: HoursRecord, now: datetime, limits: HoursLimits, with_commands: bool, stack: str
) -> dict[str, Any]:
    """An endpoint that is asleep or on its way, with the commands by hand where they are wanted."""
    serves_at = demand_at(record, now, limits.holidays).serves_at
    return {
        "endpoint": record.ref.name,
        "state": record.state.value,
        "since": record.since.isoformat() if record.since else None,
        "serves_at": serves_at.isoformat() if serves_at else None,
        "wake": wake_command(record.ref.name, record.ref.region, stack),
        "remaining": list(commands_by_hand(record, now)) if with_commands else [],
    }


def asleep_line(record: HoursRecord, now: datetime, limits: HoursLimits) -> str:
    """An endpoint that is asleep in one line: since when, and when it has to serve again."""
    serves_at = demand_at(record, now, limits.holidays).serves_at
    since = f" since {sentences.time_text(record.since)}" if record.since else ""
    again = sentences.time_text(serves_at) if serves_at else "at no known time"
    return f"{record.ref.name}  {record.state.value}{since}; has to serve again: {again}"
