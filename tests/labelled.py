"""A labelled case of tests/cases as the engine's inputs, and its judgement in the words of the README there."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from rightsizer.domain.endpoint import Endpoint, EndpointKind, EndpointRef, Mode, Objective, ScalableTarget, Variant
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.price import Commitment, PriceTable, ServerlessPrice
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.schedule import DayCounts, days_text
from rightsizer.domain.usage import OF_EACH_GPU, GpuSeries, MetricStatistic, MetricWindow, Series, VariantUsage
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.packing import find_packs
from rightsizer.render import effects
from sandbox.template import QUICK
from tests.recommender import kit
from tests.recommender.kit import judge, judge_digests

STEADY = "per_slot latency_s gpu memory host cpu swing"
WORDS = {
    "": "why source shows expected_from disputed endpoint usage beside_usage alike before history account_history"
    " tests_this_month account limits policy neighbours expect",
    "source": "url fact",
    "endpoint": "name owner type count mode p95_s error_percent min_instances kind tags framework model_gib routing"
    " scaled policies beside status no_tags owned_by unknown_fields configuration_replaced changed_days_ago no_variant"
    " least_instances",
    "usage": f"{STEADY} days hours burst_minutes on_days quiet stops_after_days gap_hours gap_hours_each_day"
    " leak_per_day errors_per_hour backlog oldest_s expired_per_day hottest_gpu each_gpu kv_cache also_published omit"
    " nan",
    "before": "until_days_ago type count usage",
    "row": "days_ago times from to from_count to_count ended failure slowdown latency_ratio demand framework models"
    " grows late_share",
    "account": "spend_usd_per_month plan_usd_per_hour no_price serverless quota other_chips eight_gpus",
    "limits": "dimensions",
    "expect": "finding reason gate gate_reason option to not_to count minimum maximum hourly weekly routing pools"
    " target_value rung behind also ruled_out said not_checked shares_with saves p95_s unsaid others",
}
"""What a case may say, by section; `row` is one of a history. `policy` holds fields of `Policy`."""


LABELS = {"finding": [f.value for f in Finding], "gate": [g.value for g in Gate]}
"""What every case expects: what the endpoint is, and what may be done."""


@cache
def read(path: Path) -> Mapping[str, Any]:
    """The case of a file, which nobody may change; ValueError where it does not say what it expects."""
    case: Mapping[str, Any] = yaml.load(path.read_text(), QUICK)
    for label, words in LABELS.items():
        given = case.get("expect", {}).get(label)
        if given not in words:
            has = "is missing" if given is None else f"is {given}"
            raise ValueError(f"{path.name}: expect.{label} {has}; say one of {', '.join(words)}")
    return case


def unread(case: Mapping[str, Any]) -> list[str]:
    """Words of the case that nothing reads, as section.word."""
    known = {name: words.split() for name, words in WORDS.items()}
    found = [word for word in case if word not in known[""]]
    given = [(name, case[name]) for name in WORDS if name in case]
    given += [("row", row) for name in ("history", "account_history") for row in case.get(name, ())]
    given += [(name, one[name]) for one in case.get("neighbours", ()) for name in one]
    given += [("usage", case.get("before", {}).get("usage", {}))]
    return found + [f"{name}.{word}" for name, section in given for word in section if word not in known[name]]


def judged(case: Mapping[str, Any]) -> Recommendation:
    """The judgement of the case's endpoint; with `before`, of days on two fleets."""
    endpoint, account = _endpoint(case.get("endpoint", {})), case.get("account", {})
    others = (kit.OTHERS if account.get("other_chips") else {}) | (kit.EIGHT if account.get("eight_gpus") else {})
    types = kit.catalogue(others)
    limits = ChangeLimits(dimensions=frozenset(map(OptionKind, case.get("limits", {}).get("dimensions", ()))))
    policy = replace(Policy(by_itself=limits.by_itself), **case.get("policy", {}))
    windows = [_window(case.get("usage", {})), *_of_others(case.get("beside_usage", {}))]
    spend = account.get("spend_usd_per_month")
    history = replace(_history(case), gpu_usd_per_month=None if spend is None else Decimal(spend))
    rest = (_prices(account), types, account.get("quota", {}), history, policy, kit.NOW)
    if "before" not in case:
        return judge(endpoint, windows, *rest)
    before, variant = case["before"], endpoint.variants[0]
    turn = (kit.NOW - timedelta(days=before["until_days_ago"])).date()
    old = VariantSetup(
        types.types[before.get("type", variant.instance_type)], before.get("count", variant.current_count)
    )
    new = VariantSetup(types.types[variant.instance_type], variant.current_count)
    days = [d for d in daily_usage(_window(before.get("usage", {})), old) if d.day < turn]
    days += [d for d in daily_usage(windows[0], new) if d.day >= turn]
    return judge_digests(endpoint, VariantUsage(endpoint.ref.name, variant.name, tuple(days)), *rest)


def said(found: Recommendation) -> dict[str, Any]:
    """What a case may expect word for word."""
    chosen = found.chosen_option
    target = chosen.target if chosen else None
    return {
        "finding": found.finding.value,
        "gate": found.gate.value,
        "reason": found.reason.code.value,
        "gate_reason": found.gate_reason.code.value,
        "option": chosen.kind.value if chosen else "none",
        "to": target.instance_type if target else "none",
        "count": target.instance_count if target else None,
        "minimum": target.minimum if target else None,
        "maximum": target.maximum if target else None,
        "hourly": _by_hour(target.hourly_counts) if target else None,
        "weekly": _by_day(target.day_counts) if target else None,
        "routing": target.routing if target else None,
        "pools": [name for o in found.options if o.kind is OptionKind.INSTANCE_POOLS for name in o.target.pools],
        "rung": found.evidence.rung if found.evidence else "L0",
        "target_value": target.target_value if target else None,
        "others": [f"{v.name} {v.instance_count} x {v.instance_type}" for v in target.others] if target else [],
        "behind": [option.kind.value for option in found.options[1:]],
        "ruled_out": {e.dimension.value: e.reason.code.value for e in found.excluded if e.dimension},
    }


def told(found: Recommendation) -> str:
    """Every sentence that the judgement says, and what its choice does and costs once, one a line."""
    options: Sequence[Option] = found.options
    notes = [text for option in options for text in (*option.notes, option.client_change)]
    ruled_out = [excluded.reason.sentence for excluded in found.excluded]
    once = [f"once USD {found.chosen_option.switch_usd}, {effects.restart_of(found)}"] if found.chosen_option else []
    done = [*once, effects.way_back_of(found)]
    return "\n".join((found.reason.sentence, found.gate_reason.sentence, *notes, *ruled_out, *done))


def outside(found: Recommendation, expected: Mapping[str, Any]) -> list[str]:
    """Figures of the chosen option that are not between the two that the case expects: USD a month, seconds."""
    chosen = found.chosen_option
    figures = {
        "saves": float(chosen.saving_usd_per_month) if chosen else 0.0,
        "p95_s": chosen.p95_s if chosen else None,
    }
    return [
        f"{name} is {figure}, and {expected[name]} is expected"
        for name, figure in figures.items()
        if name in expected and (figure is None or not expected[name][0] <= figure <= expected[name][1])
    ]


def unstable(case: Mapping[str, Any], found: Recommendation) -> list[str]:
    """What differs on endpoints with the same load but for the noise that `alike` gives them, each by its usage."""
    first = said(found)
    others = [(usage, said(judged({**case, "usage": {**case.get("usage", {}), **usage}}))) for usage in case["alike"]]
    same = ("finding", "gate", "option", "to", "count")
    return [
        f"{key} is {other[key]}, not {first[key]}, with {usage}"
        for usage, other in others
        for key in same
        if other[key] != first[key]
    ]


def partners(case: Mapping[str, Any], found: Recommendation) -> list[str]:
    """The neighbours that the report would put on one card with the endpoint."""
    groups = find_packs([found, *map(judged, case.get("neighbours", ()))], Policy())
    mine = [name for group in groups if found.ref.name in group.endpoints for name in group.endpoints]
    return [name for name in mine if name != found.ref.name]


def _by_hour(counts: tuple[int, ...] | None) -> dict[str, int] | None:
    """Counts of the 24 hours by stretches of equal counts: ``8-17: 3`` is from 08:00 to 18:00 UTC."""
    if counts is None:
        return None
    runs = [list(hours) for _, hours in groupby(range(24), lambda hour: counts[hour])]
    return {f"{hours[0]}-{hours[-1]}": counts[hours[0]] for hours in runs}


def _by_day(classes: tuple[DayCounts, ...]) -> dict[str, Any] | None:
    """The counts of each class of days, as ``Mon-Fri``; None where all days are alike."""
    return {days_text(one.weekdays): _by_hour(one.counts) for one in classes} or None


def _endpoint(given: Mapping[str, Any]) -> Endpoint:
    made = kit.endpoint(
        given.get("type", "ml.g6e.xlarge"),
        given.get("count", 1),
        Mode(given.get("mode", "auto")),
        given.get("p95_s"),
        EndpointKind(given.get("kind", "real-time")),
        given.get("framework", "pytorch"),
        given.get("routing", "LEAST_OUTSTANDING_REQUESTS"),
    )

    def managed(variant: Variant) -> Variant:
        return replace(variant, least_instances=given.get("least_instances"))

    scaled, errors = given.get("scaled"), given.get("error_percent")
    others: Mapping[str, Sequence[Any]] = given.get("beside", {})
    return replace(
        made,
        ref=EndpointRef(made.ref.account, made.ref.region, given.get("name", made.ref.name)),
        owner=given.get("owner", made.owner),
        status=given.get("status", "InService"),
        objective=Objective(
            given.get("p95_s"), None if errors is None else errors / 100, min_instances=given.get("min_instances")
        ),
        modified_at=kit.NOW - timedelta(days=given.get("changed_days_ago", 60)),
        owned_by=given.get("owned_by", ""),
        unknown_fields=tuple(given.get("unknown_fields", ())),
        configuration_replaced=given.get("configuration_replaced", False),
        tags={k: v for k, v in {**made.tags, **given.get("tags", {})}.items() if k not in given.get("no_tags", ())},
        model_data_bytes=int(given["model_gib"] * 1024**3) if "model_gib" in given else None,
        scaling=(
            *([_scaled(scaled[0], scaled[1], given.get("policies", {}))] if scaled else ()),
            *(_scaled(bounds[0], bounds[1], {}, name) for name, (_, _, *bounds) in others.items() if bounds),
        ),
        variants=() if given.get("no_variant") else (*map(managed, made.variants), *map(_variant, others.items())),
    )


def _variant(given: tuple[str, Sequence[Any]]) -> Variant:
    """Another production variant: its name, and its type, its count and, where autoscaled, its bounds."""
    name, (instance_type, count, *_) = given
    return Variant(name, "model", instance_type, count, count, 1.0)


def _scaled(minimum: int, maximum: int, policies: Mapping[str, float], variant: str = "AllTraffic") -> ScalableTarget:
    """Autoscaling whose target-tracking policies keep each predefined metric, or the p95 in seconds, at a value."""
    rows = tuple(
        {
            "PolicyName": f"keep-{metric}",
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": _tracking(metric, value),
        }
        for metric, value in policies.items()
    )
    return ScalableTarget(f"endpoint/e/variant/{variant}", "d", minimum, maximum, policies=rows)


def _tracking(metric: str, value: float) -> dict[str, Any]:
    if metric != "p95 of ModelLatency":
        return {"TargetValue": value, "PredefinedMetricSpecification": {"PredefinedMetricType": metric}}
    query = {
        "Id": "p95",
        "MetricStat": {"Metric": {"Namespace": "AWS/SageMaker", "MetricName": "ModelLatency"}, "Stat": "p95"},
    }
    return {"TargetValue": value * 1e6, "CustomizedMetricSpecification": {"Metrics": [query]}}


def _window(given: Mapping[str, Any]) -> MetricWindow:
    signals = kit.steady(**{k: v for k, v in given.items() if k in STEADY.split()})
    if "errors_per_hour" in given:
        signals["Invocation5XXErrors", "Sum"] = given["errors_per_hour"] / 12
    if "hottest_gpu" in given:
        signals["GPUUtilization", "Maximum"] = float(given["hottest_gpu"])
    if "backlog" in given:
        signals["ApproximateBacklogSize", "Maximum"] = float(given["backlog"])
    if "oldest_s" in given:
        signals["ApproximateAgeOfOldestRequest", "Maximum"] = float(given["oldest_s"])
    if "expired_per_day" in given:
        signals["ExpiredRequests", "Sum"] = given["expired_per_day"] / 288
    for name, value in given.get("also_published", {}).items():
        signals[name, "Average"] = float(value)
    made = kit.window(signals, days=given.get("days", 14))
    kept = {key: value for key, value in made.series.items() if key.metric not in given.get("omit", ())}
    idle = _idle_periods(given.get("days", 14) * 288, given)
    return replace(
        made,
        series={key: _shaped(key, value, given, idle) for key, value in kept.items()},
        gpus=_gpus(made, given, idle),
        kv_cache=_kv_cache(made, given),
    )


def _of_others(given: Mapping[str, Mapping[str, Any]]) -> list[MetricWindow]:
    """The windows of the variants beside the first."""
    return [replace(_window(usage), variant=name) for name, usage in given.items()]


def _kv_cache(made: MetricWindow, given: Mapping[str, Any]) -> Series | None:
    """The share of its KV cache that a server had in use, given in percent."""
    if "kv_cache" not in given:
        return None
    return Series(made.start, made.period_s, array("d", [given["kv_cache"] / 100]) * (given.get("days", 14) * 288))


def _gpus(made: MetricWindow, given: Mapping[str, Any], idle: Sequence[int]) -> tuple[GpuSeries, ...]:
    """What each GPU of one instance published: pairs of utilisation and memory, shaped as the whole instance is."""
    found = []
    for number, pair in enumerate(given.get("each_gpu", ())):
        rows = []
        for key, value in zip(OF_EACH_GPU, pair, strict=True):
            flat = Series(made.start, made.period_s, array("d", [float(value)]) * (given.get("days", 14) * 288))
            rows.append(_shaped(key, flat, given, idle))
        found.append(GpuSeries("i-0", str(number), *rows))
    return tuple(found)


def _shaped(key: MetricStatistic, series: Series, given: Mapping[str, Any], idle: Sequence[int]) -> Series:
    """The series with its hours of traffic, its gaps and its growth; `idle` are the periods without traffic."""
    values, quiet = array("d", series.values), given.get("quiet", 0.0)
    size, gap, daily = len(values), given.get("gap_hours", 0) * 12, given.get("gap_hours_each_day", 0) * 12
    if key.metric in ("Invocations", "GPUUtilization", "Invocation5XXErrors", "ApproximateBacklogSize"):
        for i in idle:
            values[i] *= quiet
    if key.metric == "ModelLatency" and not quiet:
        for i in idle:
            values[i] = float("nan")
    if key.metric == "GPUMemoryUtilization" and given.get("leak_per_day"):
        for i in range(size):
            values[i] *= 1 + given["leak_per_day"] * (i // 288)
    lost = [i for i in range(size) if i % 288 < daily] if daily else []
    for i in range(size) if key.metric in given.get("nan", ()) else [*range(size // 2, size // 2 + gap), *lost]:
        values[i] = float("nan")
    return Series(series.start, series.period_s, values)


def _idle_periods(size: int, given: Mapping[str, Any]) -> list[int]:
    """The periods of five minutes without traffic."""
    low, high = given.get("hours", (0, 24))
    days, last = given.get("on_days", range(400)), given.get("stops_after_days", 400)
    burst = given.get("burst_minutes", 60)
    served = [low <= i // 12 < high and i % 12 * 5 < burst for i in range(288)]
    on = [day in days and day < last for day in range(size // 288 + 1)]
    return [i for i in range(size) if not (served[i % 288] and on[i // 288])]


def _history(case: Mapping[str, Any]) -> History:
    own = _changes(case.get("history", ()))
    month = (kit.NOW.year, kit.NOW.month)
    tests = sum(p.ended is PastEnd.TESTED and (p.at.year, p.at.month) == month for p in own)
    elsewhere = _changes(case.get("account_history", ()))
    return History(own, elsewhere, tests_this_month=case.get("tests_this_month", tests))


def _changes(rows: Sequence[Mapping[str, Any]]) -> tuple[PastChange, ...]:
    """Past changes, oldest first; a row with `times_text` stands for so many alike."""
    made = [
        PastChange(
            kit.NOW - timedelta(days=row["days_ago"]),
            row.get("from", "ml.g6e.xlarge"),
            row["to"],
            row.get("from_count", 1),
            row.get("to_count", 1),
            PastEnd(row["ended"]),
            failure=row.get("failure", ""),
            realised_slowdown=row.get("slowdown"),
            demand=row.get("demand"),
            framework=row.get("framework", ""),
            latency_ratio=row.get("latency_ratio"),
            models=tuple(row.get("models", ())),
            grows=row.get("grows", False),
            late_share=row.get("late_share"),
        )
        for row in rows
        for _ in range(row.get("times", 1))
    ]
    return tuple(sorted(made, key=lambda past: past.at))


def _prices(account: Mapping[str, Any]) -> PriceTable:
    plan = Commitment(Decimal(str(account.get("plan_usd_per_hour", 0))), known=True)
    prices = kit.prices(account.get("no_price", ()), plan)
    if not account.get("serverless"):
        return prices
    return replace(prices, serverless=ServerlessPrice("us-east-1", Decimal(account["serverless"]), "2026-09", "test"))
