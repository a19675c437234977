"""The JSON of `backtest`. Its keys are a promise (docs/cli.md): they are added to, never renamed."""

from decimal import Decimal
from typing import Any

from rightsizer.domain.backtest import Backtest, Hindsight, Rehearsed
from rightsizer.terminal import document
from rightsizer.terminal.backtest_tables import NOT_KNOWN, Account


def document_of(found: Account) -> dict[str, Any]:
    """The whole back-test. Money is text in US dollars, times are ISO 8601 in UTC, shares 0..1."""
    seen, limits = found.calibration, found.limits
    return {
        "version": document.VERSION,
        "region": found.region,
        "at": found.at.isoformat(),
        "days": found.days,
        "limits": {
            "source": found.source,
            "changes_per_day": limits.changes_per_day,
            "usd_per_day": str(limits.usd_per_day),
            "dimensions": sorted(kind.value for kind in limits.dimensions),
        },
        "endpoints": [_endpoint(each) for each in found.tried],
        "unobserved": [{"endpoint": each.ref.name, "reason": each.reason.sentence} for each in found.unread],
        "saved_usd": str(sum((each.saved_usd for each in found.tried), Decimal(0))),
        "saved_by_plan_usd": str(sum((each.by_plan_usd for each in found.tried), Decimal(0))),
        "calibration": {
            "changes": seen.changes,
            "told": seen.told,
            "held": seen.held,
            "replayed": seen.replayed,
            "brier": _rounded(seen.brier),
            "brier_calling_each_harmless": _rounded(seen.brier_without),
            "promised_late_share": _rounded(seen.promised_late),
            "seen_late_share": _rounded(seen.seen_late),
            "promised_usd": str(seen.promised_usd),
            "saved_usd": str(seen.saved_usd),
        },
        "regret_usd": str(seen.regret_usd),
        "not_known": NOT_KNOWN,
    }


def _endpoint(each: Backtest) -> dict[str, Any]:
    first = each.changes[0] if each.changes else None
    judged = first.recommendation if first else each.last
    target = first.option.target if first else None
    missed = each.missed
    return {
        "endpoint": each.endpoint,
        "acted_on": first.decided_at.date().isoformat() if first else None,
        "change": f"{target.instance_count} x {target.instance_type}" if target else None,
        "reason": judged.gate_reason.sentence if judged else "no day with datapoints",
        "days_after": sum(change.after.days for change in each.changes),
        "saved_usd": str(each.saved_usd),
        "mornings": dict(each.mornings),
        "changes": [_change(change) for change in each.changes],
        "missed": None
        if missed is None
        else {
            "judged_at": missed.judged_at.isoformat(),
            "option": document.of_option(missed.option),
            "reason": document.of_reason(missed.why),
            "regret_usd": str(missed.regret_usd),
            "after": _after(missed.after),
        },
    }


def _change(change: Rehearsed) -> dict[str, Any]:
    return {
        "decided_at": change.decided_at.isoformat(),
        "first_day": change.first_day.isoformat(),
        "until": change.until.isoformat() if change.until else None,
        "reason": document.of_reason(change.recommendation.gate_reason),
        "option": document.of_option(change.option),
        "promised_late_share": _rounded(change.promised_late),
        "taken_back": document.of_reason(change.taken_back) if change.taken_back else None,
        "after": _after(change.after),
    }


def _after(after: Hindsight) -> dict[str, Any]:
    strain = after.strain
    return {
        "days": after.days,
        "replayed": after.replayed,
        "requests": after.requests,
        "late": after.late,
        "late_share": None if after.late is None else _rounded(after.late / max(after.requests, 1)),
        "late_likely": after.late_likely,
        "late_before": after.late_before,
        "objective_s": after.objective_s,
        "worst_p95_s": strain.worst_p95_s if strain else None,
        "hours_above_80_percent": strain.hours_above_80 if strain else None,
        "hours_above_100_percent": strain.hours_above_100 if strain else None,
        "memory_margin_gib": strain.memory_margin_gib if strain else None,
        "saved_usd": str(after.saved_usd),
        "verdict": after.verdict.value,
        "reason": document.of_reason(after.reason),
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 6)
