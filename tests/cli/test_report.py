"""The report at a terminal: windows, formats, groups, and several stored reports as one."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rightsizer import bootstrap
from rightsizer.domain.proposal import ProposalState
from rightsizer.render import report_money, report_picture
from rightsizer.render.sentences import day_text
from rightsizer.terminal.app import Exit
from rightsizer.terminal.report import group_figures
from rightsizer.terminal.run import run
from tests.changing.world import World, world
from tests.render.report_sample import sample_report

pytestmark = pytest.mark.usefixtures("asked")
PENDING = {"state": ProposalState.PENDING, "decision": None}


@pytest.fixture(scope="module")
def deployed() -> object:
    with world(proposed=PENDING, by="cli:somebody") as found:
        yield found


@pytest.fixture
def asked(deployed: World, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("RIGHTSIZER_TABLE", "t")
    bootstrap.set_clock(lambda: deployed.box.clock.now)
    yield deployed
    bootstrap.reset()


def days(asked: World) -> list[str]:
    now = asked.box.clock.now
    return ["--since", f"{now:%Y-%m-01}", "--until", f"{now:%Y-%m-28}"]


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(["report", *arguments])
    return (code, *capsys.readouterr())


def test_the_summary_begins_with_what_is_paid(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, *days(asked))
    assert code == Exit.NOTHING_TO_DO
    assert "You pay $" in out
    assert "waits for" in out


@pytest.mark.parametrize(
    ("form", "begin"),
    [("html", "<!doctype html>"), ("csv", "account,region,"), ("json", "{"), ("focus", "BilledCost,")],
)
def test_each_format_goes_to_a_file_or_to_standard_output(
    asked: World, capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str, begin: str
) -> None:
    code, out, _ = told(capsys, *days(asked), "--format", form)
    assert code == Exit.NOTHING_TO_DO
    assert out.startswith(begin)
    path = tmp_path / "made"
    assert told(capsys, *days(asked), "--format", form, "--output", str(path))[:2] == (Exit.NOTHING_TO_DO, "")
    assert path.read_bytes().decode().startswith(begin)


def test_the_groups_are_a_table_rows_or_json(asked: World, capsys: pytest.CaptureFixture[str]) -> None:
    _, table, _ = told(capsys, *days(asked), "--by", "owner")
    assert "Could still be saved" in table
    _, rows, _ = told(capsys, *days(asked), "--by", "region", "--format", "csv")
    assert rows.splitlines()[0].startswith("region,spend,identified")
    _, said, _ = told(capsys, *days(asked), "--by", "account", "--json")
    (group,) = json.loads(said)["groups"].values()
    whole = json.loads(told(capsys, *days(asked), "--json")[1])["totals"]
    assert group == whole


def test_stored_reports_are_merged_without_a_stack(
    asked: World, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    told(capsys, *days(asked), "--format", "json", "--output", str(one))
    other.write_text(one.read_text().replace(json.loads(one.read_text())["account"], "999900001111"))
    monkeypatch.delenv("RIGHTSIZER_TABLE")
    both = json.loads(told(capsys, "--merge", str(one), "--merge", str(other), "--json")[1])
    assert both["totals"]["endpoints"] == 2 * json.loads(one.read_text())["totals"]["endpoints"]
    monkeypatch.setenv("COLUMNS", "80")
    _, table, _ = told(capsys, "--merge", str(one), "--merge", str(other), "--by", "account")
    assert "999900001111" in table
    assert "…" not in table


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--until", "2026-01-02"], "--until needs --since"),
        (["--since", "2026-01-02", "--until", "2026-01-01"], "ends before it begins"),
        (["--monthly", "--since", "2026-01-02"], "--monthly is a window of its own"),
        (["--format", "png"], "name it with --output"),
        (["--by", "owner", "--format", "html"], "--by is for the terminal, csv and json"),
        (["--monthly", "--merge", __file__], "--merge takes the window of the files"),
        (["--merge", __file__], "reading a Report"),
        (["--since", "2999-01-01", "--until", "2999-02-01"], "nothing is known of days to come"),
    ],
)
def test_what_cannot_be_asked_together_is_refused_with_the_reason(
    capsys: pytest.CaptureFixture[str], arguments: list[str], why: str
) -> None:
    code, out, err = told(capsys, *arguments)
    assert (code, out) == (Exit.FAILED, "")
    assert why in " ".join(err.split())


def test_a_picture_without_matplotlib_says_what_to_install(
    asked: World, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, _, err = told(capsys, *days(asked), "--format", "png", "--output", str(tmp_path / "report.png"))
    assert code == Exit.FAILED
    assert "rightsizer[pictures]" in err
    assert not (tmp_path / "report.png").exists()


def test_a_group_of_which_no_price_is_known_says_so_and_no_zero() -> None:
    made = sample_report()
    unpriced = replace(made.money.rows[0], environment="lab", spend=None, wasted=None)
    made = replace(made, money=replace(made.money, rows=(unpriced, *made.money.rows[1:])))
    lab = made.money.by("environment")["lab"]
    assert (lab.is_priced, made.money.totals().is_priced) == (False, True)
    assert group_figures(lab)[:3] == ("1", "not known", "not known")
    rows = str(report_money.groups(made)).partition(">lab<")[2].partition("</tr>")[0]
    assert rows.count("not known") == 2


def test_no_text_of_a_picture_with_dollars_in_it_is_drawn_as_a_formula() -> None:
    text = pytest.importorskip("matplotlib.text", reason="needs the extra pictures")
    made = sample_report()
    figure = report_picture.report_figure(made)
    figure.draw_without_rendering()
    dollars = [one for one in figure.findobj(text.Text) if "$" in one.get_text()]
    assert any("a month is wasted" in one.get_text() for one in dollars)
    assert [one.get_text() for one in dollars if one.get_parse_math()] == []


def test_a_picture_says_of_which_days_account_and_region_it_is() -> None:
    pytest.importorskip("matplotlib", reason="needs the extra pictures")
    made = sample_report()
    words = report_picture.report_figure(made).get_suptitle()
    assert words.endswith(f"{day_text(made.start)} to {day_text(made.end)} · account {made.account} · {made.region}")


def test_a_picture_is_drawn_of_a_name_with_dollars_in_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra pictures")
    made = sample_report()
    row = replace(made.money.rows[0], endpoint="$x^2$ and $")
    drawn = report_picture.report_png(replace(made, money=replace(made.money, rows=(row, *made.money.rows[1:]))))
    assert drawn.startswith(b"\x89PNG")
