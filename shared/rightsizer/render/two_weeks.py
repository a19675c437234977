"""The picture of a proposal: GPU use, GPU memory and p95 over two weeks, with the limits of what is proposed."""

from datetime import timedelta

from rightsizer.domain.option import OptionKind, fleet
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.week_signals import WeekSignals
from rightsizer.render import sentences
from rightsizer.render.pictures import Panel, TwoWeeks, two_weeks_png


def draw(recommendation: Recommendation, week_signals: WeekSignals) -> bytes:
    """The picture as PNG. InputError names the extra to install where matplotlib is missing."""
    return two_weeks_png(two_weeks(recommendation, week_signals))


def two_weeks(recommendation: Recommendation, week_signals: WeekSignals) -> TwoWeeks:
    """The panels of the picture, with what their limits are called."""
    option = recommendation.chosen_option
    moves = option is not None and option.target.instance_type != recommendation.instance_type
    end = week_signals.start + timedelta(hours=len(week_signals.gpu_percent))
    days = f"{week_signals.start.day} {week_signals.start:%b} to {end.day} {end:%b}, UTC · hatched: no data"
    is_moved = option is not None and option.kind is not OptionKind.DELETE
    title = (
        f"{recommendation.ref.name} on {fleet(option.target)}"
        if option is not None and is_moved
        else recommendation.ref.name
    )
    objective = recommendation.replay.objective_s if recommendation.replay is not None else None
    named = f"objective {sentences.seconds(objective)}" if objective is not None else ""
    memory = week_signals.then_gib if moves else None
    return TwoWeeks(
        title[:44],
        days,
        week_signals.start,
        (
            Panel("GPU use", "%", week_signals.gpu_percent, week_signals.then_percent, "then", 100.0, "full"),
            Panel(
                "GPU memory", "GiB", week_signals.gpu_gib, (), "", memory, f"{memory:.0f} GiB then" if memory else ""
            ),
            Panel("p95 latency", "s", week_signals.p95_s, (), "", objective, named, "no requests"),
        ),
    )
