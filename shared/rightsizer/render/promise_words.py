"""What was promised against what it turned out to be, in words: slowdowns and stated risks, and what is not known."""

from rightsizer.domain.quantile import CONFORMAL
from rightsizer.domain.track_record import RiskLevel, SpeedSummary, TrackRecord
from rightsizer.render import sentences

ENDED = {
    "proven": "proven",
    "applied": "applied, not proven",
    "rolled-back": "rolled back",
    "update-failed": "update failed",
    "handed-over": "handed over",
    "tested": "shadow test",
}
UNREAD = "Not part of this report: it was made before this was kept."


def factor(value: float) -> str:
    """How many times: ``1.40 ×``, ``0.05 ×``."""
    return f"{value:.2f} ×" if value >= 0.1 else f"{value:.2g} ×"


def slowdown(record: TrackRecord) -> str:
    """How the slowdowns that were measured compare with the promised ones, in one or two sentences."""
    if not record.ended:
        return f"No change and no shadow test ended {_when(record)}, so there is no speed to compare."
    ended = f"Of {sentences.count(record.ended, 'change or shadow test', 'changes and shadow tests')} that ended"
    ended += f" {_when(record)}"
    measured, every = len(record.outcomes), record.overall
    if not measured:
        return (
            f"{ended}, none shows how fast the new type is: that takes another type, one variant and enough requests."
        )
    if every.bias is None:
        return f"{ended}, {measured} showed how fast the new type is, and none of them was promised a speed."
    pace = f"It ran {_pace(every.bias)}" if every.n == 1 else f"They ran {_pace(every.bias)} on average"
    said = f"{ended}, {every.n} showed how fast the new type is. {pace}; {bound(every)}."
    return f"{said} One outcome tells nothing about the next." if every.spread is None else said


def _pace(ratio: float) -> str:
    """Measured slowdowns over promised ones, as a pace: ``11 % slower than promised``."""
    slower = round(100 * (ratio - 1))
    if not slower:
        return "as fast as promised"
    return f"{abs(slower)} % {'slower' if slower > 0 else 'faster'} than promised"


def bound(group: SpeedSummary) -> str:
    """How many outcomes were slower than the bound that was promised."""
    if not group.bounded:
        return "no limit was promised"
    number = group.beyond or "none"
    was = "was" if group.beyond <= 1 else "were"
    told = f"{number} of {group.bounded} {was} slower than the limit that was promised"
    if group.bounded >= CONFORMAL:
        return told
    return f"{told} (it takes {CONFORMAL} outcomes to see whether 97.5 % stay within it)"


def risk(record: TrackRecord) -> str:
    """How the stated performance risk compares with what happened, in a few sentences."""
    if not record.changes:
        return f"No change ended {_when(record)}."
    ended = f"{sentences.count(record.changes, 'change')} ended {_when(record)}"
    if record.brier is None or record.brier_without is None:
        of = "and it does not tell" if record.changes == 1 else "and none tells"
        why = "a change shows that once it is proven, or is rolled back for how it served"
        return f"{ended}, {of} whether a stated risk was right: {why}."
    stood, back = record.told - record.fell_short, record.fell_short
    it = "it" if back == 1 else "they"
    parts = [f"{stood} proven"] * bool(stood) + [f"{back} rolled back for how {it} served"] * bool(back)
    tell = "tells" if record.told == 1 else "tell"
    said = f"{ended}; {record.told} {tell} whether the stated risk was right: {', '.join(parts)}."
    if all(level.missing for level in record.levels):
        least = min(level.missing for level in record.levels)
        return f"{said} That is too few to say anything of the stated risk: at least {least} more are needed."
    score = f"Brier score {record.brier:.3f} (0 is best; calling each harmless: {record.brier_without:.3f})."
    return f"{said} {score}"


def _when(record: TrackRecord) -> str:
    return f"between {sentences.day(record.since)} and {sentences.day(record.until)}"


def stated(level: RiskLevel) -> str:
    """The chance of harm that a risk states: ``0.5 to 2 %``."""
    return f"{100 * level.chance_from:g} to {100 * level.chance:g} %"


def seen(level: RiskLevel) -> str:
    """The share that went back, with the range in which the chance lies."""
    share = f"{level.fell_short} of {level.n} ({sentences.percent(level.share)})"
    return f"{share}; at 95 % confidence {sentences.percent(level.low)} to {sentences.percent(level.high)}"


def judged(level: RiskLevel) -> str:
    """Whether what was seen contradicts what was stated; where it is too little to tell, how much is missing."""
    if level.missing:
        return f"too few to tell: {level.missing} more are needed"
    if level.low > level.chance:
        return "more often than stated"
    if level.high < level.chance_from:
        return "less often than stated"
    if level.chance_from <= level.low and level.high <= level.chance:
        return "as stated"
    return f"not contradicted by {sentences.count(level.n, 'change')}"
