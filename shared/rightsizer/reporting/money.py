"""The table of money of a report: one row for each endpoint, one amount for each endpoint and day.

What an endpoint cost on a day is taken from its latest recommendation, and led back through the changes that were
booked in between: before a change that stands it cost more by what the change saves, and while a change that went back
was in force it cost less. Without our changes it would have cost that and what the changes in force saved. In hours in
which office hours had it stopped it cost nothing, and no change saved anything. A day of which an endpoint is not known
for the whole is a gap.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from itertools import groupby

from rightsizer.domain.money import (
    DayMoney,
    MoneyRow,
    MoneyTable,
    MonthMoney,
    OwnerWait,
    Saving,
    Stage,
    UseMethod,
    WeekHour,
)
from rightsizer.domain.office_hours import StoppedTime
from rightsizer.domain.outcome import LedgerEntry
from rightsizer.domain.price import CENT
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.recommendation import WASTEFUL, Finding, Recommendation
from rightsizer.reporting.office_hours import AwakeByName, AwakeHours, first_looks

DAY = timedelta(days=1)
WEEK_HOURS = 168
KNOWN_SHARE = Decimal("0.9")
"""Share of the spend that must be known for a whole day; below it the day is a gap, not a drop."""
NO_USD = Decimal(0)


@dataclass(frozen=True, slots=True)
class Use:
    """Use of the capacity that one endpoint needs, as a share 0..1."""

    share: float
    method: UseMethod


def use_of(recommendation: Recommendation) -> Use | None:
    """The used share of what an endpoint needs: by its replay, else by its requests; None where neither is known."""
    if recommendation.finding is Finding.IDLE:
        return Use(0.0, UseMethod.REQUESTS)
    replayed = [load for load in recommendation.replay.hourly_load if load is not None] if recommendation.replay else []
    if replayed:
        return Use(min(1.0, sum(replayed) / len(replayed)), UseMethod.REPLAY)
    requests = [hour for hour in recommendation.hourly_requests if hour is not None]
    top = max(requests, default=0.0)
    return Use(sum(requests) / len(requests) / top, UseMethod.REQUESTS) if top > 0 else None


@dataclass(slots=True)
class Observed:
    """Use and hours of the week, taken from all recommendations while they are read: most courses are not kept."""

    uses: dict[str, Use] = field(default_factory=dict)
    loads: list[float] = field(default_factory=lambda: [0.0] * WEEK_HOURS)
    weights: list[float] = field(default_factory=lambda: [0.0] * WEEK_HOURS)

    def watch(
        self, found: Iterable[Recommendation], wanted: Callable[[Recommendation], bool] = lambda _: True
    ) -> Iterator[Recommendation]:
        """Pass the recommendations through, and add up each that is wanted."""
        for one in found:
            if wanted(one):
                self.add(one)
            yield one

    def add(self, recommendation: Recommendation) -> None:
        """Take one recommendation into account."""
        use = use_of(recommendation)
        if use is not None:
            self.uses[recommendation.ref.name] = use
        top = max((hour for hour in recommendation.hourly_requests if hour is not None), default=0.0)
        weight = float(recommendation.usd_per_month or 0)
        if not recommendation.evidence or top <= 0 or weight <= 0:
            return
        first = 24 * recommendation.evidence.start.weekday()
        for at in range(min(WEEK_HOURS, len(recommendation.hourly_requests))):
            known = [hour for hour in recommendation.hourly_requests[at::WEEK_HOURS] if hour is not None]
            if known:
                slot = (first + at) % WEEK_HOURS
                self.loads[slot] += weight * sum(known) / len(known) / top
                self.weights[slot] += weight

    def week(self) -> tuple[WeekHour, ...]:
        """The hours of the week; nothing where no hour is known."""
        if not any(self.weights):
            return ()
        return tuple(
            WeekHour(slot // 24, slot % 24, min(1.0, load / weight) if weight else None)
            for slot, (load, weight) in enumerate(zip(self.loads, self.weights, strict=True))
        )


@dataclass(frozen=True, slots=True)
class MoneySources:
    """Everything that the table is made from; the recommendations are those that days of the window are behind."""

    account: str
    region: str
    recommendations: Sequence[Recommendation]
    proposals: Sequence[Proposal]
    ledger: Sequence[LedgerEntry]
    """Entries of the window, and those since that tell what was in force in it."""
    observed: Observed
    returned: Collection[str] = ()
    """Ids of the changes that are over and not in force."""
    replaced: Collection[str] = ()
    """Ids of the changes that went not back and save no more: somebody else's change, or a later one, came after."""
    stopped: Mapping[str, Sequence[StoppedTime]] = field(default_factory=dict)
    """When office hours had endpoints stopped, by their name."""


@dataclass(frozen=True, slots=True)
class _InForce:
    """Time in which a change was in force, and what it saved an awake hour; below zero where it added capacity."""

    start: datetime
    end: datetime
    usd_per_hour: Decimal
    went_back: bool

    @property
    def saves(self) -> bool:
        return self.usd_per_hour > 0

    def hours_in(self, start: datetime, end: datetime, awake: AwakeHours) -> Decimal:
        """Awake hours of a stretch in which it was in force."""
        return awake.between(max(start, self.start), min(end, self.end))


@dataclass(frozen=True, slots=True)
class SpendCourses:
    """Costs of each endpoint on each day of a window, with and without our changes."""

    days: "Sequence[_Stretch]"
    judged: Mapping[str, Recommendation]
    awake: Mapping[str, AwakeHours]
    changes: Mapping[str, Sequence[_InForce]]
    known: Mapping[str, frozenset[int]]
    """Numbers of the days that each priced endpoint is known of."""
    shown: frozenset[int]
    """Numbers of the days of which enough is known to show a sum."""
    amounts: "Mapping[str, _Amounts]"
    """Of the days that are known, whether the sum of the day is shown or not."""


def spend_courses(sources: MoneySources, start: datetime, end: datetime, made_at: datetime) -> SpendCourses:
    """The courses behind the table of one window; the sums of their days are `spent` and `would_have_cost` there."""
    days = list(_days(start, end))
    judged = {one.ref.name: one for one in sources.recommendations}
    awake = AwakeByName(judged, sources.stopped)
    changes = _changes(sources, awake)
    begins = first_looks(sources.ledger, sources.proposals, judged, changes)
    spends = {name: one.usd_per_month for name, one in judged.items() if one.usd_per_month is not None}
    known = {name: _known_days(judged[name], begins.get(name, made_at), days, made_at, awake[name]) for name in spends}
    amounts = {
        name: _Course(judged[name], changes[name], awake[name]).amounts(days, whole) for name, whole in known.items()
    }
    return SpendCourses(days, judged, awake, changes, known, _shown_days(known, spends, len(days)), amounts)


def money_table(
    sources: MoneySources, funnel: Sequence[Saving], start: datetime, end: datetime, made_at: datetime
) -> MoneyTable:
    """The table of one window, `start` included and `end` not."""
    course = spend_courses(sources, start, end, made_at)
    booked = _booked(sources.ledger, start, end)
    savings: dict[str, list[Saving]] = defaultdict(list)
    for saving in funnel:
        savings[saving.endpoint].append(saving)
    names = {*course.judged, *savings, *booked}
    shown = {
        name: {day: usd for day, usd in found.items() if day in course.shown} for name, found in course.amounts.items()
    }
    rows = [
        _Row(sources, name, course.judged.get(name), savings[name], booked.get(name, ()), course.awake[name]).money_row(
            course.changes[name], shown.get(name, {}), course.days
        )
        for name in names
    ]
    return MoneyTable(
        rows=tuple(sorted(rows, key=lambda row: (-(row.spend or NO_USD), row.endpoint))),
        days=tuple(_day_sums(course)),
        waits=_waits(sources.proposals, funnel),
        week=sources.observed.week(),
    )


type _Stretch = tuple[datetime, datetime]
type _Amounts = Mapping[int, tuple[Decimal, Decimal]]
"""By the number of the day: spent, and what it would have cost."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The parts that a row of the table is made from."""

    sources: MoneySources
    name: str
    found: Recommendation | None
    savings: Sequence[Saving]
    booked: Sequence[LedgerEntry]
    awake: AwakeHours

    def money_row(self, changes: Sequence[_InForce], course: _Amounts, days: Sequence[_Stretch]) -> MoneyRow:
        """The row."""
        stages: dict[Stage, Decimal] = defaultdict(Decimal)
        for saving in self.savings:
            stages[saving.stage] += saving.usd_per_month
        account, region = self._place()
        owners = [one.owner for one in self.savings] + [entry.owner for entry in self.booked]
        growth = (abs(entry.usd).quantize(CENT) for entry in self.booked if entry.kind == "growth-cost")
        common = MoneyRow(
            account=account,
            region=region,
            endpoint=self.name,
            owner=self.found.owner if self.found else next(filter(None, owners), ""),
            savings=dict(stages),
            realised=sum((entry.saved_usd for entry in self.booked), NO_USD),
            growth=sum(growth, NO_USD),
            spent=sum((spent for spent, _ in course.values()), NO_USD) if course else None,
            would_have_cost=sum((would for _, would in course.values()), NO_USD) if course else None,
            months=tuple(_months(course, days, self.awake)),
        )
        if self.found is None:
            return common
        at, found = self.found.evaluated_at, self.found
        in_force = sum((one.usd_per_hour for one in changes if one.saves and one.start <= at < one.end), NO_USD)
        return _judged(common, found, self.sources.observed, (in_force * self.awake.per_month).quantize(CENT))

    def _place(self) -> tuple[str, str]:
        """Account and Region of the endpoint, as its recommendation or its savings have them."""
        if self.found is not None:
            return self.found.ref.account, self.found.ref.region
        named = next((one for one in self.savings if one.account), None)
        return (named.account, named.region) if named else (self.sources.account, self.sources.region)


def _months(course: _Amounts, days: Sequence[_Stretch], awake: AwakeHours) -> Iterator[MonthMoney]:
    """The known days of a course by calendar month."""
    for _, numbers in groupby(range(len(days)), key=lambda number: (days[number][0].year, days[number][0].month)):
        part = list(numbers)
        known = [number for number in part if number in course]
        if known:
            yield MonthMoney(
                days[part[0]][0],
                days[part[-1]][1],
                round(sum((awake.between(*days[number]) for number in known), NO_USD), 2),
                *(sum((course[number][at] for number in known), NO_USD) for at in (0, 1)),
            )


def _judged(row: MoneyRow, recommendation: Recommendation, observed: Observed, in_force: Decimal) -> MoneyRow:
    """The row with what the latest recommendation says: the spend and its parts. `in_force`: what changes save."""
    row = replace(
        row,
        judged=True,
        environment=recommendation.environment.environment.value if recommendation.environment else "",
        instance_type=recommendation.instance_type,
        instance_count=recommendation.instance_count,
        finding=recommendation.finding.value,
    )
    if recommendation.usd_per_month is None:
        return row
    spend = recommendation.usd_per_month.quantize(CENT)
    saving = max(recommendation.approval_usd_per_month, NO_USD) if recommendation.finding in WASTEFUL else NO_USD
    wasted, use = min(saving, max(spend, NO_USD)), observed.uses.get(recommendation.ref.name)
    utilised = None if use is None else ((spend - wasted) * Decimal(str(use.share))).quantize(CENT)
    return replace(
        row,
        spend=spend,
        without_changes=spend + in_force,
        wasted=wasted,
        utilised=utilised,
        reserve=None if utilised is None else spend - wasted - utilised,
        use_method=use.method if use else UseMethod.NONE,
    )


def _changes(sources: MoneySources, awake: Mapping[str, AwakeHours]) -> Mapping[str, list[_InForce]]:
    """The changes with booked hours by endpoint. One that stands is in force, however long ago it was booked.

    Nothing is booked while office hours, or a stage that waits, hold the endpoint.
    """
    booked: dict[tuple[str, str], list[LedgerEntry]] = defaultdict(list)
    for entry in sources.ledger:
        if entry.kind in ("realised", "growth-cost") and entry.hours > 0:
            booked[entry.endpoint, entry.change_id].append(entry)
    found: dict[str, list[_InForce]] = defaultdict(list)
    for (endpoint, change), entries in booked.items():
        hours = sum((Decimal(str(entry.hours)) for entry in entries), NO_USD)
        usd = sum((entry.usd if entry.kind == "realised" else -abs(entry.usd) for entry in entries), NO_USD)
        first = min(awake[endpoint].begin(entry.at, entry.hours) for entry in entries)
        last, stands = max(entry.at for entry in entries), change not in sources.returned
        if stands and change not in sources.replaced:
            last = datetime.max.replace(tzinfo=UTC)
        found[endpoint].append(_InForce(first, last, usd / hours, not stands))
    return found


def _days(start: datetime, end: datetime) -> Iterator[_Stretch]:
    """The UTC days of a window; the first and the last may be parts."""
    while start < end:
        following = datetime.combine(start.date(), time(), UTC) + DAY
        yield start, min(following, end)
        start = following


def _known_days(
    recommendation: Recommendation, since: datetime, days: Sequence[_Stretch], made_at: datetime, awake: AwakeHours
) -> frozenset[int]:
    """Numbers of the days in which the endpoint is known from their first hour to their last."""
    first = min(since, recommendation.evidence.start if recommendation.evidence else recommendation.evaluated_at)
    last = awake.known_until(recommendation.evaluated_at + DAY, made_at)
    return frozenset(number for number, (start, end) in enumerate(days) if first <= start and end <= last)


def _shown_days(known: Mapping[str, frozenset[int]], spends: Mapping[str, Decimal], days: int) -> frozenset[int]:
    """The days of which nearly all is known of the spend that any day knows, so that a fall of the sum is no gap."""
    least = KNOWN_SHARE * sum((spends[name] for name, whole in known.items() if whole), NO_USD)
    seen = [[spends[name] for name, whole in known.items() if number in whole] for number in range(days)]
    return frozenset(number for number, some in enumerate(seen) if some and sum(some, NO_USD) >= least)


@dataclass(frozen=True, slots=True)
class _Course:
    """What the spend of one endpoint by days is made from."""

    one: Recommendation
    changes: Sequence[_InForce]
    awake: AwakeHours

    def amounts(self, days: Sequence[_Stretch], numbers: Iterable[int]) -> dict[int, tuple[Decimal, Decimal]]:
        """Spent, and what it would have cost, on each of these days, in whole cents."""
        rate, between = (self.one.usd_per_month or NO_USD) / self.awake.per_month, self.awake.between
        found = {}
        for number in sorted(numbers):
            start, end = days[number]
            spent = rate * between(start, end)
            for each in self.changes:
                spent += each.usd_per_hour * (
                    between(start, min(end, each.start)) - self._after(each.start, start, end)
                )
                if each.went_back:
                    spent -= each.usd_per_hour * (
                        between(start, min(end, each.end)) - self._after(each.end, start, end)
                    )
            spent = max(spent, NO_USD).quantize(CENT)
            saved = (each.usd_per_hour * each.hours_in(start, end, self.awake) for each in self.changes if each.saves)
            found[number] = spent, spent + sum(saved, NO_USD).quantize(CENT)
        return found

    def _after(self, step: datetime, start: datetime, end: datetime) -> Decimal:
        """Hours of the day, where the endpoint was last seen before the step: the rate then is without it."""
        return self.awake.between(start, end) if self.one.evaluated_at < step else NO_USD


def _booked(ledger: Sequence[LedgerEntry], start: datetime, end: datetime) -> Mapping[str, list[LedgerEntry]]:
    """What was booked in the window and is money of it, by endpoint."""
    found: dict[str, list[LedgerEntry]] = defaultdict(list)
    for entry in ledger:
        if start <= entry.at < end and entry.kind in ("realised", "switch-cost", "growth-cost"):
            found[entry.endpoint].append(entry)
    return found


def _day_sums(course: SpendCourses) -> Iterator[DayMoney]:
    for number, (start, _) in enumerate(course.days):
        parts = [amounts[number] for amounts in course.amounts.values() if number in amounts]
        spent, would = (sum((part[at] for part in parts), NO_USD) for at in (0, 1))
        seen = sum(number in one for one in course.known.values())
        is_known = number in course.shown
        yield DayMoney(start, spent if is_known else None, would if is_known else None, seen)


def _waits(proposals: Sequence[Proposal], funnel: Sequence[Saving]) -> tuple[OwnerWait, ...]:
    """Who has not answered what, from the savings of the funnel that wait."""
    asked = {one.id: one.created_at for one in proposals}
    waiting: dict[str, list[Saving]] = defaultdict(list)
    for saving in funnel:
        if saving.stage is Stage.WAITING:
            waiting[saving.owner].append(saving)
    found = []
    for owner, some in waiting.items():
        since = min(asked[one.proposal_id] for one in some)
        asked_about, usd = {one.proposal_id for one in some}, sum((one.usd_per_month for one in some), NO_USD)
        found.append(OwnerWait(owner, len(asked_about), usd, since))
    return tuple(sorted(found, key=lambda one: (-one.usd_per_month, one.owner)))
