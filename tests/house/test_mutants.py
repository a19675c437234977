"""What make mutants counts, which tests it runs for a module, and what it says of what it cannot run."""

import subprocess
from pathlib import Path

import pytest

from scripts import mutants
from scripts.mutants import (
    Mutant,
    changed_modules,
    covering_cases,
    main,
    modules,
    read_mutants,
    row,
    score,
    select_tests,
    survivors,
)

KILLED, LATE = Mutant("x_a__mutmut_1", "killed", ""), Mutant("x_a__mutmut_2", "timeout", "")
LEFT, NO_TEST = Mutant("x_b__mutmut_1", "survived", "-    a + b\n+    a - b"), Mutant("x_b__mutmut_2", "no test", "")


def test_a_mutant_that_no_test_reaches_counts_as_one_that_survived() -> None:
    assert score([KILLED, LATE, LEFT, NO_TEST]) == 50.0
    assert score([KILLED]) == 100.0
    assert score([]) == 100.0


def test_a_row_has_each_count_and_the_score() -> None:
    odd = Mutant("x_c__mutmut_1", "exit 35", "")
    assert row("recommender/gate", [KILLED, LATE, LEFT, NO_TEST, odd]) == (
        "| recommender/gate | 5 | 1 | 1 | 1 | 1 | 1 | 40.0 % |"
    )
    assert len(mutants.HEAD.splitlines()[0].split("|")) == len(row("a", []).split("|"))


def test_survivors_are_listed_with_the_lines_that_differ() -> None:
    assert survivors([KILLED, NO_TEST, LEFT]) == (
        "x_b__mutmut_1: survived\n-    a + b\n+    a - b\n\nx_b__mutmut_2: no test\n\n\n"
    )


def test_modules_are_named_by_their_path_and_a_package_by_its_own() -> None:
    known = [name for package in mutants.PACKAGES for name in modules(package)]
    assert {"recommender/gate", "changes/plan", "changes/plan/capacity", "changes/reconcile/steps"} <= set(known)
    assert "recommender" not in known, "its __init__ has no code"


def test_a_module_is_tested_by_the_files_of_its_name() -> None:
    found = select_tests("recommender/gate")
    assert {"tests/recommender/test_gate.py", "tests/recommender/test_gate_verdicts.py"} <= set(found)
    assert select_tests("recommender/nothing") == []


def test_a_module_of_an_inner_package_is_tested_by_the_file_of_its_last_name() -> None:
    assert "tests/changes/test_preflight_deployment_quota.py" in select_tests("changes/preflight/deployment")
    assert "tests/changes/test_plan_capacity_fleet.py" in select_tests("changes/plan/capacity")
    found = select_tests("changes/hours")
    assert {"tests/changes/hours/test_answers.py", "tests/changes/hours/test_hours_notices.py"} <= set(found)
    assert select_tests("changes/hours/wake") == [
        "tests/changes/hours/test_wake.py",
        "tests/changes/hours/test_wake_code.py",
    ]


def test_every_file_that_is_named_beside_those_exists() -> None:
    named = {name for names in mutants.ALSO.values() for name in names}
    assert [name for name in sorted(named) if not (mutants.ROOT / "tests" / f"{name}.py").is_file()] == []


def test_a_few_cases_cover_every_word_of_the_frozen_answers() -> None:
    found = covering_cases()
    assert 10 < len(found) < 100
    assert all(name.startswith("tests/test_cases.py::test_the_case_is_judged_as_labelled[") for name in found)
    assert len(set(found)) == len(found)


def test_what_mutmut_left_on_disk_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "mutants" / "rightsizer" / "recommender"
    folder.mkdir(parents=True)
    (tmp_path / "rightsizer" / "recommender").mkdir(parents=True)
    (tmp_path / "rightsizer" / "recommender" / "gate.py").write_text("")
    lines = ["def x_add__mutmut_orig(a):", "    return a + 1", "def x_add__mutmut_1(a):", "    return a - 1"]
    (folder / "gate.py").write_text("\n".join(lines))
    keys = '"rightsizer.recommender.gate.x_add__mutmut_1": 0'
    (folder / "gate.py.meta").write_text(f'{{"exit_code_by_key": {{{keys}}}}}')
    (folder / "gate.py.spans").write_text('{"spans": {"x_add__mutmut_orig": [1, 2], "x_add__mutmut_1": [3, 4]}}')
    (found,) = read_mutants(tmp_path, "recommender/gate")
    assert found == Mutant("x_add__mutmut_1", "survived", "-    return a + 1\n+    return a - 1")


@pytest.mark.parametrize(
    ("code", "end"),
    [
        (0, "survived"),
        (1, "killed"),
        (33, "no test"),
        (36, "timeout"),
        (-9, "timeout"),
        (35, "exit 35"),
        (None, "not run"),
    ],
)
def test_the_exit_code_of_a_run_says_what_became_of_the_mutant(code: int | None, end: str) -> None:
    spans = {"x_a__mutmut_orig": [1, 1], "x_a__mutmut_1": [2, 2]}
    found = mutants._mutant("p.x_a__mutmut_1", code, ["def x_a__mutmut_orig(): 1", "def x_a__mutmut_1(): 2"], spans)
    assert (found.end, found.noticed) == (end, end in ("killed", "timeout"))


def test_an_unknown_module_is_answered_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommender/gates"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("mutants: no module recommender/gates; say one of recommender/")
    assert "recommender/gate," in said


def test_help_shows_how_to_run_one_module_a_branch_and_all(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    for line in ("make mutants MODULE=recommender/gate", "make mutants SINCE=origin/main", "make mutants "):
        assert line in said


def test_a_module_without_a_test_of_its_name_is_told_which_file_to_write(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mutants, "select_tests", lambda module: [])
    assert main(["changes/plan/capacity", "--no-cases"]) == 2
    assert "changes/plan/capacity: no test file; write tests/changes/test_plan_capacity.py" in capsys.readouterr().err


def test_only_what_this_branch_changed_counts_for_a_pull_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> None:
        person = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        subprocess.run(["git", *person, *words], cwd=tmp_path, check=True, capture_output=True)

    def write(name: str, text: str) -> None:
        path = tmp_path / "shared" / "rightsizer" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"def one():\n    return {text}\n")

    def commit() -> None:
        git("add", "-A")
        git("commit", "-m", "x")

    git("init", "-b", "main")
    for name in ("recommender/gate.py", "recommender/fit.py", "changes/plan/__init__.py", "flows/evaluate.py"):
        write(name, "1")
    commit()
    git("checkout", "-b", "own")
    git("checkout", "main")
    write("recommender/fit.py", "2")
    commit()
    git("checkout", "own")
    write("changes/plan/__init__.py", "2")
    write("flows/evaluate.py", "2")
    commit()
    write("recommender/gate.py", "2")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    assert changed_modules("main") == ["changes/plan", "recommender/gate"]


def test_only_the_mutants_of_a_sample_count_and_a_mutant_that_should_have_run_does_not_vanish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out = Mutant("x_d__mutmut_1", "not run", "")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "select_tests", lambda module: ["tests/recommender/test_gate.py"])
    monkeypatch.setattr(mutants, "lay_out", lambda module, tests: tmp_path)
    monkeypatch.setattr(mutants, "run_mutmut", lambda work, children, sample: None)
    monkeypatch.setattr(mutants, "read_mutants", lambda work, module: [KILLED, LEFT, left_out])
    assert mutants.mutate("recommender/gate", 1, [], sample=2) == [KILLED, LEFT]
    assert mutants.mutate("recommender/gate", 1, []) == [KILLED, LEFT, left_out]
