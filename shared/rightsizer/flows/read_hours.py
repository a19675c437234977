"""Read everything that a stop or a start is decided on, from AWS as it is now and from the stored record."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from rightsizer.changes import preflight
from rightsizer.changes.baseline import REQUESTS
from rightsizer.changes.deletion import ALIVE
from rightsizer.changes.hours.steps import LiveHours, created_by_us
from rightsizer.changes.hours.stop_input import StopInput, instances_asleep, reservation_of
from rightsizer.changes.hours.wake import code_differences, data_differences, model_problem
from rightsizer.domain.endpoint import EndpointRef, ScalableTarget
from rightsizer.domain.hours_record import CONFIG_OUTPUT, EndpointBefore, HoursRecord, HoursState
from rightsizer.domain.live_state import AlarmSight, ConfigSight, EndpointSight, Gone, LiveState
from rightsizer.domain.office_hours import FALLBACK_TAG, HOURS_TAG, parse_hours
from rightsizer.domain.plan import ACTIONS, VariantCount
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import MetricWindow, NoMetrics, unread_reason
from rightsizer.ports.changes import AlarmsAbout, Changer, HoursAccount, HoursBook, Journal, SavingsLedger
from rightsizer.ports.evaluation import MetricReader, MetricRequest, Notifier, QuotaReader, RecommendationStore
from rightsizer.telemetry import Failure, attempt

PERIOD_S = 300
ALIVE_SHARE = 0.5
"""Of the periods of the grace time that must have utilisation, for silence to count as no request."""


@dataclass(frozen=True, slots=True)
class HoursPorts:
    """Everything that the office hours need from outside."""

    book: HoursBook
    account: HoursAccount
    changer: Changer
    journal: Journal
    store: RecommendationStore
    metrics: MetricReader
    quotas: QuotaReader
    ledger: SavingsLedger
    notifier: Notifier
    limits: ChangeLimits


@dataclass(frozen=True, slots=True)
class HoursReader:
    """Reads of one invocation; nothing is cached between two moves."""

    ports: HoursPorts

    def live_hours(self, record: HoursRecord) -> LiveHours:
        """The endpoint with what hangs on it, as far as the record stored it. ReadError.

        An endpoint that does not serve yet is created without its alarms and autoscaling: where these cannot be read,
        they are left out, and nobody waits for them.
        """
        before, changer = record.before, self.ports.changer
        seen = changer.endpoint(record.ref.name)
        if before is None:
            return LiveHours(LiveState(seen))
        names = [str(alarm["AlarmName"]) for alarm in before.alarms]
        starting = _is_being_started(record, seen)
        alarms = self._read_beside("the alarms", record, partial(changer.alarms, names), starting) if names else {}
        if isinstance(seen, Gone):
            config = changer.config(before.config_name)
            fallback = changer.config(before.fallback_config) if before.fallback_config else None
            replaced = config is not None and _is_replaced(config, before.config_body, before.taken_at)
            spare = fallback is not None and not _is_replaced(fallback, before.fallback_body, before.taken_at)
            state = LiveState(seen, alarms=alarms)
            starts = record.state is HoursState.STARTING and bool(before.models)
            models = self.ports.account.models([m.name for m in before.models]) if starts else {}
            problem = model_problem(before, models) if starts else ""
            return LiveHours(state, config is not None, replaced, spare, problem)
        read = partial(changer.scaling, record.ref.name, [v.name for v in seen.variants])
        scaling = self._read_beside("the autoscaling", record, read, starting) if before.scaling else ()
        tags = dict(changer.tags(record.ref)) if seen.status == "InService" else {}
        return LiveHours(LiveState(seen, scaling=scaling, alarms=alarms), tags=tags)

    def _read_beside[T](self, what: str, record: HoursRecord, read: Callable[[], T], starting: bool) -> T | None:
        """What belongs to an endpoint; None where that cannot be read and the endpoint does not serve yet."""
        if not starting:
            return read()
        found = attempt(f"reading {what} of an endpoint that is being started", record.ref.name, read)
        return None if isinstance(found, Failure) else found

    def stop_input(
        self, record: HoursRecord, tags: Mapping[str, str], now: datetime, others: Iterable[HoursRecord] = ()
    ) -> StopInput | Reason:
        """Facts that allow or refuse a stop; a reason where the endpoint is gone. Raises ReadError."""
        ports, ref = self.ports, record.ref
        seen = ports.changer.endpoint(ref.name)
        if isinstance(seen, Gone):
            return Reason(Code.NOT_IN_SERVICE, f"endpoint {ref.name} does not exist")
        wanted = _own_config(record, seen)
        config = ports.changer.config(wanted)
        live_tags = ports.changer.tags(ref)
        if live_tags.get(HOURS_TAG) != tags.get(HOURS_TAG):
            return Reason(Code.CHANGED_SINCE, f"the tag {HOURS_TAG} changed a moment ago; it is looked at again")
        scaling = ports.changer.scaling(ref.name, [v.name for v in seen.variants])
        about, wired = self._alarms_of_owner(ref, scaling)
        names = tuple(dict.fromkeys(name for v in seen.variants for name, _ in v.resolved_images))
        last, known = self._last_request(ref, seen, now)
        fallback = live_tags.get(FALLBACK_TAG, "")
        spare = ports.changer.config(fallback) if fallback else None
        holidays = ports.limits.hours.holidays
        opening = parse_hours(record.hours).next_opening(now, holidays)
        return StopInput(
            ref=ref,
            now=now,
            endpoint=seen,
            config=config,
            tags=live_tags,
            limits=ports.limits,
            switch=ports.journal.switch(),
            scaling=scaling,
            alarms=about.metric,
            composites=about.composite,
            wired=wired,
            registry=ports.changer.images(ref, names) if names else {},
            monitors=ports.account.monitors(ref.name),
            components=tuple(ports.changer.component_names(ref.name)),
            quotas=ports.quotas.endpoint_quotas(),
            asleep=instances_asleep(record, opening, others, holidays),
            opens_at=opening.start if opening is not None else None,
            reservations=ports.account.reservations(_reservations(config, spare)),
            fallback=spare,
            incident_alarms=self._incident_alarms(),
            models=ports.account.models(_models(config)),
            holder=ports.journal.holder_of(ref.name),
            ordered_back=self._ordered_back(ref),
            last_request=last,
            requests_known=known,
            denied=ports.changer.denied_restore_actions(ref, scaling) if scaling else (),
        )

    def _alarms_of_owner(
        self, ref: EndpointRef, scaling: Sequence[ScalableTarget]
    ) -> tuple[AlarmsAbout, tuple[Mapping[str, Any], ...]]:
        """Alarms about the endpoint without those of target tracking, and of them those that start its policies."""
        arns = [str(p["PolicyARN"]) for t in scaling for p in t.policies if "PolicyARN" in p]
        about, managed = self.ports.account.alarms_about(ref.name, arns), set(_managed_alarms(scaling))
        alarms = tuple(a for a in about.metric if str(a["AlarmName"]) not in managed)
        wired = tuple(a for a in alarms if set(arns) & {arn for kind in ACTIONS for arn in a.get(kind, ())})
        return replace(about, metric=alarms), wired

    def endpoint_before(self, inputs: StopInput) -> EndpointBefore:
        """Everything that is stored before the first write."""
        sight, config = inputs.endpoint, inputs.config
        assert config is not None  # else it was refused
        types = {str(row["VariantName"]): str(row.get("InstanceType") or "") for row in inputs.rows}
        return EndpointBefore(
            taken_at=inputs.now,
            config_name=config.name,
            config_body=config.body,
            config_tags=config.tags,
            modified_at=sight.modified_at,
            created_at=sight.created_at or sight.modified_at,
            tags=inputs.tags,
            variants=tuple(
                VariantCount(v.name, types.get(v.name, ""), v.desired_count, v.desired_weight) for v in sight.variants
            ),
            images=tuple(dict.fromkeys(pair for v in sight.variants for pair in v.resolved_images)),
            scaling=inputs.scaling,
            alarms=inputs.alarms,
            deployed_config=sight.config_name if sight.config_name != config.name else "",
            fallback_config=inputs.tags.get(FALLBACK_TAG, ""),
            fallback_body=inputs.fallback.body if inputs.fallback is not None else {},
            models=tuple(inputs.models.values()),
            deployment=sight.deployment,
        )

    def is_as_before(self, record: HoursRecord, endpoint: EndpointSight | Gone) -> bool:
        """Whether it was created by this start, from the same configuration and code as before the stop. ReadError."""
        before = record.before
        if record.state is not HoursState.STARTING or before is None or isinstance(endpoint, Gone):
            return False
        if not created_by_us(record) or endpoint.config_name != before.live_config:
            return False
        config = self.ports.changer.config(endpoint.config_name)
        if config is None or config.created_at > before.taken_at:
            return False
        return not self.differences(before, endpoint)

    def differences(self, before: EndpointBefore, endpoint: EndpointSight) -> tuple[str, ...]:
        """Sentences about images and model data that are not those before the stop. ReadError."""
        models = self.ports.account.models([m.name for m in before.models if m.data])
        return *code_differences(before, endpoint), *data_differences(before, models)

    def _incident_alarms(self) -> tuple[AlarmSight, ...]:
        names = self.ports.limits.incident_alarms
        found = self.ports.changer.alarms(names) if names else {}
        return tuple(found.get(name, AlarmSight(name, preflight.MISSING, {})) for name in names)

    def _ordered_back(self, ref: EndpointRef) -> str:
        orders = self.ports.store.rollback_requests(everything=False)
        return next((proposal.id for proposal in orders if proposal.ref.name == ref.name), "")

    def _last_request(self, ref: EndpointRef, sight: EndpointSight, now: datetime) -> tuple[datetime | None, bool]:
        """When the last requests came within an hour, and whether CloudWatch shows enough to know it."""
        span = max(self.ports.limits.hours.grace, timedelta(hours=1))
        end = now.replace(minute=now.minute // 5 * 5, second=0, microsecond=0) + timedelta(seconds=PERIOD_S)
        requests = [MetricRequest(ref.name, v.name, (REQUESTS, *ALIVE)) for v in sight.variants]
        windows = list(self.ports.metrics.read(requests, end - span, end, PERIOD_S))
        if unread_reason(windows) is not None or any(isinstance(w, NoMetrics) for w in windows):
            return None, False
        read = [w for w in windows if isinstance(w, MetricWindow)]
        last = max((at for w in read if (at := _last_of(w)) is not None), default=None)
        return last, all(_alive_share(w) >= ALIVE_SHARE for w in read)


def _is_being_started(record: HoursRecord, seen: EndpointSight | Gone) -> bool:
    """Whether the next move only creates it, waits for it, or deletes what could not be created."""
    if isinstance(seen, Gone):
        return record.state is HoursState.STOPPED or (record.state is HoursState.STARTING and record.serving_at is None)
    return record.state is HoursState.STARTING and seen.status in ("Creating", "Deleting", "Failed")


def _own_config(record: HoursRecord, sight: EndpointSight) -> str:
    """The configuration that it is created from: where our start runs the fallback, the one that it had before.

    A fallback that its owner deployed is what its owner wants.
    """
    before, mine = record.before, record.last_start
    if before is None or mine is None or sight.config_name != before.fallback_config:
        return sight.config_name
    return (
        before.config_name
        if (mine.config, mine.created_at) == (sight.config_name, sight.created_at)
        else sight.config_name
    )


def _is_replaced(config: ConfigSight, stored: Mapping[str, Any], taken_at: datetime) -> bool:
    """Whether it was made after everything was stored, with other content."""
    found, was = (
        json.dumps({k: v for k, v in body.items() if k not in CONFIG_OUTPUT}, sort_keys=True, default=str)
        for body in (config.body, stored)
    )
    return config.created_at > taken_at and found != was


def _managed_alarms(scaling: Sequence[ScalableTarget]) -> Iterator[str]:
    """Names of the alarms that target tracking makes, and deletes with its policy (Application Auto Scaling guide)."""
    for policy in (p for target in scaling for p in target.policies):
        if policy.get("PolicyType") == "TargetTrackingScaling":
            yield from (str(alarm["AlarmName"]) for alarm in policy.get("Alarms", ()))


def _models(config: ConfigSight | None) -> list[str]:
    rows = (config.body.get("ProductionVariants") or ()) if config is not None else ()
    return sorted({str(row["ModelName"]) for row in rows if row.get("ModelName")})


def _reservations(*configs: ConfigSight | None) -> list[str]:
    rows = (row for config in configs if config is not None for row in config.body.get("ProductionVariants") or ())
    return sorted({arn for row in rows if (arn := reservation_of(row))})


def _last_of(window: MetricWindow) -> datetime | None:
    series = window.series.get(REQUESTS)
    if series is None:
        return None
    ends = (series.start + timedelta(seconds=(n + 1) * PERIOD_S) for n, v in enumerate(series.values) if v > 0)
    return max(ends, default=None)


def _alive_share(window: MetricWindow) -> float:
    """The share of the periods in which its instances published their utilisation."""
    periods = max(1, round((window.end - window.start).total_seconds() / PERIOD_S))
    shares = [sum(not math.isnan(v) for v in s.values) / periods for m, s in window.series.items() if m in ALIVE]
    return max(shares, default=0.0)
