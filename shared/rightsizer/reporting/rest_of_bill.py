"""The rest of the bill: orphans, warm pools that wait for nobody, and endpoints that serve a nightly batch.

Everything here is advice. Sources: SageMaker API reference, WarmPoolStatus (billable seconds are of each instance) and
TransformInstanceType; SageMaker guide, batch transform (billed while the job runs) and endpoint configurations.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from rightsizer.domain.account_finding import (
    LEAST_USD,
    AccountFinding,
    AccountFindingCode,
    FindingItem,
    ServedResources,
    StoredResource,
    WarmPoolUse,
    waits_for_nobody,
)
from rightsizer.domain.endpoint import EndpointKind, Mode
from rightsizer.domain.hardware import TRANSFORM_FAMILIES
from rightsizer.domain.price import CENT, HOURS_PER_MONTH, PriceTable
from rightsizer.domain.reason import count
from rightsizer.domain.recommendation import Recommendation

OLD_ENOUGH = timedelta(days=30)
"""Age from which a configuration or a model that nothing uses is listed: a younger one may be on its way."""
WARM_POOL_DAYS = 30
"""Days of training jobs that are looked at."""
BATCH_DAYS = 7
"""Whole days with requests that must have been seen, so that a weekly batch is no nightly one."""
BATCH_HOURS = 6
"""Longest daily stretch that counts as a batch; an assumption: a working day is longer."""
BATCH_SHARE = 0.995
"""Share of the requests that must lie in it: a health check or a try by hand is no caller."""
START_H = 0.25
"""Hours that instances of a transform job take to start and load, and are billed here, a run; an assumption."""
NIGHTS = (
    "whether somebody deletes an endpoint at night and creates it again from it; known is what the office hours of the"
    " stack that was found stopped"
)
"""Open question of every orphan: a stopped endpoint does not exist."""


@dataclass(frozen=True, slots=True)
class StoredResources:
    """Configurations and models of the account, those that are used, and configurations that CloudWatch still shows."""

    configurations: Sequence[StoredResource]
    models: Sequence[StoredResource]
    served: ServedResources
    seen_lately: Collection[str] = ()
    """Configurations with metrics of the last two weeks: published around guarded deployments only."""


def orphan_findings(stored_resources: StoredResources, now: datetime) -> Iterator[AccountFinding]:
    """Configurations and models that no endpoint uses, with their age; never more than a list."""
    configurations = _orphans(stored_resources.configurations, stored_resources.served.configurations, now)
    if configurations:
        yield AccountFinding(
            AccountFindingCode.ORPHAN_CONFIGURATIONS,
            f"{count(len(configurations), 'endpoint configuration')} of {len(stored_resources.configurations)}"
            f" {'is' if len(configurations) == 1 else 'are'} used by no endpoint",
            Decimal(0),
            "delete what nobody goes back to (aws sagemaker delete-endpoint-config); keep the one that an endpoint ran"
            " before its last change, those tagged rightsizer:change, which a rollback deploys, and those of endpoints"
            " that are stopped for the night",
            evidence={"billed": "nothing: SageMaker bills no configuration", "listed from": f"{OLD_ENOUGH.days} days"},
            items=tuple(
                _item(resource, now, resource.name in stored_resources.seen_lately) for resource in configurations
            ),
            not_checked=(NIGHTS, "when each was last used, where it says nothing: AWS keeps no such date"),
        )
    models = _orphans(stored_resources.models, stored_resources.served.models, now)
    if models:
        yield AccountFinding(
            AccountFindingCode.ORPHAN_MODELS,
            f"{count(len(models), 'model')} of {len(stored_resources.models)} {'is' if len(models) == 1 else 'are'}"
            " served by no endpoint",
            Decimal(0),
            "delete what nothing names any more (aws sagemaker delete-model), then its data in S3 and its image in ECR,"
            " which are billed as storage; keep what an endpoint needs that is stopped for the night",
            evidence={"billed": "nothing by SageMaker", "listed from": f"{OLD_ENOUGH.days} days"},
            items=tuple(_item(resource, now, False) for resource in models),
            not_checked=(
                NIGHTS,
                "whether transform jobs, pipelines or an unused endpoint configuration name it",
                "the size of its data in S3 and of its image: what they cost is in no figure",
                "when each was last used: AWS keeps no such date",
            ),
        )


def _orphans(resources: Iterable[StoredResource], served: Collection[str], now: datetime) -> list[StoredResource]:
    """Resources that are old enough and unused, the oldest first."""
    found = [
        resource for resource in resources if resource.name not in served and now - resource.created_at >= OLD_ENOUGH
    ]
    return sorted(found, key=lambda resource: (resource.created_at, resource.name))


def _item(resource: StoredResource, now: datetime, lately: bool) -> FindingItem:
    used = "within the last two weeks" if lately else ""
    return FindingItem(
        resource.name, f"{(now - resource.created_at).days} days old", resource.created_at, used, Decimal(0)
    )


def warm_pool_finding(uses: Sequence[WarmPoolUse], prices: PriceTable, days: float) -> AccountFinding | None:
    """Warm pools that were billed while nobody took them over, priced by the month; None where they pay."""
    told = [pool for pool in uses if not pool.is_opted_out and pool.tags_unread is None]  # unread is no leave to tell
    wasted = [pool for pool in told if waits_for_nobody(pool.reused, pool.kept)]
    items = [_pool_item(pool, prices, days) for pool in wasted]
    known = [item.usd_per_month for item in items if item.usd_per_month is not None]
    if not items or (len(known) == len(items) and sum(known, Decimal(0)) < LEAST_USD):
        return None
    unpriced = [pool.work for pool, item in zip(wasted, items, strict=True) if item.usd_per_month is None]
    kept, unused = sum(pool.kept for pool in wasted), sum(pool.kept - pool.reused for pool in wasted)
    return AccountFinding(
        AccountFindingCode.WARM_POOLS,
        f"{unused} of {kept} warm pools of {count(len(items), 'training work')} waited for no other run",
        sum(known, Decimal(0)) if known else None,
        "set KeepAlivePeriodInSeconds to 0 where runs do not follow within minutes; see `rightsizer training`",
        evidence={"looked at": f"{days:.0f} days of training jobs", "priced by": "the On-Demand hosting price"},
        items=tuple(sorted(items, key=lambda item: (-(item.usd_per_month or Decimal(0)), item.name))),
        not_checked=tuple(f"the price of {work}: its instance type has none here" for work in unpriced),
    )


def _pool_item(each: WarmPoolUse, prices: PriceTable, days: float) -> FindingItem:
    price, hours = prices.find(each.instance_type), Decimal(str(each.unused_s)) / 3600 * each.instance_count
    month = HOURS_PER_MONTH / 24 / Decimal(str(days))
    usd = None if price is None else (hours * price.usd_per_hour * month).quantize(CENT)
    fleet = f"{each.instance_count} × {each.instance_type}"
    detail = f"{each.reused} of {each.kept} taken over, {hours:.1f} instance hours of {fleet} unused"
    return FindingItem(each.work, detail, usd_per_month=usd, owner=each.owner)


def batch_findings(recommendations: Iterable[Recommendation]) -> Iterator[AccountFinding]:
    """Real-time endpoints whose requests all come in one stretch a day: what a transform job would cost instead."""
    for recommendation in recommendations:
        finding = _batch_finding(recommendation)
        if finding is not None:
            yield finding


def _batch_finding(recommendation: Recommendation) -> AccountFinding | None:
    if recommendation.kind is not EndpointKind.REAL_TIME or recommendation.mode is Mode.OFF:
        return None
    if recommendation.price is None or not recommendation.usd_per_month or recommendation.beside:
        return None
    if recommendation.instance_type.split(".")[1] not in TRANSFORM_FAMILIES:
        return None
    window = daily_window(recommendation.hourly_requests)
    if window is None:
        return None
    daily = Decimal(str(round(window.busy_hours / window.days + START_H * window.runs / window.days, 4)))
    cost = (daily * recommendation.instance_count * recommendation.price.usd_per_hour * HOURS_PER_MONTH / 24).quantize(
        CENT
    )
    saving = recommendation.usd_per_month - cost
    if saving < max(LEAST_USD, recommendation.identified_usd_per_month):
        return None
    until = (window.start + window.hours) % 24
    own = recommendation.identified_usd_per_month
    instead = f", instead of the USD {own:,.2f} of its own option" if own else ""
    return AccountFinding(
        AccountFindingCode.BATCH_TRANSFORM,
        f"{recommendation.ref.name} answers only between {window.start:02d}:00 and {until:02d}:00 UTC"
        f" ({100 * window.share:.1f} % of its requests, {window.runs} of {window.days} days) and is billed all day",
        saving,
        "where no caller waits for an answer: a batch transform job with the same model (CreateTransformJob) from a"
        f" schedule, input and output in S3, and no endpoint{instead}",
        endpoint=recommendation.ref.name,
        owner=recommendation.owner,
        evidence={
            "today": f"USD {recommendation.usd_per_month:,.2f} a month",
            "as a transform job": f"USD {cost:,.2f} a month, {daily:.2f} hours a day of"
            f" {recommendation.instance_count} × {recommendation.instance_type}"
            f" with {60 * START_H:.0f} minutes to start",
            "break-even": "dearer than an endpoint only where the jobs run all day, for both pay by the hour",
        },
        not_checked=(
            "whether a caller waits for the answer",
            "the BatchTransform price of the type: it is taken to be the hosting price",
            "how fast a transform job works through the same requests: the hours with requests are taken",
        ),
    )


@dataclass(frozen=True, slots=True)
class DailyWindow:
    """The stretch of the day in which an endpoint is called."""

    start: int
    """Hour of the day, UTC."""
    hours: int
    share: float
    """Share of all requests in it, 0..1."""
    days: int
    """Days that were looked at."""
    runs: int
    """Days with a request."""
    busy_hours: int
    """Hours with a request, of all days."""


def daily_window(hourly: Sequence[float | None]) -> DailyWindow | None:
    """The shortest stretch of at most six hours with nearly all requests, from whole days; None where there is none.

    `hourly` begins at 00:00 UTC. Hours that are not known make a day count as not seen.
    """
    whole = [hourly[at : at + 24] for at in range(0, len(hourly) - 23, 24)]
    days = [[hour or 0.0 for hour in day] for day in whole if None not in day]
    runs = sum(1 for day in days if any(day))
    if runs < BATCH_DAYS:
        return None
    by_hour = [sum(day[hour] for day in days) for hour in range(24)]
    total = sum(by_hour)
    for length in range(1, BATCH_HOURS + 1):
        held = [sum(by_hour[(start + step) % 24] for step in range(length)) for start in range(24)]
        best = max(range(24), key=lambda start: held[start])
        if held[best] >= BATCH_SHARE * total:
            hours = {(best + step) % 24 for step in range(length)}
            busy = sum(1 for day in days for hour in hours if day[hour])
            return DailyWindow(best, length, held[best] / total, len(days), runs, busy)
    return None
