"""The picture of a proposal: GPU use, GPU memory and p95 over two weeks, with the limits of what is proposed."""

from datetime import timedelta

from rightsizer.domain.option import OptionKind, fleet
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.week_signals import WeekSignals
from rightsizer.render import sentences
from rightsizer.render.pictures import Panel, TwoWeeks, two_weeks_png


def draw(found: Recommendation, seen: WeekSignals) -> bytes:
    """The picture as PNG. InputError names the extra to install where matplotlib is missing."""
    return two_weeks_png(two_weeks(found, seen))


def two_weeks(found: Recommendation, seen: WeekSignals) -> TwoWeeks:
    """The panels of the picture, with what their limits are called."""
    option = found.chosen_option
    moves = option is not None and option.target.instance_type != found.instance_type
    end = seen.start + timedelta(hours=len(seen.gpu_percent))
    days = f"{seen.start.day} {seen.start:%b} to {end.day} {end:%b}, UTC · hatched: no data"
    is_moved = option is not None and option.kind is not OptionKind.DELETE
    title = f"{found.ref.name} on {fleet(option.target)}" if option is not None and is_moved else found.ref.name
    objective = found.replay.objective_s if found.replay is not None else None
    named = f"objective {sentences.seconds(objective)}" if objective is not None else ""
    memory = seen.then_gib if moves else None
    return TwoWeeks(
        title[:44],
        days,
        seen.start,
        (
            Panel("GPU use", "%", seen.gpu_percent, seen.then_percent, "then", 100.0, "full"),
            Panel("GPU memory", "GiB", seen.gpu_gib, (), "", memory, f"{memory:.0f} GiB then" if memory else ""),
            Panel("p95 latency", "s", seen.p95_s, (), "", objective, named, "no requests"),
        ),
    )
