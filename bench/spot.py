"""Replay of Spot capacity traces: our placement rule against what people run, and against a clairvoyant.

make spot                     # or: python -m bench.spot --traces DIR --write docs/spot-replay.md
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from bench.spot_market import BOOT_S, NOTICE_S, Market, Outcome, Policy, Prices, clairvoyant_hours
from bench.spot_policies import LowestPrice, Ours, SinglePool, Spread, spare_for
from bench.spot_traces import Scenario, load
from rightsizer.errors import InputError

OURS = "ours"
SPOT_ONLY = "ours without On-Demand"
SPARE = "spread + spare"
RIVALS = ("single pool, mean", "single pool, best", "lowest price", "spread over zones")
START, END = "<!-- replay: begin -->", "<!-- replay: end -->"
TIE = 0.0005
"""Shares nearer than this are equal: a trace without a loss leaves nothing to win."""


@dataclass(frozen=True, slots=True)
class Row:
    """One policy on one scenario, mean over the seeds."""

    policy: str
    kept: float
    cost: float
    interruptions_a_day: float
    lost_minutes_a_day: float
    on_demand: float
    of_clairvoyant: float

    def kept_at(self, cost: float) -> float:
        """Capacity kept when an On-Demand base brings the cost up to `cost`; as it is when it costs that already.

        An On-Demand base of a share x of the target keeps x for certain and leaves (1 - x) to the policy.
        """
        if self.cost >= cost or self.cost >= 1:
            return self.kept
        base = (cost - self.cost) / (1 - self.cost)
        return base + (1 - base) * self.kept


def policies(scenario: Scenario) -> dict[str, list[Callable[[], Policy]]]:
    """Each policy by name; a single pool is every pool in turn."""
    target = scenario.target
    return {
        OURS: [lambda: Ours(target)],
        SPOT_ONLY: [lambda: Ours(target, fallback=False)],
        "single pool": [lambda pool=pool: SinglePool(pool) for pool in scenario.changes],  # type: ignore[misc]
        "lowest price": [LowestPrice],
        "spread over zones": [Spread],
        SPARE: [lambda: Spread(spare_for(target))],
    }


def replay(scenario: Scenario, spot_share: float, seeds: Sequence[int], without: Sequence[str] = ()) -> list[Row]:
    """Every policy on one scenario, but for those that are left out by name."""
    rows = []
    for name, variants in policies(scenario).items():
        if name in without:
            continue
        ran = [_row(name, scenario, [_run(scenario, make, spot_share, seed) for seed in seeds]) for make in variants]
        if name == "single pool":
            best = max(ran, key=lambda row: row.kept)
            rows += [_mean("single pool, mean", ran), replace(best, policy="single pool, best")]
        else:
            rows += ran
    return rows


def _run(scenario: Scenario, make: Callable[[], Policy], share: float, seed: int) -> tuple[Outcome, float]:
    prices = Prices(scenario, share, seed)
    outcome = Market(scenario, prices, scenario.target).run(make())
    return outcome, clairvoyant_hours(scenario, prices, scenario.target, outcome.cost)


def _row(name: str, scenario: Scenario, runs: Sequence[tuple[Outcome, float]]) -> Row:
    done = [outcome for outcome, _ in runs]
    return Row(
        name,
        fmean(o.kept for o in done),
        fmean(o.cost_share for o in done),
        fmean(o.interruptions for o in done) / scenario.days,
        fmean(o.lost_minutes for o in done) / scenario.days,
        fmean(o.on_demand_hours / o.wanted_hours for o in done),
        fmean(o.kept_hours / best if best else 0.0 for o, best in runs),
    )


def _mean(name: str, rows: Sequence[Row]) -> Row:
    columns = zip(*(astuple(row)[1:] for row in rows), strict=True)
    return Row(name, *(fmean(column) for column in columns))


def verdicts(scenario: Scenario, rows: Iterable[Row]) -> list[str]:
    """What is not as promised on this scenario; empty when all is."""
    by = {row.policy: row for row in rows}
    ours = by[OURS]
    wrong = []
    if ours.of_clairvoyant < 0.95:
        wrong.append(f"{scenario.name}: {ours.of_clairvoyant:.1%} of the clairvoyant at the same cost, below 95 %")
    for rival in RIVALS:
        theirs = by[rival].kept_at(ours.cost)
        if ours.kept < theirs - TIE:
            wrong.append(f"{scenario.name}: {rival} keeps {theirs:.1%} at our cost, we keep {ours.kept:.1%}")
    return wrong


def text(results: Sequence[tuple[Scenario, list[Row]]], spot_share: float, seeds: Sequence[int], command: str) -> str:
    """The report as Markdown."""
    today = datetime.now(UTC).date().isoformat()
    lines = [
        f"Run of {today}: `{command}`, seeds {', '.join(map(str, seeds))}, Spot at {spot_share:.0%} of On-Demand in "
        f"the cheapest zone and up to 1.4 times that elsewhere, "
        f"drifting by day, boot {BOOT_S / 60:.0f} min, warning {NOTICE_S:.0f} s.",
        "",
        "### Capacity at equal cost",
        "",
        "Each rival's Spot is topped up by an On-Demand base until it costs what ours costs "
        "(already dearer ones stay as they are).",
        "",
        "| trace | target | our cost | **ours keeps** | of the clairvoyant | " + " | ".join(RIVALS) + " |",
        "|---|--:|--:|--:|--:|" + "--:|" * len(RIVALS),
    ]
    for scenario, rows in results:
        by = {row.policy: row for row in rows}
        ours = by[OURS]
        cells = [f"{by[rival].kept_at(ours.cost):.1%}" for rival in RIVALS]
        lines.append(
            f"| {scenario.name} | {scenario.target} | {ours.cost:.0%} | **{ours.kept:.1%}** | "
            f"{ours.of_clairvoyant:.1%} | " + " | ".join(cells) + " |"
        )
    lines += ["", "### Each policy as it is", ""]
    for scenario, rows in results:
        lines += [
            f"**{scenario.name}**, {scenario.days:.1f} days, target {scenario.target}",
            "",
            "| policy | capacity kept | cost of On-Demand | cost per kept | interruptions a day | minutes lost a day "
            "| hours On-Demand | of the clairvoyant |",
            "|---|--:|--:|--:|--:|--:|--:|--:|",
        ]
        for row in rows:
            lines.append(
                f"| {row.policy} | {row.kept:.1%} | {row.cost:.1%} | {row.cost / row.kept if row.kept else 0:.3f} | "
                f"{row.interruptions_a_day:.1f} | {row.lost_minutes_a_day:.0f} | {row.on_demand:.0%} | "
                f"{row.of_clairvoyant:.1%} |"
            )
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay and print; 0 when every promise held, 1 when one did not, 2 when the traces cannot be read."""
    parser = argparse.ArgumentParser(prog="bench.spot", description="Replay of Spot capacity traces")
    parser.add_argument("--traces", type=Path, default=Path("../shared/traces/spot"), help="folder with the traces")
    parser.add_argument("--spot-share", type=float, default=0.35, help="Spot price as a share of On-Demand")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="seeds of the zone prices")
    parser.add_argument("--write", type=Path, help="put the numbers into this document, between its markers")
    given = parser.parse_args(arguments)
    try:
        scenarios = load(given.traces)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    results = []
    for scenario in scenarios:
        print(f"replaying {scenario.name} ...", file=sys.stderr)
        results.append((scenario, replay(scenario, given.spot_share, given.seeds)))
    report = text(results, given.spot_share, given.seeds, "make spot")
    print(report)
    if given.write:
        before, _, rest = given.write.read_text().partition(START)
        given.write.write_text(f"{before}{START}\n{report}{END}{rest.partition(END)[2]}")
    wrong = [line for scenario, rows in results for line in verdicts(scenario, rows)]
    print("\n".join(wrong) if wrong else "Every promise held on every trace.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
