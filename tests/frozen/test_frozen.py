"""Moves, merges and new names change no id, no row and no JSON; tests/test_cases.py compares the answers,
tests/demo/test_demo.py the commands and the rows.
"""

import json
from typing import Any

import pytest

from tests.frozen import replayed, write
from tests.frozen.answers import CASES, frozen_cases
from tests.frozen.ids import ids
from tests.frozen.rows import DATA, TEXT, detail_of, differences, read, row_of

KINDS = {
    "ASLEEP", "HOURS",
    "ACCOUNT", "BUDGET", "CHANGE", "CONTROL", "ENDPOINT", "ENTRY", "EXPIRY", "GROUP", "LAST", "LOCK", "MESSAGE",
    "OCCURRENCE", "ONCE", "POOL", "PROPOSAL", "SPOT",
}  # fmt: skip
"""Kinds of row that the story of the account writes. The others are in tests/golden."""
TABLES = """
gentd, seed 1: clairvoyant saving 59.7 % of 24770 USD
policy                               save%  harm  dec s
rightsizer                            45.7     0    6.8
static 20 % + memory check + guard    35.5     4    0.0
"""


def test_every_id_is_made_as_it_was() -> None:
    assert differences(read("ids"), dict(ids())) == []


def test_each_target_and_each_approval_has_an_id_of_its_own() -> None:
    found = read("ids")
    same = {"change: of the same approval, later", "change: of an approval"}
    assert len(found) > 40
    assert len(set(found.values())) == len(found) - 1  # one approval, delivered twice
    assert len({found[name] for name in same}) == 1


def test_each_labelled_case_has_a_frozen_answer_and_each_answer_its_case() -> None:
    assert frozen_cases() == {path.stem for path in CASES}


def test_the_frozen_rows_are_of_every_kind_that_a_story_writes() -> None:
    assert {at.partition(" ")[0].partition("#")[0] for at in read("rows")} == KINDS | {"s3"}


@pytest.mark.parametrize("name", ["answers", "commands", "rows"])
def test_no_sentence_is_frozen(name: str) -> None:
    text = (DATA / f"{name}.jsonl").read_text(encoding="utf-8")
    assert f'"sentence":"{TEXT}"' in text
    sentences = set(text.split('"sentence":"')[1:])
    assert {one.partition('"')[0] for one in sentences} <= {TEXT, ""}


def test_all_frozen_files_together_are_small() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 3_000_000


@pytest.mark.parametrize(
    ("now", "line"),
    [
        ({"chat": {"gate": "propose", "counts": [1, 2]}}, 'chat: gate: was "apply", is "propose"'),
        ({"chat": {"gate": "apply", "counts": [1, 3]}}, "chat: counts[1]: was 2, is 3"),
        ({"chat": {"gate": "apply", "counts": [2]}}, "chat: counts: was [1, 2], is [2]"),
        ({"chat": {"gate": "apply", "counts": [1, 2.0]}}, "chat: counts[1]: was 2, is 2.0"),
        ({"chat": {"counts": [1, 2]}}, 'chat: gate is gone, it was "apply"'),
        ({"chat": {"gate": "apply", "counts": [1, 2], "new": 1}}, "chat: new is new, it is 1"),
        ({"chat": {"counts": [1, 2], "gate": "apply"}}, "chat: the fields stood as gate, counts"),
        ({}, "chat: the row is gone"),
    ],
)
def test_a_difference_names_the_row_the_field_the_old_and_the_new(now: dict[str, Any], line: str) -> None:
    (found,) = differences({"chat": {"gate": "apply", "counts": [1, 2]}}, now)
    assert found.startswith(line)


def test_rows_in_another_order_are_told() -> None:
    assert differences({"a": 1, "b": 2}, {"b": 2, "a": 1}) == ["the rows stand in another order"]
    assert differences({"a": 1}, {"a": 1, "b": 2}) == ["b: the row is new"]


def test_a_row_leaves_sentences_out_and_keeps_figures() -> None:
    document = {
        "reason": {"code": "idle", "sentence": "No request came."},
        "notes": ["One.", "Two."],
        "facts": {"GPU memory": "static, peak 6.0 GiB per GPU of four that are there"},
        "said_elsewhere": "a text of seven words or of more",
        "empty": "",
        "share": 0.1 + 0.2,
        "hours": [0.5] * 48,
    }
    row = row_of(document)
    assert row["reason"] == {"code": "idle", "sentence": TEXT}
    assert (row["notes"], row["said_elsewhere"], row["empty"]) == ([TEXT], TEXT, "")
    assert row["facts"] == document["facts"]
    assert row["share"] == 0.3
    assert row["hours"].items() >= {"numbers": 48, "sum": 24.0}.items()
    assert row_of({"hours": [0.5] * 47 + [0.6]})["hours"]["hash"] != row["hours"]["hash"]


def test_of_the_detail_of_a_journal_the_words_that_the_program_reads_are_kept() -> None:
    assert detail_of("again:unanswered: the connection was closed") == f"again:unanswered:{TEXT}"
    assert detail_of("InService with one instance") == TEXT
    assert detail_of("") == ""


def test_a_replay_is_compared_without_the_seconds_that_it_took() -> None:
    slower = TABLES.replace("    6.8", "   16.8")
    found = dict(replayed.rows_of(TABLES))
    assert found == dict(replayed.rows_of(slower))
    assert found["gentd, seed 1 rightsizer"].split() == ["rightsizer", "45.7", "0"]
    assert len(found) == 4


def test_without_a_referee_the_replay_is_left_out_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(replayed, "REFEREE", tmp_path)
    assert write.main(["--check", "--replay", "ids"]) == 0
    said = capsys.readouterr().out
    assert f"no referee in {tmp_path}: set RIGHTSIZER_REFEREE" in said
    assert "ids: 0 differences" in said


def test_a_difference_makes_the_check_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    changed = read("ids") | {"target: routing": "p-0"}
    monkeypatch.setitem(write.FILES, "ids", lambda: changed)
    assert write.main(["--check", "ids"]) == 1
    assert 'target: routing: was "p-' in capsys.readouterr().out


def test_a_row_survives_its_file() -> None:
    rows = read("rows")
    assert differences(rows, json.loads(json.dumps(rows))) == []
