"""One endpoint, morning by morning, in automatic mode: evaluated, changed, served, evaluated again.

Each morning has the day's allowance of changes that the operator's limits leave. Days after a change are served by the
replay (`backtest/later_days.py`). Where only the count, the bounds, the schedule or the routing changed, their late
requests reach the next recommendation, and the simulation goes on. The metrics of another type are not known: while
one serves, nothing is recommended, and the days only tell whether the program would have gone back to the old type.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from rightsizer.backtest.later_days import FleetMove, LaterFleet, hindsight, later_fleet, usage_as_served
from rightsizer.backtest.standing_change import (
    ActiveChange,
    endpoint_after,
    guard_reason,
    past_change,
    promised_late_share,
    return_reason,
)
from rightsizer.changes.start_limits import budget_refusal, budget_share, next_open
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.backtest import Backtest, BacktestChange, HindsightVerdict, MissedOption
from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import LatencyObjective, Option
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.domain.usage import DailyUsage, VariantUsage
from rightsizer.recommender.context import AccountInputs
from rightsizer.recommender.dimension import find
from rightsizer.recommender.recommend import recommend
from rightsizer.recommender.workload import evaluation_context

TRIED = 4
"""Options that are served in hindsight to find a better one, the largest saving first."""
DAY = timedelta(days=1)
BEHIND = Reason(Code.CHEAPER_OPTION, "another option was applied that morning")
WAITS, WATCHED = "waits", "watched"


@dataclass(frozen=True, slots=True)
class Allowance:
    """Changes that one day of the account may start, shared by endpoints in their order."""

    limits: ChangeLimits
    started: dict[date, tuple[int, Decimal]] = field(default_factory=dict)

    def take_budget(self, option: Option, at: datetime) -> Reason | None:
        """Take the change from the day's budget, or return why it waits.

        A change that restores an earlier fleet always passes.
        """
        number, usd = self.started.get(at.date(), (0, Decimal(0)))
        share = budget_share(f"{at:%Y-%m-%d}", option.switch_usd, self.limits, restores=option.restores)
        if (spent := budget_refusal(share, self.limits, number, usd)) is not None:
            return spent
        self.started[at.date()] = number + 1, usd + option.switch_usd
        return None


@dataclass(frozen=True, slots=True)
class BacktestInputs:
    """Inputs that all endpoints of a back-test share."""

    given: AccountInputs
    """Prices, catalogue, quotas and policy; its history is not read."""
    dimensions: Sequence[Dimension]
    allowance: Allowance
    first: date
    """The first morning."""
    today: date
    """The last one; its day is not over."""

    def replays(self, option: Option) -> bool:
        """Whether the replay can serve days on the option."""
        return find(self.dimensions, option.kind).replays


@dataclass(frozen=True, slots=True)
class _FirstOption:
    """The first recommendation with evidence enough to be proposed and a fleet that saves enough."""

    at: datetime
    found: Recommendation
    why: Reason
    """Why it was not applied then."""
    goal: LatencyObjective | None


@dataclass(slots=True)
class Backtester:
    """The state of one endpoint between two mornings. `runs` is what would run, opted in; `real` what ran."""

    real: Endpoint
    days: Sequence[DailyUsage]
    """Whole days as they were, oldest first; none of `stage.today` or later."""
    stage: BacktestInputs
    runs: Endpoint
    known: list[DailyUsage] = field(default_factory=list)
    """The days as they would have been published, oldest first."""
    past: list[PastChange] = field(default_factory=list)
    changes: list[BacktestChange] = field(default_factory=list)
    active: ActiveChange | None = None
    pending: ActiveChange | None = None
    """Started later in the day than its midnight: from its first whole day on it stands, and until then what stood."""
    mornings: Counter[str] = field(default_factory=Counter)
    last: Recommendation | None = None
    hoped: _FirstOption | None = None

    def run(self) -> Backtest:
        """Every morning of the window."""
        waiting = list(self.days)
        morning = self.stage.first
        while morning <= self.stage.today:
            while waiting and waiting[0].day < morning:
                self._end_day(waiting.pop(0))
            self._activate_pending()
            if self.known:
                self._evaluate_morning(datetime.combine(morning, time(), UTC))
            morning += DAY
        self._activate_pending()
        self._close_change(None, None)
        changes = tuple(sorted(self.changes, key=lambda change: change.decided_at))
        backtest = Backtest(self.real.ref.name, changes, self.last, dict(self.mornings))
        return replace(backtest, missed=self._missed_option(backtest.saved_usd))

    def _end_day(self, usage: DailyUsage) -> None:
        """A day has ended: on what really ran, or on the fleet of the change that stands."""
        at = self.active
        if at is None:
            self.known.append(usage)
            return
        at.days.append(usage)
        if isinstance(at.after, Reason):
            self.known.append(usage)
            return
        day = at.after.replay_day(usage)
        at.served.append(day)
        back = guard_reason(day, at) or return_reason(at)
        if at.is_other_type:
            self.known.append(replace(usage, latency=(), latency_total_s=0.0))
        else:
            self.known.append(usage_as_served(day, at.after.at.objective.p95_s))
        if back is not None:
            self._roll_back(back, usage.day + DAY)

    def _activate_pending(self) -> None:
        """What was started stands from now on; what stood before has served until today."""
        at = self.pending
        if at is None:
            return
        at.previous, self.pending = self.active, None
        self._close_change(at.first_day, None)
        self.past.append(at.past)
        self.active, self.runs = at, at.moved.then

    def _roll_back(self, why: Reason, morning: date) -> None:
        """The fleet before the change serves again, as it did."""
        at = self.active
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
            self.past.append(past_change(at.moved.then, at.before, then))
        self.runs = at.before
        self._close_change(morning, why)
        if at.previous is not None:
            again = at.previous
            self.changes = [change for change in self.changes if change.decided_at != again.started]
            self.active = again

    def _evaluate_morning(self, now: datetime) -> None:
        at = self.active
        if at is not None and at.is_other_type:
            self.mornings[WATCHED] += 1
            return
        inputs = replace(self.stage.given, history=History(endpoint=tuple(self.past)), now=now)
        usage = VariantUsage(self.runs.ref.name, self.runs.variants[0].name, tuple(self.known))
        recommendation = recommend(self.runs, usage, inputs, self.stage.dimensions)
        self.last, gate = recommendation, recommendation.gate.value
        waits = None
        if (
            recommendation.gate is Gate.APPLY
            and recommendation.chosen_option is not None
            and self.stage.replays(recommendation.chosen_option)
        ):
            waits = self._start_change(recommendation, recommendation.chosen_option, inputs)
            gate = WAITS if waits is not None else gate
        self.mornings[gate] += 1
        if self.hoped is None and _worthwhile_options(recommendation, self.stage):
            context = evaluation_context(self.runs, _recent_days(self.known, inputs), inputs)
            why = BEHIND if recommendation.gate is Gate.APPLY and waits is None else waits or recommendation.gate_reason
            self.hoped = _FirstOption(now, recommendation, why, context.objective if context else None)

    def _start_change(self, recommendation: Recommendation, option: Option, inputs: AccountInputs) -> Reason | None:
        """Begin the change, or say what it waits for."""
        limits, now = self.stage.allowance.limits, inputs.now
        start = now if option.restores else next_open(limits.window, now)
        if start.date() != now.date():
            return Reason(Code.OUTSIDE_WINDOW, f"the window of Limits opens on {time_text(start)}")
        rested = self.past[-1].at + limits.cooldown if self.past else start
        if start < rested and not option.restores:
            return Reason(Code.COOLDOWN, f"Limits lets it rest until {time_text(rested)}")
        waits = self.stage.allowance.take_budget(option, start)
        if waits is not None:
            return waits
        first_day = now.date() if start == now else now.date() + DAY
        context = evaluation_context(self.runs, _recent_days(self.known, inputs), inputs)
        then = endpoint_after(self.runs, option)
        moved = FleetMove(self.real, then, option, context.objective if context else None)
        days = [d for d in self.days if d.day >= first_day]
        serving = later_fleet(moved, days, inputs)
        late = promised_late_share(context, option, serving)
        past = past_change(self.runs, then, start, option, context.demand.load.peak_busy_gpus if context else None)
        self.pending = ActiveChange(start, first_day, recommendation, option, moved, self.runs, past, serving, late)
        if start == now:
            self._activate_pending()
        return None

    def _close_change(self, until: date | None, back: Reason | None) -> None:
        at = self.active
        if at is None:
            return
        told = hindsight(at.moved, at.after, at.served, at.days, self.stage.given)
        self.changes.append(
            BacktestChange(at.started, at.first_day, until, at.recommendation, at.option, at.promised_late, back, told)
        )
        self.active = None

    def _missed_option(self, saved: Decimal) -> MissedOption | None:
        """The option of the first morning with one that would have held, where it saves more than what was done."""
        if self.hoped is None:
            return None
        hoped, inputs = self.hoped, self.stage.given
        days = [d for d in self.days if d.day >= hoped.at.date()]
        for option in _worthwhile_options(hoped.found, self.stage)[:TRIED]:
            moved = FleetMove(self.real, endpoint_after(self.real, option), option, hoped.goal)
            serving = later_fleet(moved, days, inputs)
            served = [serving.replay_day(usage) for usage in days] if isinstance(serving, LaterFleet) else []
            told = hindsight(moved, serving, served, days, inputs)
            if told.verdict is HindsightVerdict.HELD and not served[0].rings_alarm:
                regret = told.saved_usd - saved
                return MissedOption(option, hoped.at, told, hoped.why, regret) if regret >= 1 else None
        return None


def _worthwhile_options(recommendation: Recommendation, stage: BacktestInputs) -> list[Option]:
    """The fleets that the gate would not find too small a saving, or too little known of; the largest saving first."""
    policy = stage.given.policy
    least = max(
        policy.minimum_saving_usd, (recommendation.usd_per_month or 0) * Decimal(str(policy.minimum_saving_share))
    )
    options = [o for o in recommendation.options if stage.replays(o) and o.confidence >= policy.confidence_propose]
    return sorted((o for o in options if o.saving_usd_per_month >= least), key=lambda o: -o.saving_usd_per_month)


def _recent_days(days: Sequence[DailyUsage], inputs: AccountInputs) -> list[DailyUsage]:
    first = (inputs.now - timedelta(days=inputs.policy.lookback_days)).date()
    return [d for d in days if d.day >= first]
