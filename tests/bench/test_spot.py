"""The replay bills, interrupts and compares as it says."""

import csv
import lzma
from pathlib import Path

import pytest

from bench.spot import Row, main, replay, verdicts
from bench.spot_market import BOOT_S, Market, Prices, clairvoyant_hours
from bench.spot_policies import Ours, SinglePool, Spread
from bench.spot_traces import PLENTY, Scenario, load
from rightsizer.domain.spot import Pool
from rightsizer.errors import InputError

A, B = Pool("g5.xlarge", "us-east-1a"), Pool("g5.xlarge", "us-east-1b")
HOUR = 3600.0


def scenario(a: list[tuple[float, int]], b: list[tuple[float, int]] | None = None, hours: float = 24) -> Scenario:
    changes = {A: tuple(a)} | ({B: tuple(b)} if b else {})
    return Scenario("made", changes, hours * HOUR, target=4)


def test_an_undisturbed_pool_loses_only_the_first_boot() -> None:
    outcome = Market(made := scenario([(0, PLENTY)]), Prices(made, 0.35, 1), 4).run(SinglePool(A))
    assert outcome.lost_minutes == pytest.approx(4 * BOOT_S / 60)
    assert outcome.interruptions == 0


def test_an_interruption_costs_us_the_boot_less_the_notice() -> None:
    made = scenario([(0, PLENTY), (10 * HOUR, 0)], [(0, PLENTY)])
    outcome = Market(made, Prices(made, 0.35, 1), 4).run(Ours(4))
    assert outcome.interruptions == 2
    assert outcome.lost_minutes == pytest.approx(4 * 5 + 2 * 3)


def test_who_waits_for_the_loss_loses_the_whole_boot() -> None:
    made = scenario([(0, PLENTY), (10 * HOUR, 0)], [(0, PLENTY)])
    outcome = Market(made, Prices(made, 0.35, 1), 4).run(Spread())
    assert outcome.lost_minutes == pytest.approx(4 * 5 + 2 * 5)


def test_without_any_pool_we_keep_the_capacity_on_demand() -> None:
    made = scenario([(0, PLENTY), (2 * HOUR, 0)])
    outcome = Market(made, Prices(made, 0.35, 1), 4).run(Ours(4))
    assert outcome.lost_minutes == pytest.approx(4 * 5 + 4 * 3)
    assert outcome.on_demand_hours > 4 * 21


def test_we_return_to_spot_when_a_pool_opens_again() -> None:
    made = scenario([(0, PLENTY), (2 * HOUR, 0), (4 * HOUR, PLENTY)])
    outcome = Market(made, Prices(made, 0.35, 1), 4).run(Ours(4))
    assert outcome.on_demand_hours == pytest.approx(4 * 2, abs=4 * 0.6)
    assert outcome.lost_minutes == pytest.approx(4 * 5 + 4 * 3), "the change back keeps the capacity"


def test_a_pool_gives_no_more_than_it_has() -> None:
    made = scenario([(0, 3)])
    outcome = Market(made, Prices(made, 0.35, 1), 4).run(SinglePool(A))
    assert outcome.kept == pytest.approx(0.75, abs=0.01)


def test_the_clairvoyant_buys_the_cheapest_hours_first() -> None:
    made = scenario([(0, PLENTY), (12 * HOUR, 0)])
    prices = Prices(made, 0.35, 1)
    assert clairvoyant_hours(made, prices, 4, 1e9) == pytest.approx(4 * 24)
    spot_only = prices.bill(A, 0, 12 * HOUR) * 4
    assert clairvoyant_hours(made, prices, 4, spot_only) == pytest.approx(4 * 12)
    assert clairvoyant_hours(made, prices, 4, spot_only + 4) == pytest.approx(4 * 12 + 4)


def test_no_policy_beats_the_clairvoyant() -> None:
    made = scenario([(0, PLENTY), (5 * HOUR, 0), (9 * HOUR, PLENTY)], [(HOUR, 2), (6 * HOUR, 0)])
    assert all(row.of_clairvoyant <= 1 + 1e-9 for row in replay(made, 0.35, [1, 2]))


def test_the_replay_is_the_same_for_the_same_seed() -> None:
    made = scenario([(0, PLENTY), (5 * HOUR, 0)], [(0, 2), (6 * HOUR, PLENTY)])
    assert replay(made, 0.35, [7]) == replay(made, 0.35, [7])


def test_an_on_demand_base_lifts_a_rival_to_our_cost_in_proportion() -> None:
    rival = Row("spread over zones", kept=0.5, cost=0.2, interruptions_a_day=0, lost_minutes_a_day=0, on_demand=0,
                of_clairvoyant=0)  # fmt: skip
    assert rival.kept_at(0.6) == pytest.approx(0.75)
    assert rival.kept_at(0.1) == 0.5


def test_a_broken_promise_is_named() -> None:
    made = scenario([(0, PLENTY)])
    rows = [Row(name, 0.9, 0.5, 0, 0, 0, 0.9) for name in ("single pool, mean", "single pool, best", "lowest price",
                                                          "spread over zones")]  # fmt: skip
    wrong = verdicts(made, [*rows, Row("ours", 0.8, 0.5, 0, 0, 0, 0.8)])
    assert len(wrong) == 5
    assert "80.0% of the clairvoyant" in wrong[0]


def written(folder: Path, rows: list[tuple[str, str, int, int, int]]) -> Path:
    with lzma.open(folder / "zones.csv.xz", "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["trace", "zone", "capacity", "step_seconds", "first_step", "steps", "available"])
        writer.writerows([("t/aws-1", zone, cap, 600, first, steps, on) for zone, cap, first, steps, on in rows])
    return folder


def test_zones_of_several_regions_are_scenarios_by_region_and_one_of_all(tmp_path: Path) -> None:
    folder = written(tmp_path, [("us-east-1a", "p3 x1", 0, 10, 1), ("us-west-2a", "p3 x1", 0, 20, 0)])
    assert [(s.name, len(s.changes), s.end) for s in load(folder)] == [
        ("1 p3 x1 us-east-1 (1 zones)", 1, 12000),
        ("1 p3 x1 us-west-2 (1 zones)", 1, 12000),
        ("1 p3 x1 all (2 zones)", 2, 12000),
    ]


def test_missing_traces_are_said_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--traces", str(tmp_path / "nowhere")]) == 2
    assert "--traces DIR" in capsys.readouterr().err


def test_a_malformed_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "fleets.csv").write_text("trace,second,event,nodes_after\nx,1,add,1\nx,soon,add,2\n")
    with pytest.raises(InputError, match="line 3"):
        load(tmp_path)


def test_the_numbers_go_between_the_markers_of_the_document(tmp_path: Path) -> None:
    folder = written(tmp_path, [("us-east-1a", "p3 x1", 0, 30, 1), ("us-east-1b", "p3 x1", 0, 20, 0)])
    document = tmp_path / "doc.md"
    document.write_text("before\n<!-- replay: begin -->\nold\n<!-- replay: end -->\nafter\n")
    assert main(["--traces", str(folder), "--seeds", "1", "--write", str(document)]) == 0
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "Capacity at equal cost" in text
