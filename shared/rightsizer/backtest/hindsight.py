"""Whether a fleet that never ran would have held, by days that nobody had seen when it was chosen; and how often."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from rightsizer.domain.backtest import Backtest, Calibration, Rehearsed, Verdict
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import HOURS_PER_MONTH
from rightsizer.domain.reason import Code, Reason

_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Told:
    """Requests of the days after, and how many of them missed the objective."""

    requests: int
    late: int
    """At the bound of the slowdown."""
    likely: int
    """At its middle."""
    before: int
    """On the fleet that really ran."""
    moves: bool
    """Whether the slowdown has a middle and a bound: the instance type is another one."""
    declared: bool
    """Whether the owner declared the objective."""
    days: int
    """On so many days."""
    outgrown: tuple[float, float] | None = None
    """GiB in use and GiB of the smaller card, where the one is more than the other."""
    fits: float = 1.0
    """Chance that the model starts and fits where it never ran, 0..1."""


def verdict_of(told: Told | None, unknown: Reason | None, policy: Policy) -> tuple[Verdict, Reason]:
    """The verdict with its numbers; `unknown` says why nothing is told.

    As many more requests may be late as a choice may cause in its own replay (`late_allowed`). At the bound of the
    slowdown nothing less held; beyond that at its middle, it did not.
    """
    if told is None or told.requests < policy.requests_needed:
        few = f"{told.requests if told else 0} requests came, {policy.requests_needed} are needed to tell"
        return Verdict.UNKNOWN, unknown or Reason(Code.CANNOT_TELL, few)
    if told.outgrown is not None:
        peak, usable = told.outgrown
        sentence = f"{peak:.1f} GiB per GPU were in use on the days after, its card offers {usable:.1f} GiB"
        return Verdict.NO_MEMORY, Reason(Code.MEMORY_TOO_SMALL, sentence)
    share = policy.late_allowed(
        policy.excess_share, told.declared, told.before / told.requests, told.requests, told.days
    )
    most = told.before + share * told.requests
    may = f"{told.before:,} on the fleet that ran; {100 * share:.2g} % more may be"
    if told.late <= most and told.fits < 1:
        sentence = (
            f"only a start tells whether the model fits ({100 * told.fits:.0f} % likely); {told.late:,} late, {may}"
        )
        return Verdict.UNKNOWN, Reason(Code.CANNOT_TELL, sentence)
    if told.late <= most:
        where = " even at the bound of its slowdown" if told.moves else ""
        return Verdict.HELD, Reason(Code.WOULD_HOLD, f"{_of(told.late, told)} late{where}, {may}")
    if told.likely > most:
        where = " at the likely slowdown" if told.moves else ""
        return Verdict.LATE, Reason(Code.WOULD_BE_LATE, f"{_of(told.likely, told)} late{where}, {may}")
    sentence = (
        f"it depends on how fast the type is: {_of(told.likely, told)} late at the likely slowdown,"
        f" {told.late:,} at its bound, {may}"
    )
    return Verdict.UNKNOWN, Reason(Code.CANNOT_TELL, sentence)


def _of(late: int, told: Told) -> str:
    return f"{late:,} of {told.requests:,} requests ({100 * late / told.requests:.2f} %)"


def calibration_of(tried: Sequence[Backtest], policy: Policy) -> Calibration:
    """Promises against what the days after show. What restores an earlier fleet promises nothing, and is left out."""
    changes = [c for each in tried for c in each.changes if not c.option.restores]
    told = [c for c in changes if c.after.verdict is not Verdict.UNKNOWN]
    harm = [0.0 if c.after.verdict is Verdict.HELD and c.taken_back is None else 1.0 for c in told]
    stated = [policy.stated_chance(c.option.risk)[1] for c in told]
    known = [(c.promised_late, c.after.late, c.after.requests) for c in changes]
    late = [(promise, seen, n) for promise, seen, n in known if promise is not None and seen is not None]
    calls = sum(n for _, _, n in late)
    replayed = [c for c in changes if c.after.replayed]
    return Calibration(
        changes=len(changes),
        told=len(told),
        held=harm.count(0.0),
        replayed=len(replayed),
        brier=_mean([(p - h) ** 2 for p, h in zip(stated, harm, strict=True)]),
        brier_without=_mean(harm),
        promised_late=sum(promise * n for promise, _, n in late) / calls if calls else None,
        seen_late=sum(seen for _, seen, _ in late) / calls if calls else None,
        promised_usd=sum((_promised(c) for c in replayed), Decimal(0)).quantize(_CENT),
        saved_usd=sum((c.after.saved_usd for c in replayed), Decimal(0)).quantize(_CENT),
        regret_usd=sum((b.missed.regret_usd for b in tried if b.missed), Decimal(0)).quantize(_CENT),
    )


def _promised(change: Rehearsed) -> Decimal:
    """US dollars that the promised saving comes to over the days that the change stood, less the switch."""
    return change.option.saving_usd_per_month * 24 * change.after.days / HOURS_PER_MONTH - change.option.switch_usd


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
