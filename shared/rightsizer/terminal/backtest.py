"""`rightsizer backtest`: what automatic mode would have done over the look-back. Reads only."""

from decimal import Decimal
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from rightsizer import bootstrap
from rightsizer.aws.session import Session
from rightsizer.flows.backtest import Backtest, backtests
from rightsizer.flows.evaluate import Watcher
from rightsizer.model.observation import Unobserved
from rightsizer.model.policy import Policy
from rightsizer.model.reason import Reason
from rightsizer.terminal import document, show
from rightsizer.terminal.app import AsJson, EndpointUrl, Profile, Region, app, print_json
from rightsizer.terminal.exits import Exit


@app.command(epilog="Example: rightsizer backtest --days 14 --region eu-west-1")
def backtest(
    days: Annotated[int, typer.Option("--days", min=2, max=63, help="Days to look back.")] = 14,
    region: Region = None,
    profile: Profile = None,
    endpoint_url: EndpointUrl = None,
    as_json: AsJson = False,
) -> None:
    """Judge every past morning with what was known then, as if each endpoint were opted in."""
    session = Session(region, profile, endpoint_url)
    ports = bootstrap.reading_ports(session)
    lost: list[Reason] = []
    summaries = list(ports.fleet.list_endpoints())
    policy, watcher = Policy(lookback_days=days), Watcher(told=lost.append)
    results = list(backtests(ports, summaries, policy, bootstrap.now(), watcher))
    tried = sorted((each for each in results if isinstance(each, Backtest)), key=lambda each: -each.saved_usd)
    unread = [each for each in results if isinstance(each, Unobserved)]
    if as_json:
        print_json(
            {
                "version": document.VERSION,
                "days": days,
                "endpoints": [_row(each) for each in tried],
                "unobserved": [{"endpoint": each.ref.name, "reason": each.reason.sentence} for each in unread],
                "saved_usd": str(sum((each.saved_usd for each in tried), Decimal(0))),
            }
        )
    else:
        show.output().print(_table(tried))
    errors = Console(stderr=True)
    for reason in dict.fromkeys([*lost, *(each.reason for each in unread)]):
        errors.print(f"warning: {reason.sentence}", style="yellow", markup=False)
    raise typer.Exit(Exit.SAVINGS_FOUND if any(each.acted_on for each in tried) else Exit.NOTHING_TO_DO)


def _row(each: Backtest) -> dict[str, Any]:
    return {
        "endpoint": each.endpoint,
        "acted_on": each.acted_on.isoformat() if each.acted_on else None,
        "change": _change(each),
        "reason": each.recommendation.gate_reason.sentence if each.recommendation else "no day with datapoints",
        "days_after": each.days_after,
        "saved_usd": str(each.saved_usd),
        "mornings": dict(each.mornings),
    }


def _change(each: Backtest) -> str | None:
    chosen = each.recommendation.chosen if each.recommendation else None
    if each.acted_on is None or chosen is None:
        return None
    return f"{chosen.target.instance_count} x {chosen.target.instance_type}"


def _table(tried: list[Backtest]) -> Table:
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("Endpoint", "Would have acted", "To", "Days after", "Saved USD", "Reason"):
        rows.add_column(title, overflow="fold", justify="right" if title in ("Days after", "Saved USD") else "left")
    for each in tried:
        row = _row(each)
        when = row["acted_on"] or "never"
        rows.add_row(
            each.endpoint, when, row["change"] or "", str(each.days_after), f"{each.saved_usd:,.0f}", row["reason"]
        )
    total = sum((each.saved_usd for each in tried), Decimal(0))
    rows.add_row("all", "", "", "", f"{total:,.0f}", "over the look-back, less the cost of the switches")
    return rows
