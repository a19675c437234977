"""Office hours: stop endpoints after their hours, and bring them back before the next opening.

One record an endpoint, written before each write to AWS; one lock with `apply`. Killed at any point, the next tick
looks at AWS and goes on from what it sees. Who waits for an endpoint is told, also where nothing can be read any more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from rightsizer import wire
from rightsizer.changes.failure import error_detail
from rightsizer.changes.hours import (
    HoursDemand,
    Settle,
    blind_notice,
    by_urgency,
    demand_at,
    late_notice,
    next_hours_action,
    with_delete_seen,
)
from rightsizer.changes.hours.refusals import PASSING, stop_refusals
from rightsizer.changes.hours.steps import commands_by_hand, created_by_us, missing_part
from rightsizer.domain.change import Entry
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.hours_record import (
    BEGINS,
    KEPT_STARTS,
    KEPT_TIMES,
    EndpointBefore,
    HoursRecord,
    HoursState,
    Start,
    Untold,
    continued_times,
    ended_times,
    night_of,
)
from rightsizer.domain.live_state import EndpointSight, Gone, LiveState
from rightsizer.domain.next_action import Do, Wait
from rightsizer.domain.office_hours import HOURS_TAG
from rightsizer.domain.outcome import Occurrence, UnreadRow
from rightsizer.domain.plan import Step, region_option
from rightsizer.domain.policy import TICK, Switch
from rightsizer.domain.proposal import decider_name
from rightsizer.domain.reason import Code, Reason, time_text
from rightsizer.domain.trigger import EndpointMoved, TickDue, Trigger, WakeAsked
from rightsizer.errors import ConflictError, InputError, RightsizerError, UnreadableError
from rightsizer.flows.apply import LEASE, RESERVE_MS, TimeLeft, unlimited_ms
from rightsizer.flows.notify import catch_send_errors, tell_once
from rightsizer.flows.read_hours import HoursPorts, HoursReader
from rightsizer.flows.sleep_message import show_again, show_state
from rightsizer.flows.wake import WakeOrders, take_waiting_wake
from rightsizer.telemetry import Failure, attempt, count, logger

MOST_STORED = 150_000
"""Bytes of a record at the beginning of a stop. A row holds 400 KB (DynamoDB), and one that is full starts nothing."""
MOVES = 30
"""Moves of one invocation for one endpoint."""
LOOK_SOON, LOOK_LATER = timedelta(minutes=10), timedelta(hours=1)
STAYS = "it is not stopped any more, unless its tag gets another value"
type Tagged = tuple[EndpointRef, Mapping[str, str]]
type ByName = Mapping[str, HoursRecord]
LEFT_ALONE = timedelta(days=1)
"""So long an endpoint of which AWS kept refusing the stop is left alone."""


@dataclass(frozen=True, slots=True)
class HoursKeeper:
    """The flow of the `hours` door."""

    ports: HoursPorts

    def act_on(self, trigger: Trigger, now: datetime, left: TimeLeft = unlimited_ms) -> list[str]:
        """Act on the tick, or on an event of one endpoint; returns the names of what was looked at."""
        if isinstance(trigger, EndpointMoved):
            record = self.advance_endpoint(trigger.endpoint, now)
            return [record.ref.name] if record is not None else []
        if isinstance(trigger, WakeAsked):
            return self._wake(trigger, now)
        return [record.ref.name for record in self.tick(now, left)] if isinstance(trigger, TickDue) else []

    def tick(self, now: datetime, left: TimeLeft = unlimited_ms) -> tuple[HoursRecord, ...]:
        """Look at every endpoint with hours; those under way go first. Returns what was looked at."""
        unread: list[UnreadRow] = []
        known = {record.ref.name: record for record in self.ports.book.records(unread)}
        for row in unread:
            self.ports.book.park(row.key, row.cause, now, catch_send_errors(self.ports.notifier))
        found = attempt("looking for endpoints with hours", "all", self.ports.account.tagged_endpoints)
        tagged = {} if isinstance(found, Failure) else found
        waiting = (record for record in known.values() if record.holds_lock or record.untold or record.is_unshown)
        held = [record.ref.name for record in by_urgency(waiting, now, self.ports.limits.hours.holidays)]
        names = [*held, *(name for name in sorted(tagged) if name not in held)]
        if not isinstance(found, Failure):
            self._take_in_again(known, tagged, now)
        done: list[HoursRecord] = []
        for number, name in enumerate(names):
            if left() < RESERVE_MS:
                count(HoursLate=len(names) - number)
                self._tell_of_unseen([name for name in names[number:] if name in known], now, left)
                break
            if (record := self.advance(name, tagged.get(name), now, known)) is not None:
                known[name] = record
                done.append(record)
        return tuple(done)

    def _take_in_again(self, known: Mapping[str, HoursRecord], tagged: Mapping[str, object], now: datetime) -> None:
        """Forget that an endpoint was let go once its tag is gone, so that a new tag counts again."""
        for name, record in known.items():
            if record.let_go is not None and not record.holds_lock and name not in tagged:
                attempt("forgetting an order", name, partial(self._forget_order, record, now))

    def _forget_order(self, record: HoursRecord, now: datetime) -> None:
        """Forget it where SageMaker itself shows no tag: the list of tagged endpoints may lag behind."""
        seen = self.ports.changer.endpoint(record.ref.name)
        if isinstance(seen, Gone) or (seen.created_at is not None and now - seen.created_at < LOOK_LATER):
            return
        if HOURS_TAG not in self.ports.changer.tags(record.ref):
            self.ports.book.save(replace(record, let_go=None))

    def _wake(self, asked: WakeAsked, now: datetime) -> list[str]:
        """Take the order of an event and act on it at once; people are told where it is refused, once an event."""
        orders = WakeOrders(self.ports.book, self.ports.limits.hours, self.ports.journal.switch)
        stay, by = timedelta(minutes=asked.minutes), f"event of account {asked.account}"
        try:
            answer = orders.wake(asked.endpoint, stay, by, now)
        except InputError as error:  # no record, so nobody is asleep under that name
            logger.warning("not woken", extra={"endpoint": asked.endpoint, "by": by, "why": str(error)})
            return []
        if answer.times is None and answer.reason is not None:
            text = "\n".join((f"{by} asked for it: {answer.reason.sentence}", *answer.by_hand))
            self._is_taken(answer.record, Untold(f"wake#{asked.key}", now, f"{asked.endpoint} was not woken", text))
        self.advance_endpoint(asked.endpoint, now)
        return [asked.endpoint]

    def advance_endpoint(self, name: str, now: datetime) -> HoursRecord | None:
        """An event says that the endpoint moved: look at it now where a stop or start is under way."""
        record = self.ports.book.load(name)
        return self.advance(name, None, now, {}) if record is not None and record.holds_lock else None

    def advance(self, name: str, tagged: Tagged | None, now: datetime, known: ByName) -> HoursRecord | None:
        """Advance one endpoint as far as possible; a failure is told where somebody waits for the endpoint."""
        found = attempt("advancing office hours", name, partial(self._advance, name, tagged, now, known))
        if not isinstance(found, Failure):
            return found
        if not isinstance(found.error, ConflictError | UnreadableError):
            attempt("telling who waits", name, partial(self._tell_of_failure, name, str(found), now))
        return None

    def _advance(self, name: str, tagged: Tagged | None, now: datetime, known: ByName) -> HoursRecord | None:
        record = self.ports.book.load(name)
        if record is not None and record.lease_until is not None and now < record.lease_until:
            return None
        if record is not None:
            record = show_again(self.ports.book, self._tell_again(record), self.ports.limits.hours, now)
            record = self._with_waiting_wake(record, now)
        if record is not None and record.holds_lock:
            return self._walk(record, now)
        if tagged is None:
            return record
        ref, tags = tagged
        record = self._as_tagged(record or HoursRecord(ref), tags)
        demand = demand_at(record, now, self.ports.limits.hours.holidays)
        if demand.problem:
            return self._keep_on(record, Reason(Code.BAD_TAG, f"{demand.problem}; it is always on"), now)
        if record.is_let_go:
            return self._keep_on(self._tell_that_it_stays(record, now), Reason(Code.SAFE_TO_APPLY, STAYS), now)
        if demand.runs:
            return self._keep_on(record, Reason(Code.SAFE_TO_APPLY, "it runs by its hours"), now)
        if demand.changes_at is not None and demand.changes_at - now < self.ports.limits.hours.least_rest:
            return self._keep_on(record, Reason(Code.OUTSIDE_WINDOW, "the next opening is too near for a stop"), now)
        if record.next_due is not None and now < record.next_due and record.reason is not None:
            return record
        return self._begin_stop(record, tags, now, known)

    def _with_waiting_wake(self, record: HoursRecord, now: datetime) -> HoursRecord:
        """The record with the order that a click left for it, as far as that can be read."""
        if not record.holds_lock and record.wake_at(now) is None:
            return record
        take = partial(take_waiting_wake, self.ports.book, self.ports.limits.hours, record, now, self._tell)
        return record if isinstance(taken := attempt("taking up a wake", record.ref.name, take), Failure) else taken

    def _as_tagged(self, record: HoursRecord, tags: Mapping[str, str]) -> HoursRecord:
        """The record with what its tags say now; saved where that is news, since an order to let it go names it."""
        said, let_go = tags[HOURS_TAG], record.let_go
        let_go = replace(let_go, hours=let_go.hours or said) if let_go is not None else None
        fresh = replace(record, hours=said, owner=tags.get("rightsizer:owner", ""), let_go=let_go)
        return self.ports.book.save(fresh) if record.version and fresh != record else fresh

    def _tell_that_it_stays(self, record: HoursRecord, now: datetime) -> HoursRecord:
        """Say once that it runs and is not stopped again, with the command that removes the tag."""
        if record.let_go is None:
            return record
        ref, name, by = record.ref, record.ref.name, decider_name(record.let_go.by)
        remove = f"aws sagemaker delete-tags{region_option(ref.region)} --resource-arn {ref.arn} --tag-keys {HOURS_TAG}"
        text = (
            f"{name} runs, and {by} took it out of its office hours: {STAYS}. Remove the tag, which says nothing now:\n"
        )
        key = f"let-go#{record.let_go.at.isoformat()}"
        return self._tell(record, key, f"{name} runs and stays on", f"{text}{remove}", now)

    def _keep_on(self, record: HoursRecord, reason: Reason, now: datetime) -> HoursRecord:
        """Let the endpoint run. The record is saved where that is news; a reason that stays is told once."""
        if reason.code not in PASSING | {Code.SAFE_TO_APPLY, Code.OUTSIDE_WINDOW}:
            text = f"{reason.sentence}. Its hours are {record.hours!r}; this is said once."
            subject = f"{record.ref.name} is not stopped by its hours"
            record = self._tell(record, reason.sentence[:800], subject, text, now)
        rests = LOOK_SOON if reason.code in PASSING else LOOK_LATER
        asked = reason.code is not Code.SAFE_TO_APPLY
        fresh = replace(record, reason=reason, next_due=now + rests if asked else None)
        if record.reason == reason and record.version and not asked:
            return record
        return self.ports.book.save(fresh)

    def _begin_stop(self, record: HoursRecord, tags: Mapping[str, str], now: datetime, known: ByName) -> HoursRecord:
        """Read everything; store it with the lock and go on, or keep the endpoint on with the reason."""
        reader = HoursReader(self.ports)
        inputs = reader.stop_input(record, tags, now, known.values())
        if isinstance(inputs, Reason):
            return self._keep_on(record, inputs, now)
        if record.state is HoursState.HANDED_OVER and not record.is_anew(inputs.endpoint.created_at):
            lacks = missing_part(record, reader.live_hours(record), now)
            if lacks:
                text = (
                    f"it was handed over, and what it had before is not all put back ({lacks}); the commands were sent"
                )
                return self._keep_on(record, Reason(Code.NOT_APPLICABLE, text), now)
        refused = stop_refusals(inputs)
        if refused:
            lasting = [reason for reason in refused if reason.code not in PASSING]
            first = (lasting or refused)[0]
            rest = "; ".join(r.sentence for r in (lasting or refused))
            return self._keep_on(record, Reason(first.code, rest), now)
        stopping = record.with_stop_begun(reader.endpoint_before(inputs), now)
        if (size := len(wire.dump_stored(stopping).encode())) > MOST_STORED:
            text = (
                f"{size / 1000:,.0f} kB had to be stored about it, and at most {MOST_STORED / 1000:,.0f} kB leave room"
            )
            text += " in its row for the messages and tries of a bad night; fewer alarms or scheduled actions help"
            return self._keep_on(record, Reason(Code.NOT_APPLICABLE, text), now)
        return self._walk(self.ports.book.save(stopping), now)

    def _walk(self, record: HoursRecord, now: datetime) -> HoursRecord:
        """Move after move until it waits or is over; one invocation at a time holds the lease."""
        record = self.ports.book.save(replace(record, lease_until=now + LEASE))
        reader = HoursReader(self.ports)
        for _ in range(MOVES):
            live = with_delete_seen(record, reader.live_hours(record), now)
            record = self._note_serving(record, live.state, now)
            demand = demand_at(record, now, self.ports.limits.hours.holidays)
            action = next_hours_action(record, live, demand, now, self._switch())
            match action:
                case Do():
                    record = self._do(record, live.state.resolve_step(action.step), now)
                case Settle():
                    record = self._settle(record, action, live.state, demand, now)
                    if not record.holds_lock:
                        return record
                case Wait():
                    notice = late_notice(record, live, demand, now, action.why)
                    if notice is not None:
                        record = self._tell(record, notice.key, notice.subject, notice.text, now)
                    return self._rest(record, min(action.until, now + TICK), action.why)
        return self._rest(record, now + TICK, "this invocation has made all the moves it may")

    def _switch(self) -> Switch:
        """The freeze switch; where the stack may change nothing, no stop goes on, and what is asleep comes back."""
        switch = self.ports.journal.switch()
        if switch.frozen or not self.ports.limits.dry_run:
            return switch
        return replace(switch, frozen=True, by="MayChange=nothing or read-only")

    def _rest(self, record: HoursRecord, until: datetime, why: str) -> HoursRecord:
        reason = Reason(Code.SAFE_TO_APPLY, why)
        return self.ports.book.save(replace(record, lease_until=None, next_due=until, reason=reason))

    def _do(self, record: HoursRecord, step: Step, now: datetime) -> HoursRecord:
        """Intent to the record, then the write, then what came of it."""
        record = self.ports.book.save(record.with_intent(step, now))
        try:
            self.ports.account.perform(step)
        except RightsizerError as error:
            result = Entry(now, step.key, "failed", error_detail(error))
        else:
            result = Entry(now, step.key, "done")
        return self.ports.book.save(record.with_entry(result))

    def _note_serving(self, record: HoursRecord, live: LiveState, now: datetime) -> HoursRecord:
        """The first look at which a start is in service: its duration, the end of the stopped time, and other code."""
        endpoint, before = live.endpoint, record.before
        if record.state is not HoursState.STARTING or record.serving_at is not None or before is None:
            return record
        if isinstance(endpoint, Gone) or endpoint.status != "InService":
            return record
        made = endpoint.created_at or now
        took = (endpoint.modified_at - made).total_seconds()
        for said in self._differences(record, before, endpoint):
            subject = f"{record.ref.name}: it runs other code since this start"
            record = self._tell(record, f"code#{made.isoformat()}", subject, said, now)
        return replace(
            record,
            serving_at=now,
            last_start=Start(endpoint.config_name, made) if created_by_us(record) else None,
            starts=(*record.starts, took)[-KEPT_STARTS:] if took > 0 else record.starts,
            stopped_times=ended_times(record.stopped_times, min(endpoint.modified_at, now)),
        )

    def _settle(
        self, record: HoursRecord, action: Settle, live: LiveState, demand: HoursDemand, now: datetime
    ) -> HoursRecord:
        """The record in its new state; people are told first, since a message may be repeated and never lost."""
        name, remaining = record.ref.name, tuple[str, ...]()
        if action.state is HoursState.HANDED_OVER:
            remaining = commands_by_hand(record, now, live)
        if action.tell:
            by_hand = ("By hand:", *remaining) if remaining else ()
            subject = f"{name} is handed over" if action.state is HoursState.HANDED_OVER else f"{name} was not stopped"
            text = "\n".join((action.reason.sentence, *by_hand))
            record = self._tell(record, f"{action.state}#{now:%Y-%m-%dT%H}", subject, text, now)
        begins = action.state is HoursState.STARTING
        lines = (Entry(now, BEGINS if begins else "state", "noted", f"{action.state.value}: {action.reason.sentence}"),)
        settled = replace(
            record.with_entry(lines[0]),
            state=action.state,
            since=now,
            reason=action.reason,
            remaining=remaining,
            serving_at=None if begins else record.serving_at,
            next_due=_next_look(action, demand, now),
            lease_until=record.lease_until if action.state in (HoursState.STOPPED, HoursState.STARTING) else None,
        )
        if action.state is HoursState.STOPPED and record.state is HoursState.STOPPING:
            settled = replace(settled, stopped_times=(*record.stopped_times, night_of(record, now))[-KEPT_TIMES:])
        if not isinstance(live.endpoint, Gone) and self._runs_as_before(record, action, live.endpoint):
            settled = replace(settled, stopped_times=continued_times(settled.stopped_times, live.endpoint.modified_at))
        if action.state is HoursState.HANDED_OVER:
            settled = replace(settled, stopped_times=ended_times(settled.stopped_times, now))
        return self.ports.book.save(
            show_state(self.ports.book, settled, demand.serves_at, self.ports.limits.hours, now)
        )

    def _runs_as_before(self, record: HoursRecord, action: Settle, endpoint: EndpointSight) -> bool:
        """Whether its past still speaks of it; no where that cannot be read, since it serves and nobody may wait."""
        if action.state is not HoursState.RUNNING:
            return False
        read = partial(HoursReader(self.ports).is_as_before, record, endpoint)
        return attempt("comparing an endpoint with what was stopped", record.ref.name, read) is True

    def _differences(self, record: HoursRecord, before: EndpointBefore, seen: EndpointSight) -> tuple[str, ...]:
        """What differs in code and models since the stop; a comparison that fails keeps no endpoint waiting."""
        read = partial(HoursReader(self.ports).differences, before, seen)
        found = attempt("comparing code and models with what was stopped", record.ref.name, read)
        return () if isinstance(found, Failure) else found

    def _tell_of_failure(self, name: str, why: str, now: datetime) -> None:
        """AWS or the table did not answer, or no time was left: whoever waits is told with what is stored."""
        record = self.ports.book.load(name)
        if record is None:
            return
        notice = blind_notice(record, demand_at(record, now, self.ports.limits.hours.holidays), now, why)
        if notice is not None:
            self._tell(record, notice.key, notice.subject, notice.text, now)

    def _tell_of_unseen(self, names: Sequence[str], now: datetime, left: TimeLeft) -> None:
        """Tell of endpoints that this tick did not reach, as far as the reserve lasts."""
        why = "too many endpoints have hours for one tick, and it was not reached"
        for name in names:
            if left() > RESERVE_MS // 3:
                attempt("telling who waits", name, partial(self._tell_of_failure, name, why, now))

    def _tell(self, record: HoursRecord, key: str, subject: str, text: str, now: datetime) -> HoursRecord:
        """Tell people once; the record, which keeps what no channel took, so that the next tick sends it again."""
        message = Untold(key, now, subject, text)
        if any(known.key == key for known in record.untold):
            return record  # this tick tried it already
        return record if self._is_taken(record, message) else record.with_untold(message)

    def _tell_again(self, record: HoursRecord) -> HoursRecord:
        """Send what no channel took so far; saved where one took it."""
        if not record.untold:
            return record
        said = "It was written on {}, and no channel took it before.\n{}"
        late = ((m, replace(m, text=said.format(time_text(m.at), m.text))) for m in record.untold)
        left = tuple(message for message, again in late if not self._is_taken(record, again))
        return self.ports.book.save(replace(record, untold=left)) if len(left) < len(record.untold) else record

    def _is_taken(self, record: HoursRecord, message: Untold) -> bool:
        key = f"hours#{record.ref.name}#{message.key}"
        what = Occurrence(key, message.at, "hours", record.ref.name, message.text)
        return tell_once(self.ports.ledger, self.ports.notifier, what, message.subject)


def _next_look(action: Settle, demand: HoursDemand, now: datetime) -> datetime | None:
    """When an endpoint that runs may be stopped next: what AWS keeps refusing is tried again the next evening."""
    if action.state is not HoursState.RUNNING:
        return demand.changes_at
    return now + (LEFT_ALONE if action.tell else LOOK_SOON)
