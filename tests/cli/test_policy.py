"""`rightsizer policy` on a simulated stack, and orders that obey the lists of the policy document."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from rightsizer.aws.capacity_changes import CapacityChangeTable
from rightsizer.aws.table import Table
from rightsizer.domain.capacity_change import CapacityChange, GroupPolicy
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.settings import parse_window
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from tests.doors.scene import BIG, PROPOSE, Scene, scene

NAME = "/rightsizer/policy"
EXAMPLE = Path(__file__).parents[2] / "docs" / "policy-example.yaml"
SRE = "arn:aws:sts::111122223333:assumed-role/ml-sre/ada"
SEARCH = "arn:aws:sts::111122223333:assumed-role/search/bert"
SAID: dict[str, Any] = {
    "defaults": {"approvers": ["role/ml-*"], "minimum_saving_usd": 20},
    "environments": {"production": {"window": "mon-fri 09:00-17:00"}},
    "owners": {"search": {"approvers": ["role/search", "role/lead"], "people": ["role/lead"], "four_eyes": True}},
}


@pytest.fixture(scope="module")
def at() -> Iterator[Scene]:
    """A stack with a policy document and one pending proposal of the owner `search`."""
    with scene(slack=False, Limits='{"changes_per_day": 3}', Approvers="role/old") as found:
        found.box.client("ssm").put_parameter(Name=NAME, Value=json.dumps(SAID), Type="String")
        found.stack.template.change({"PolicyParameter": NAME})
        found.add(BIG, tags=PROPOSE | {"rightsizer:p95-ms": "900", "owner": "search"})
        found.drive(BIG)
        found.sweep()
        yield found


@pytest.fixture
def said(at: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> "Said":
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.delenv("RIGHTSIZER_TABLE", raising=False)
    at.box.client("ssm").put_parameter(Name=NAME, Value=json.dumps(SAID), Type="String", Overwrite=True)
    return Said(at, capsys)


class Said:
    """Gives command lines of `rightsizer`."""

    def __init__(self, at: Scene, capsys: pytest.CaptureFixture[str]) -> None:
        self._at, self._capsys = at, capsys

    def __call__(self, line: str, by: str = SRE) -> tuple[int, str]:
        """The exit code, and everything that was said."""
        self._at.box.world.sts.arn = by
        self._capsys.readouterr()
        code = run(line.split())
        told = self._capsys.readouterr()
        return code, " ".join((told.out + told.err).split())

    def document(self, line: str) -> tuple[int, Any]:
        """The exit code, and the JSON that was printed."""
        code, text = self(f"{line} --json")
        return code, json.loads(text)


def written(folder: Path, document: Any, name: str = "policy.yaml") -> Path:
    path = folder / name
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def test_the_example_is_right_and_check_asks_nothing_of_aws(said: Said, at: Scene) -> None:
    before = len(at.box.gate.calls)
    assert said(f"policy check {EXAMPLE}")[0] == Exit.NOTHING_TO_DO
    assert len(at.box.gate.calls) == before


def test_check_names_every_problem_with_its_place_and_fails(said: Said, tmp_path: Path) -> None:
    wrong = written(tmp_path, {"defaults": {"windwo": "x"}, "owners": {"a": {"four_eyes": "maybe"}}})
    code, text = said(f"policy check {wrong}")
    assert code == Exit.FAILED
    assert "defaults.windwo: there is no such key; did you mean window?" in text
    assert 'owners.a.four_eyes: it is "maybe", and should be true or false; until then true holds' in text
    code, found = said.document(f"policy check {wrong}")
    assert (code, found["check"]["valid"], len(found["check"]["problems"])) == (Exit.FAILED, False, 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x [1]\nb: *x\n", "aliases"),
        ("defaults: {window: a, window: b}\n", "window is given twice"),
        (
            "defaults:\n  window: a\n\ndefaults: {}\n",
            "line 4: defaults is given twice, first in line 1; keep one of them",
        ),
        ("defaults: [", "reading the policy document"),
        ("defaults:\n\tfour_eyes: true\n", "line 2, column 1: YAML is indented by spaces, and this is a tab"),
        ("defaults: {minimum_saving_usd: .nan}\n", 'defaults.minimum_saving_usd: it is ".nan", and should be a number'),
        ("defaults: [", "line 1, column 12: "),
        ("defaults: {minimum_saving_usd: !!python/object:os.system 1}", "reading the policy document"),
        ("- 1\n", "it should be an object"),
        ("defaults: {holidays: [2026-12-25, 2026-13-25]}\n", 'defaults.holidays: "2026-13-25" is not a day'),
    ],
)
def test_a_hostile_file_is_one_line_and_no_crash(said: Said, tmp_path: Path, text: str, words: str) -> None:
    code, told = said(f"policy check {written(tmp_path, text)}")
    assert (code, words in told) == (Exit.FAILED, True), told


def test_a_file_that_is_not_there_is_named(said: Said) -> None:
    code, text = said("policy check none.yaml")
    assert (code, "reading the policy document none.yaml" in text) == (Exit.FAILED, True)


def test_check_without_a_file_is_about_the_document_in_force(said: Said) -> None:
    code, found = said.document("policy check")
    assert (code, found["check"]["valid"], found["check"]["tier"]) == (Exit.NOTHING_TO_DO, True, "Standard")


def test_show_says_where_each_value_was_said(said: Said) -> None:
    code, found = said.document("policy show")
    assert code == Exit.NOTHING_TO_DO
    rows = {(row["subject"], row["key"]): (row["value"], row["source"]) for row in found["policy"]}
    assert rows["every endpoint", "minimum_saving_usd"] == ("20", "policy document, defaults.minimum_saving_usd")
    assert rows["every endpoint", "changes_per_day"] == ("3", "stack parameter Limits")
    assert rows["every endpoint", "cooldown_hours"] == ("24", "default")
    assert rows["production", "window"] == (
        "mon,tue,wed,thu,fri 09:00-17:00 UTC",
        "policy document, environments.production.window",
    )
    assert rows["owner search", "approvers"][0] == "role/search, role/lead"
    assert ("production", "approvers") not in rows, "only what differs is said again"


def test_show_of_an_owner_has_every_key(said: Said) -> None:
    code, text = said("policy show --owner search --environment production")
    assert code == Exit.NOTHING_TO_DO
    for words in ("role/search, role/lead", "four_eyes true", "changes_per_day 3", "version"):
        assert words in text


def test_show_names_what_cannot_be_understood_and_what_holds(said: Said, at: Scene) -> None:
    at.box.client("ssm").put_parameter(
        Name=NAME, Value='{"defaults": {"window": "noon"}}', Type="String", Overwrite=True
    )
    _, found = said.document("policy show")
    (window,) = (row for row in found["policy"] if row["key"] == "window")
    assert window["value"] == "no change begins"
    assert window["problem"] == found["problems"][0]


def test_older_stacks_show_limits_and_approvers_as_the_policy_that_they_mean(said: Said, at: Scene) -> None:
    at.stack.template.change({"PolicyParameter": ""})
    try:
        code, found = said.document("policy show")
        _, text = said("policy show")
    finally:
        at.stack.template.change({"PolicyParameter": NAME})
    rows = {row["key"]: (row["value"], row["source"]) for row in found["policy"]}
    assert code == Exit.NOTHING_TO_DO
    assert rows["approvers"] == ("role/old", "stack parameter Approvers")
    assert rows["changes_per_day"] == ("3", "stack parameter Limits")
    assert rows["window"] == ("always", "default")
    assert "This stack has no policy document" in text


def test_diff_shows_what_would_change_and_stores_nothing(said: Said, tmp_path: Path) -> None:
    other = {**SAID, "defaults": {**SAID["defaults"], "minimum_saving_usd": 90}}
    code, found = said.document(f"policy diff {written(tmp_path, other)}")
    assert code == Exit.SAVINGS_FOUND
    assert found["changes"] == [
        {
            "subject": "every endpoint",
            "key": "minimum_saving_usd",
            "now": "20",
            "then": "90",
            "source": "policy document, defaults.minimum_saving_usd",
        }
    ]
    assert said.document(f"policy diff {written(tmp_path, SAID)}") == (
        Exit.NOTHING_TO_DO,
        {"version": 1, "changes": [], "problems": []},
    )


def test_put_stores_a_document_that_is_right(said: Said, at: Scene, tmp_path: Path) -> None:
    code, text = said(f"policy put {written(tmp_path, {'defaults': {'cooldown_hours': 48}})}")
    assert code == Exit.NOTHING_TO_DO
    assert "Stored: /rightsizer/policy" in text
    assert "standard tier, USD 0.00 a month" in text
    assert "in force within a minute" in text
    stored = at.box.client("ssm").get_parameter(Name=NAME)["Parameter"]["Value"]
    assert json.loads(stored) == {"defaults": {"cooldown_hours": 48}}


def test_put_stores_nothing_that_cannot_be_understood(said: Said, at: Scene, tmp_path: Path) -> None:
    code, text = said(f"policy put {written(tmp_path, {'defaults': {'cooldown_hours': 'long'}})}")
    assert (code, "nothing was stored" in text) == (Exit.FAILED, True)
    assert json.loads(at.box.client("ssm").get_parameter(Name=NAME)["Parameter"]["Value"]) == SAID


def test_put_before_the_stack_names_a_parameter_says_what_to_deploy(said: Said, tmp_path: Path) -> None:
    code, text = said(f"policy put {written(tmp_path, SAID)} --parameter /other")
    assert (code, "once deployed with PolicyParameter=/other" in text) == (Exit.NOTHING_TO_DO, True)


def test_schema_prints_the_published_schema(said: Said) -> None:
    _, text = said("policy schema")
    assert json.loads(text)["title"] == "Policy document of rightsizer"


def test_orders_obey_the_list_of_the_endpoints_owner(said: Said, at: Scene) -> None:
    (proposal,) = at.proposals()
    code, text = said(f"approve {proposal.id}", SRE)
    assert code == Exit.FAILED
    assert "is not on the list owners.search.approvers of the policy document" in text
    assert "nothing was recorded" in text
    code, text = said(f"approve {proposal.id}", SRE.replace("ml-sre", "nobody"))
    assert (code, "nothing was recorded" in text) == (Exit.FAILED, True)
    code, text = said(f"approve {proposal.id}", SEARCH.replace("search", "lead"))
    assert (code, "four eyes" in text) == (Exit.FAILED, True)
    code, text = said(f"test {proposal.id}", SEARCH.replace("search", "lead"))
    assert (code, "four eyes" in text) == (Exit.FAILED, True)
    assert at.proposals()[0].state is ProposalState.PENDING


def test_where_the_document_cannot_be_read_at_a_terminal_it_warns_and_apply_asks(said: Said, at: Scene) -> None:
    (proposal,) = at.proposals()
    at.box.deny("ssm:GetParameter")
    try:
        code, text = said("freeze --off", "arn:aws:sts::111122223333:assumed-role/nobody/x1")
    finally:
        at.box.gate.allow("ssm:GetParameter")
    assert (code, "was not checked here" in text) == (Exit.NOTHING_TO_DO, True)
    assert list(at.proposals()) == [proposal]


def test_a_hard_freeze_needs_the_list_of_the_defaults(said: Said) -> None:
    assert said("freeze --hard", SEARCH)[0] == Exit.FAILED
    assert "defaults.approvers" in said("wake --all", SEARCH)[1]
    assert said("freeze --off", SRE)[0] == Exit.NOTHING_TO_DO


def test_a_groups_policy_goes_back_by_the_list_of_the_defaults_that_apply_asks(said: Said, at: Scene) -> None:
    now = at.box.clock.now
    (name,) = at.box.client("dynamodb").list_tables()["TableNames"]
    reason = Reason(Code.MORE_POOLS, "two types are steadier than one")
    work = GroupPolicy("gpu", {"old": True}, {"new": True})
    later, state = now + timedelta(days=14), ProposalState.PROVEN
    made = CapacityChange("e-1", "gpu", "search", work, "more pools", reason, now, later, state, approvable=True)
    CapacityChangeTable(Table(at.box.client("dynamodb"), name)).add(replace(made, sent_at=now, done_at=now))
    code, text = said("rollback e-1", SEARCH)
    assert (code, "is not on the list defaults.approvers" in text) == (Exit.FAILED, True)
    code, text = said("rollback e-1", SRE)
    assert (code, "gets its old policy back" in text) == (Exit.NOTHING_TO_DO, True)


def test_a_document_that_sets_nothing_is_told_from_one_that_is_right(said: Said, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt.yaml"
    spoilt.write_bytes(b"\xff\xfe")
    assert "sets nothing, so the defaults hold" in said(f"policy check {written(tmp_path, '')}")[1]
    assert "is no text in UTF-8" in said(f"policy check {spoilt}")[1]


def test_the_default_window_may_be_written_as_show_says_it(said: Said, tmp_path: Path) -> None:
    assert "is right" in said(f"policy check {written(tmp_path, {'defaults': {'window': 'always'}})}")[1]
    assert parse_window("always").length == timedelta(days=1)
