"""The plot of past hours on a terminal: gaps are gaps, no peak is hidden, the scale begins at zero."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from rightsizer.render.charts import GAP
from rightsizer.terminal.plot import LABEL, plot, scale_text

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)
DAY = [float(hour) for hour in range(24)]


def lines(values: Sequence[float | None], columns: int = 200, rows: int = 4) -> list[str]:
    return [line.plain for line in plot(values, MONDAY, columns, unit="", rows=rows)]


def test_bars_grow_with_the_values_and_the_highest_fills_its_column() -> None:
    drawn = lines([*DAY, *DAY])
    columns = [[row[LABEL + 1 :][at] for row in drawn[:-1]] for at in range(48)]
    assert columns[23] == ["█"] * 4
    assert columns[0] == [" "] * 4, "zero is no bar"
    filled = [sum(cell != " " for cell in column) for column in columns[:24]]
    assert filled == sorted(filled)


def test_an_hour_of_which_nothing_is_known_is_a_gap_and_no_zero() -> None:
    drawn = lines([5.0, None, 5.0, 0.0] * 10)
    foot = drawn[-2][LABEL + 1 :]
    assert foot[:4] == f"█{GAP}█ "
    assert all(row[LABEL + 2] == " " for row in drawn[:-2])


def test_a_peak_of_one_hour_is_seen_on_a_narrow_terminal() -> None:
    drawn = lines([1.0] * 300 + [100.0] + [1.0] * 35, columns=60)
    assert "█" in drawn[0]
    assert all(len(line) <= 60 for line in drawn)


def test_the_days_stand_below_their_first_hour() -> None:
    drawn = lines(DAY * 3)
    assert drawn[-1][LABEL + 1 :].startswith("Mon 2")
    assert drawn[-1][LABEL + 1 + 48 :].startswith("Wed 4")


@pytest.mark.parametrize("values", [[], [None] * 48])
def test_without_a_known_hour_there_is_no_plot(values: list[float | None]) -> None:
    assert plot(values, MONDAY, 100, unit="") == []


def test_no_requests_at_all_is_a_flat_plot() -> None:
    assert set("".join(line[LABEL + 1 :] for line in lines([0.0] * 48)[:-1])) == {" "}


@pytest.mark.parametrize(("top", "shown"), [(5.126, "5.13"), (8123.0, "8.12k"), (2_500_000, "2.5M")])
def test_the_scale_has_three_figures(top: float, shown: str) -> None:
    assert scale_text(top) == shown
