"""The growth of a fleet's cost: a small size is measured, and an exponent that is too steep is told."""

from pathlib import Path

import pytest

from bench.growth import Row, draw, exponents, main, over

STEEP = {"scan": [Row(100, 200, 1.0, 100.0), Row(1000, 2000, 20.0, 100.0)]}


def test_the_exponent_is_the_slope_between_two_sizes() -> None:
    found = dict(exponents(STEEP["scan"]))
    assert found == pytest.approx({"calls": 1.0, "cpu_s": 1.301, "peak_mib": 0.0}, abs=0.001)
    assert over(STEEP) == ["cpu_s of scan grow with exponent 1.30, above 1.05"]


def test_the_picture_names_each_course(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(STEEP | {"next day": STEEP["scan"]}, tmp_path / "growth.svg")
    text = (tmp_path / "growth.svg").read_text()
    assert text.count("<!-- scan -->") == 1
    assert "<!-- next day -->" in text


@pytest.mark.slow
def test_a_small_account_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--endpoints", "2"]) == 0
    said = capsys.readouterr().out
    assert all(course in said for course in ("first evaluation", "next day", "scan", "its index"))
