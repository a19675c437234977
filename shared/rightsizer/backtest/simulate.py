"""One endpoint, morning by morning, as if automatic mode had been switched on: judged, changed, served, judged again.

Each morning has the day's allowance of changes that the operator's limits leave. Days after a change are served by the
replay (`backtest/later_days.py`). Where only the count, the bounds, the schedule or the routing changed, their late
requests reach the next judgement, and the engine goes on. What another type publishes nobody knows: while one serves,
nothing is judged, and the days only tell whether it would have been left again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from rightsizer.backtest.later_days import After, Moved, after, as_served, hindsight
from rightsizer.backtest.standing_change import Standing, guarded, left, moved_to, past_of, promised_late
from rightsizer.changes.daily_budget import budget_refusal, budget_share
from rightsizer.changes.window import opens
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.backtest import Backtest, Missed, Rehearsed, Verdict
from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import Goal, Option, OptionKind
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.domain.usage import DayDigest, UsageDigest
from rightsizer.recommender.context import Given, situated
from rightsizer.recommender.recommend import judge_digests

FLEETS = frozenset(
    {
        OptionKind.INSTANCE_TYPE,
        OptionKind.INSTANCE_COUNT,
        OptionKind.TYPE_AND_COUNT,
        OptionKind.AUTOSCALING,
        OptionKind.SCHEDULE,
        OptionKind.ROUTING,
        OptionKind.FEWER_GPUS,
    }
)
"""Kinds that the replay can serve."""
TRIED = 4
"""Options that are served in hindsight to find a better one, the largest saving first."""
DAY = timedelta(days=1)
BEHIND = Reason(Code.CHEAPER_OPTION, "another option was applied that morning")
WAITS, WATCHED = "waits", "watched"


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one day of the account may start, shared by its endpoints in the order in which they are evaluated."""

    limits: ChangeLimits
    started: dict[date, tuple[int, Decimal]] = field(default_factory=dict)

    def take(self, option: Option, at: datetime) -> Reason | None:
        """Count the change, or say why it waits. What restores an earlier fleet is never held back, and counts."""
        number, usd = self.started.get(at.date(), (0, Decimal(0)))
        share = budget_share(f"{at:%Y-%m-%d}", option.switch_usd, self.limits, restores=option.restores)
        if (spent := budget_refusal(share, self.limits, number, usd)) is not None:
            return spent
        self.started[at.date()] = number + 1, usd + option.switch_usd
        return None


@dataclass(frozen=True, slots=True)
class Stage:
    """What all endpoints of a back-test share."""

    given: Given
    """Prices, catalogue, quotas and policy; its history is not read."""
    dimensions: Sequence[Dimension]
    allowance: Allowance
    first: date
    """The first morning."""
    today: date
    """The last one; its day is not over."""


@dataclass(frozen=True, slots=True)
class _Hoped:
    """The first judgement with evidence enough to be proposed and a fleet that saves enough."""

    at: datetime
    found: Recommendation
    why: Reason
    """Why it was not applied then."""
    goal: Goal | None


@dataclass(slots=True)
class Rehearsal:
    """The state of one endpoint between two mornings. `runs` is what would run, opted in; `real` what ran."""

    real: Endpoint
    days: Sequence[DayDigest]
    """Whole days as they were, oldest first; none of `stage.today` or later."""
    stage: Stage
    runs: Endpoint
    known: list[DayDigest] = field(default_factory=list)
    """The days as they would have been published, oldest first."""
    past: list[PastChange] = field(default_factory=list)
    changes: list[Rehearsed] = field(default_factory=list)
    standing: Standing | None = None
    pending: Standing | None = None
    """Started later in the day than its midnight: from its first whole day on it stands, and until then what stood."""
    mornings: Counter[str] = field(default_factory=Counter)
    last: Recommendation | None = None
    hoped: _Hoped | None = None

    def run(self) -> Backtest:
        """Every morning of the window."""
        waiting = list(self.days)
        morning = self.stage.first
        while morning <= self.stage.today:
            while waiting and waiting[0].day < morning:
                self._published(waiting.pop(0))
            self._take_over()
            if self.known:
                self._morning(datetime.combine(morning, time(), UTC))
            morning += DAY
        self._take_over()
        self._close(None, None)
        changes = tuple(sorted(self.changes, key=lambda change: change.decided_at))
        found = Backtest(self.real.ref.name, changes, self.last, dict(self.mornings))
        return replace(found, missed=self._missed(found.saved_usd))

    def _published(self, digest: DayDigest) -> None:
        """A day has ended: on what really ran, or on the fleet of the change that stands."""
        at = self.standing
        if at is None:
            self.known.append(digest)
            return
        at.days.append(digest)
        if isinstance(at.after, Reason):
            self.known.append(digest)
            return
        day = at.after.served(digest)
        at.served.append(day)
        back = guarded(day, at) or left(at)
        if at.other_type:
            self.known.append(replace(digest, latency=(), latency_total_s=0.0))
        else:
            self.known.append(as_served(day, at.after.at.goal.p95_s))
        if back is not None:
            self._take_back(back, digest.day + DAY)

    def _take_over(self) -> None:
        """What was started stands from now on; what stood before has served until today."""
        at = self.pending
        if at is None:
            return
        at.previous, self.pending = self.standing, None
        self._close(at.first_day, None)
        self.past.append(at.past)
        self.standing, self.runs = at, at.moved.then

    def _take_back(self, why: Reason, morning: date) -> None:
        """The fleet before the change serves again, as it did."""
        at = self.standing
        assert at is not None
        if self.pending is not None:
            # It was decided on a fleet that is not there any more: the preflight of a change refuses that.
            self.pending = None
            self.mornings = self.mornings - Counter((Gate.APPLY.value,)) + Counter((WAITS,))
        if morning - DAY == at.first_day:
            failure = "memory" if why.code is Code.MEMORY_TOO_SMALL else "alarm"
            self.past[-1] = replace(self.past[-1], ended=PastEnd.ROLLED_BACK, failure=failure)
        else:
            then = datetime.combine(morning, time(), UTC)
            self.past.append(past_of(at.moved.then, at.before, then))
        self.runs = at.before
        self._close(morning, why)
        if at.previous is not None:
            again = at.previous
            self.changes = [change for change in self.changes if change.decided_at != again.started]
            self.standing = again

    def _morning(self, now: datetime) -> None:
        at = self.standing
        if at is not None and at.other_type:
            self.mornings[WATCHED] += 1
            return
        given = replace(self.stage.given, history=History(endpoint=tuple(self.past)), now=now)
        usage = UsageDigest(self.runs.ref.name, self.runs.variants[0].name, tuple(self.known))
        found = judge_digests(self.runs, usage, given, self.stage.dimensions)
        self.last, gate = found, found.gate.value
        waits = None
        if found.gate is Gate.APPLY and found.chosen is not None and found.chosen.kind in FLEETS:
            waits = self._start(found, found.chosen, given)
            gate = WAITS if waits is not None else gate
        self.mornings[gate] += 1
        if self.hoped is None and _worth(found, given.policy):
            seen = situated(self.runs, _recent(self.known, given), given)
            why = BEHIND if found.gate is Gate.APPLY and waits is None else waits or found.gate_reason
            self.hoped = _Hoped(now, found, why, seen.goal if seen else None)

    def _start(self, found: Recommendation, option: Option, given: Given) -> Reason | None:
        """Begin the change, or say what it waits for."""
        limits, now = self.stage.allowance.limits, given.now
        start = now if option.restores else opens(limits.window, now)
        if start.date() != now.date():
            return Reason(Code.OUTSIDE_WINDOW, f"the window of Limits opens on {start:%Y-%m-%d %H:%M} UTC")
        rested = self.past[-1].at + limits.cooldown if self.past else start
        if start < rested and not option.restores:
            return Reason(Code.COOLDOWN, f"Limits lets it rest until {rested:%Y-%m-%d %H:%M} UTC")
        waits = self.stage.allowance.take(option, start)
        if waits is not None:
            return waits
        first_day = now.date() if start == now else now.date() + DAY
        at = situated(self.runs, _recent(self.known, given), given)
        then = moved_to(self.runs, option)
        moved = Moved(self.real, then, option, at.goal if at else None)
        days = [d for d in self.days if d.day >= first_day]
        serving = after(moved, days, given)
        late = promised_late(at, option, serving)
        past = past_of(self.runs, then, start, option, at.demand.load.peak_busy_gpus if at else None)
        self.pending = Standing(start, first_day, found, option, moved, self.runs, past, serving, late)
        if start == now:
            self._take_over()
        return None

    def _close(self, until: date | None, back: Reason | None) -> None:
        at = self.standing
        if at is None:
            return
        told = hindsight(at.moved, at.after, at.served, at.days, self.stage.given)
        self.changes.append(
            Rehearsed(at.started, at.first_day, until, at.recommendation, at.option, at.promised_late, back, told)
        )
        self.standing = None

    def _missed(self, saved: Decimal) -> Missed | None:
        """The option of the first morning with one that would have held, where it saves more than what was done."""
        if self.hoped is None:
            return None
        hoped, given = self.hoped, self.stage.given
        days = [d for d in self.days if d.day >= hoped.at.date()]
        for option in _worth(hoped.found, given.policy)[:TRIED]:
            moved = Moved(self.real, moved_to(self.real, option), option, hoped.goal)
            serving = after(moved, days, given)
            served = [serving.served(digest) for digest in days] if isinstance(serving, After) else []
            told = hindsight(moved, serving, served, days, given)
            if told.verdict is Verdict.HELD and not served[0].rings:
                regret = told.saved_usd - saved
                return Missed(option, hoped.at, told, hoped.why, regret) if regret >= 1 else None
        return None


def _worth(found: Recommendation, policy: Policy) -> list[Option]:
    """The fleets that the gate would not find too small a saving, or too little known of; the largest saving first."""
    least = max(policy.minimum_saving_usd, (found.usd_per_month or 0) * Decimal(str(policy.minimum_saving_share)))
    known = [o for o in found.options if o.kind in FLEETS and o.confidence >= policy.confidence_propose]
    return sorted((o for o in known if o.saving_usd_per_month >= least), key=lambda o: -o.saving_usd_per_month)


def _recent(days: Sequence[DayDigest], given: Given) -> list[DayDigest]:
    first = (given.now - timedelta(days=given.policy.lookback_days)).date()
    return [d for d in days if d.day >= first]
