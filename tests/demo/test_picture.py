"""The README's picture shows the README's table, whose figures are the demo's (tests/demo/test_demo.py)."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sandbox.demo_picture import PAGE, PICTURE, main, picture, read
from sandbox.demo_table import BEGIN, END

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def page() -> str:
    return (ROOT / PAGE).read_text()


def table() -> list[list[str]]:
    """Cells of the table's lines, read otherwise than the picture reads them."""
    lines = page().partition(BEGIN)[2].partition(END)[0].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def drawn() -> ElementTree.Element:
    return ElementTree.fromstring((ROOT / PICTURE).read_text())


def texts() -> list[str]:
    return [found.text or "" for found in drawn().iter(f"{SVG}text")]


def bars() -> list[tuple[str, float]]:
    """Kind and length of the bars of single endpoints, which are as high as a line of text."""
    found = (one for one in drawn().iter(f"{SVG}rect") if one.get("height") == "16")
    return [(one.get("class", ""), float(one.get("width", "0"))) for one in found]


def test_the_picture_is_the_one_of_the_table() -> None:
    assert (ROOT / PICTURE).read_text() == picture(read(page())), "run `python -m sandbox.demo_picture`"


def is_saved(happened: str) -> bool:
    """Whether the saving was made: by a proven change, or by hours in which the endpoint is stopped."""
    return "proven" in happened or happened.startswith("by its tag")


def test_every_figure_of_the_table_is_in_the_picture() -> None:
    named = [row for row in table() if not re.match(r"\d+ (more|in all)", row[0])]
    assert named
    for row in named:
        assert {row[0], row[4], row[5]} <= set(texts())
    saved = sum(int(row[4].replace(",", "")) for row in named if is_saved(row[5]))
    asked = sum(int(row[4].replace(",", "")) for row in table() if "asked in Slack" in row[5])
    cost = int(re.sub(r"\D", "", table()[-1][5].split(";")[0]))
    shown = " ".join(texts())
    for figure in (saved, asked, cost, cost - saved - asked):
        assert f"{figure:,} " in shown


def test_a_bar_is_as_long_as_its_saving() -> None:
    shown = read(page())
    savings = [line.saving for line in shown.named if line.saving] + [shown.others]
    assert len(savings) == len(bars())
    scale = max(savings) / max(width for _, width in bars())
    assert [width * scale for _, width in bars()] == pytest.approx(savings, rel=0.02)
    assert [kind for kind, _ in bars()].count("saved") == sum(is_saved(line.happened) for line in shown.named)


def test_it_has_words_for_who_cannot_see_it_and_colours_for_dark_pages() -> None:
    text = (ROOT / PICTURE).read_text()
    assert "prefers-color-scheme: dark" in text
    assert drawn().findtext(f"{SVG}title")
    assert f"{read(page()).cost:,}" in (drawn().findtext(f"{SVG}desc") or "")


def test_an_endpoint_without_a_price_is_said_and_not_counted_as_free() -> None:
    unknown = "; the price of 1 is not known"
    assert unknown in page(), "the demo has one endpoint without an instance type"
    assert "The price of 1 is not known." in picture(read(page()))
    assert "not known" not in picture(read(page().replace(unknown, "")))


def test_it_loads_nothing_from_elsewhere() -> None:
    text = (ROOT / PICTURE).read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|url\(|<script|<image|@import|href", text)


def test_a_table_that_does_not_add_up_is_not_drawn() -> None:
    with pytest.raises(ValueError, match="says otherwise"):
        read(re.sub(r"\| (\d+) in all \|", "| 99 in all |", page()))


def test_a_page_without_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no table"):
        read("# a page")


def test_the_command_draws_the_picture(tmp_path: Path) -> None:
    main(["--page", str(ROOT / PAGE), "--out", str(tmp_path / "drawn.svg")])
    assert (tmp_path / "drawn.svg").read_text() == (ROOT / PICTURE).read_text()
