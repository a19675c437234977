"""`rightsizer backtest`: what automatic mode would have done, and how it would have gone. Reads only.

The keys of its JSON are a promise (docs/cli-json.md): they are added to, never renamed.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import typer

from rightsizer import bootstrap
from rightsizer.aws.account import parameters_of
from rightsizer.aws.session import Session
from rightsizer.backtest.later_days import calibrate
from rightsizer.bootstrap.evaluation import policy_of
from rightsizer.bootstrap.policy import policy_of_parameters
from rightsizer.domain.backtest import Backtest, BacktestChange, Hindsight
from rightsizer.domain.endpoint import Unobserved
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import ReadError, SettingsError
from rightsizer.flows.backtest import BacktestPeriod, backtests
from rightsizer.flows.evaluate import ProgressWatcher
from rightsizer.settings import Settings, change_limits, from_environment
from rightsizer.terminal import document, tables
from rightsizer.terminal.app import (
    AsJson,
    EndpointUrl,
    Exit,
    Profile,
    Region,
    app,
    examples,
    open_session,
    print_json,
    progress_of,
)
from rightsizer.terminal.backtest_tables import NOT_KNOWN, BacktestedAccount, backtest_page
from rightsizer.terminal.tables import Screen

UNTESTED = (Code.OTHER_KIND, Code.VANISHED)
"""Reasons for which an endpoint is not tested though everything was read."""


def _limits(text: str | None) -> str | None:
    try:
        change_limits(text or "{}")
    except SettingsError as error:
        raise typer.BadParameter(str(error).replace("RIGHTSIZER_LIMITS", "--limits")) from None
    return text


@app.command(
    epilog=examples(
        "rightsizer backtest --region eu-west-1",
        """rightsizer backtest --limits '{"dimensions": ["schedule"]}'  # with counts by the hour""",
    )
)
def backtest(
    days: Annotated[int, typer.Option("--days", min=2, max=63, help="Days to go back; CloudWatch keeps 63.")] = 14,
    region: Region = None,
    profile: Profile = None,
    endpoint_url: EndpointUrl = None,
    stack: Annotated[
        str,
        typer.Option("--stack", envvar="RIGHTSIZER_STACK", help="Name of the stack whose parameter Limits is taken."),
    ] = "rightsizer",
    limits: Annotated[
        str | None,
        typer.Option("--limits", callback=_limits, metavar="JSON", help="Limits to try instead of the stack's."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what automatic mode would have done in past days.

    Reads only. Each past morning is judged with what was known then, as if every endpoint had the tag
    rightsizer:mode=auto. The days after a change are replayed on the new instances. How fast a type is that never ran
    is known between two bounds only; where they disagree, the verdict says so.
    """
    session = open_session(region, profile, endpoint_url)
    errors = Screen(stderr=True)
    settings, source = _settings(session, stack, limits, errors)
    ports, now, lost = bootstrap.reading_ports(session), bootstrap.now(), list[Reason]()
    summaries = list(ports.fleet.list_endpoints())
    policy = policy_of(settings)
    with progress_of("testing endpoints") as report:
        watcher = ProgressWatcher(done=_steps(report, len(summaries)), told=lost.append)
        results = list(backtests(ports, summaries, BacktestPeriod(days, policy, settings.limits), now, watcher))
    tried = sorted(
        (each for each in results if isinstance(each, Backtest)), key=lambda each: (-each.saved_usd, each.endpoint)
    )
    unread = [each for each in results if isinstance(each, Unobserved)]
    backtested = BacktestedAccount(
        session.region, now, days, source, settings.limits, tuple(tried), tuple(unread), calibrate(tried, policy)
    )
    if as_json:
        print_json(document_of(backtested))
    else:
        console = tables.output()
        console.print(backtest_page(backtested, console.width))
    for reason in dict.fromkeys([*lost, *(unobserved.reason for unobserved in unread)]):
        errors.print(f"warning: {reason.sentence}", style="yellow", markup=False)
    whole = not lost and all(unobserved.reason.code in UNTESTED for unobserved in unread)
    acts = any(each.changes for each in tried)
    raise typer.Exit(Exit.SAVINGS_FOUND if acts else Exit.NOTHING_TO_DO if whole else Exit.INCOMPLETE)


def _settings(session: Session, stack: str, limits: str | None, errors: Screen) -> tuple[Settings, str]:
    """The operator's settings and where they are from; the defaults, with a warning, where nobody may read them."""
    if limits is not None:
        return from_environment({"RIGHTSIZER_LIMITS": limits}), "--limits"
    try:
        given = parameters_of(session, stack)
    except ReadError as error:
        errors.print(f"warning: the defaults of Limits are taken: {error}", style="yellow", markup=False)
        return Settings(), "the defaults of Limits, the stack's could not be read"
    if given is None:
        return Settings(), f"the defaults of Limits, no stack {stack} is deployed here"
    change_limits(given.get("Limits", "{}"))  # with limits that mean nothing the stack changes nothing
    stack_policy = policy_of_parameters(session, given)
    if stack_policy.unread:
        errors.print(f"warning: the policy document is left out: {stack_policy.unread}", style="yellow", markup=False)
    if stack_policy.account_limits.misread:  # likewise, and a back-test would show otherwise
        raise SettingsError(stack_policy.account_limits.misread[0])
    also = f" and its policy document {stack_policy.name}" if stack_policy.document else ""
    return stack_policy.account_settings, f"Limits of the stack {stack}{also}"


def _steps(report: Callable[[int, int], None], number: int) -> Callable[[], None]:
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        report(done, number)

    report(0, number)
    return step


def document_of(backtested: BacktestedAccount) -> dict[str, Any]:
    """The whole back-test. Money is text in US dollars, times are ISO 8601 in UTC, shares 0..1."""
    calibration, limits = backtested.calibration, backtested.limits
    return {
        "version": document.VERSION,
        "region": backtested.region,
        "at": backtested.at.isoformat(),
        "days": backtested.days,
        "limits": {
            "source": backtested.source,
            "changes_per_day": limits.changes_per_day,
            "usd_per_day": str(limits.usd_per_day),
            "dimensions": sorted(kind.value for kind in limits.dimensions),
        },
        "endpoints": [_endpoint(each) for each in backtested.tried],
        "unobserved": [
            {"endpoint": unobserved.ref.name, "reason": unobserved.reason.sentence} for unobserved in backtested.unread
        ],
        "saved_usd": str(sum((each.saved_usd for each in backtested.tried), Decimal(0))),
        "saved_by_plan_usd": str(sum((each.by_plan_usd for each in backtested.tried), Decimal(0))),
        "calibration": {
            "changes": calibration.changes,
            "told": calibration.told,
            "held": calibration.held,
            "replayed": calibration.replayed,
            "brier": _round_share(calibration.brier),
            "brier_calling_each_harmless": _round_share(calibration.brier_without),
            "promised_late_share": _round_share(calibration.promised_late),
            "seen_late_share": _round_share(calibration.seen_late),
            "promised_usd": str(calibration.promised_usd),
            "saved_usd": str(calibration.saved_usd),
        },
        "regret_usd": str(calibration.regret_usd),
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
        "variants_not_played": list(each.left_out),
        "changes": [_change(change) for change in each.changes],
        "missed": None
        if missed is None
        else {
            "judged_at": missed.judged_at.isoformat(),
            "option": document.option_document(missed.option),
            "reason": document.reason_document(missed.why),
            "regret_usd": str(missed.regret_usd),
            "after": _after(missed.after),
        },
    }


def _change(change: BacktestChange) -> dict[str, Any]:
    return {
        "decided_at": change.decided_at.isoformat(),
        "first_day": change.first_day.isoformat(),
        "until": change.until.isoformat() if change.until else None,
        "reason": document.reason_document(change.recommendation.gate_reason),
        "option": document.option_document(change.option),
        "promised_late_share": _round_share(change.promised_late),
        "taken_back": document.reason_document(change.taken_back) if change.taken_back else None,
        "after": _after(change.after),
    }


def _after(after: Hindsight) -> dict[str, Any]:
    strain = after.strain
    return {
        "days": after.days,
        "replayed": after.was_replayed,
        "requests": after.requests,
        "late": after.late,
        "late_share": None if after.late is None else _round_share(after.late / max(after.requests, 1)),
        "late_likely": after.late_likely,
        "late_before": after.late_before,
        "objective_s": after.objective_s,
        "worst_p95_s": strain.worst_p95_s if strain else None,
        "hours_above_80_percent": strain.hours_above_80 if strain else None,
        "hours_above_100_percent": strain.hours_above_100 if strain else None,
        "memory_margin_gib": strain.memory_margin_gib if strain else None,
        "saved_usd": str(after.saved_usd),
        "verdict": after.verdict.value,
        "reason": document.reason_document(after.reason),
    }


def _round_share(share: float | None) -> float | None:
    return None if share is None else round(share, 6)
