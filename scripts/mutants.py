"""Runs mutation tests on modules of the deciding code: `make mutants MODULE=recommender/gate`.

A mutant is the module with one small change: another operator, another number, an argument less. A mutant that no test
notices has survived. The score of a module is the share of its mutants that a test noticed. See docs/mutants.md.
"""

import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = Path("out/mutants")
PACKAGES = ("recommender", "changes", "autoscaling", "dimensions")
LEAST = 85.0
"""The score that each module has to reach, in percent."""
COPIED = ("tests", "sandbox", "bench", "functions", "scripts", "events", "template.yaml", "docs", "README.md")
ALSO: Mapping[str, Sequence[str]] = {
    "autoscaling/schedules": ("autoscaling/test_scheduled_actions",),
    "recommender/candidates": ("recommender/test_failed_starts", "recommender/test_volumes"),
    "recommender/late_requests": ("recommender/test_reaction", "recommender/test_still_failing"),
    "recommender/proposal": ("recommender/test_enable", "recommender/test_proposal_key"),
    "recommender/recommend": ("recommender/test_several_variants",),
    "changes/hours": ("changes/hours/test_answers",),
    "changes/guardrail": ("changes/test_rollback_alarms",),
    "changes/overruled": ("changes/test_growth",),
    "changes/proof": ("changes/test_baseline", "changes/test_baseline_slowness", "changes/test_growth"),
    "changes/plan/capacity": ("changes/test_plan_config",),
    "changes/preflight/consent": ("changes/test_owner", "changes/test_approver"),
    "changes/reconcile": ("changes/test_reconcile_courses", "changes/test_still"),
    "changes/reconcile/drift": ("changes/test_reconcile", "changes/test_drift_copies", "changes/test_turning"),
    "changes/reconcile/steps": ("changes/test_still", "changes/test_reconcile", "changes/test_turning"),
}
"""Test files of another name that belong to a module."""
ENDS = {0: "survived", 1: "killed", 3: "killed", 5: "no test", 33: "no test"}
ENDS |= dict.fromkeys((36, 24, -24, 152, 255, -9), "timeout")
"""What the exit code of a mutant's test run means; mutmut documents it in `mutmut.stats`."""
SETTINGS = """[tool.mutmut]
source_paths = ["rightsizer"]
only_mutate = {only}
also_copy = {copied}
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider"]
timeout_multiplier = 1.0
timeout_constant = 2.0
use_git_change_detection = false

[tool.pytest.ini_options]
pythonpath = ["."]
addopts = "--import-mode=importlib -q"
markers = ["artefact", "slow", "grid"]
"""
RUN = '''"""mutmut: the words of sentences are no targets, and tests are collected once for all mutants of a module."""

import os
import random
import resource
from time import process_time

from _pytest.runner import runtestprotocol
from mutmut.mutation import mutators
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.file_utils import change_cwd
from mutmut.workers import isolation

words = mutators.operator_string


def codes_only(node):
    return () if " " in getattr(node, "value", "").strip() else words(node)


mutators.mutation_operators[:] = [
    (kind, codes_only if operator is words else operator) for kind, operator in mutators.mutation_operators
]


class OneSession(isolation.ForkRunner):
    """Each mutant is a fork of one session, which has collected the tests: mutmut collects them for each mutant."""

    def __init__(self, *args, **known):
        super().__init__(*args, **known)
        self.work, self.codes = [], {}

    def submit(self, mutant_name, tests, cpu_time_limit, estimated_time):
        self.work.append((mutant_name, sorted(tests, key=state().duration_by_test.__getitem__), cpu_time_limit))

    def has_capacity(self):
        return True

    def pending_count(self):
        return len(self.codes)

    def wait_for_result(self, timeout=None):
        mutant, code = self.codes.popitem()
        return isolation.MutantResult(mutant_name=mutant, exit_code=code, duration=0.0)

    def signal_work_complete(self):
        with change_cwd("mutants"):
            self.test_runner.execute_pytest(list(self.test_runner._pytest_add_cli_args_test_selection), plugins=[self])
        if self.codes.pop("") != 0:
            raise SystemExit("the tests fail in a fork without a mutant")

    def pytest_runtestloop(self, session):
        items = {item.nodeid: item for item in session.items}
        for mutant, tests, limit in [("", list(items), 3600), *self.work]:
            if len(self._running) == self.max_workers:
                self._reap()
            if pid := os.fork():
                self._running[pid] = mutant
            else:
                run_mutant(mutant, [items[name] for name in tests], limit)
        while self._running:
            self._reap()
        return True

    def _reap(self):
        pid, status = os.wait()
        self.codes[self._running.pop(pid)] = os.waitstatus_to_exitcode(status)


def run_mutant(mutant, items, limit):
    set_mutant_under_test(mutant)
    seconds = limit + int(process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))  # a mutant without an end gets SIGXCPU
    code = 1
    try:
        code = int(any(fails(item, after) for item, after in zip(items, [*items[1:], None])))
    finally:
        os._exit(code)


def fails(item, after):
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=after))


isolation.ForkRunner = OneSession
from mutmut import __main__ as program

collect = program.collect_source_file_mutation_data


def collect_sample(**names):
    """A random sample of the mutants, the same in each run."""
    mutants, data = collect(**names)
    size = min(int(os.environ["SAMPLE"]) or len(mutants), len(mutants))
    return random.Random(1).sample(sorted(mutants, key=lambda mutant: mutant[1]), size), data


program.collect_source_file_mutation_data = collect_sample
program.cli()
'''
QUICKEST_FIRST = '''"""The quickest test runs first: one that fails ends the run of a mutant."""

import json
from pathlib import Path

stats = Path("mutmut-stats.json")
seconds = {}


def pytest_collection_modifyitems(items):
    if not seconds and stats.is_file():
        seconds.update(json.loads(stats.read_text())["duration_by_test"])
    items.sort(key=lambda item: seconds.get(item.nodeid, 0.0))
'''


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mutant and what became of it."""

    name: str
    end: str
    """killed, survived, timeout, no test, or another word for what mutmut says."""
    change: str
    """The lines that differ."""

    @property
    def noticed(self) -> bool:
        return self.end in ("killed", "timeout")


def score(mutants: Sequence[Mutant]) -> float:
    """Share of mutants that a test noticed, in percent; 100 where there are none."""
    return 100 * sum(mutant.noticed for mutant in mutants) / len(mutants) if mutants else 100.0


def modules(package: str) -> list[str]:
    """Every module with code of a package, as `recommender/gate`."""
    folder = ROOT / "shared" / "rightsizer"
    paths = sorted((folder / package).rglob("*.py"))
    return [_name(path.relative_to(folder)) for path in paths if "def " in path.read_text()]


def _name(path: Path) -> str:
    return str(path.parent if path.name == "__init__.py" else path.with_suffix(""))


def changed_modules(since: str) -> list[str]:
    """The modules of these packages that this branch changed since it left a commit."""
    folders = [f"shared/rightsizer/{package}" for package in PACKAGES]
    command = ["git", "diff", "--name-only", "--diff-filter=d", "--merge-base", since, "--", *folders]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    known = {name for package in PACKAGES for name in modules(package)}
    return [name for name in (_name(Path(line).relative_to("shared/rightsizer")) for line in lines) if name in known]


def select_tests(module: str) -> list[str]:
    """The test files that carry the module's name, also with or inside of its inner package, and those of `ALSO`."""
    package, *rest = module.split("/")
    folder = ROOT / "tests" / package
    named = [*folder.glob(f"test_{'_'.join(rest)}.py"), *folder.glob(f"test_{'_'.join(rest)}_*.py")]
    named.append(folder / f"test_{rest[-1]}.py")
    inner = folder / rest[0]
    named += [inner / f"test_{rest[-1]}.py", *inner.glob(f"test_{rest[-1]}_*.py")]
    also = [ROOT / "tests" / f"{name}.py" for name in ALSO.get(module, ())]
    return sorted({str(path.relative_to(ROOT)) for path in (*named, *also) if path.is_file()})


def covering_cases() -> list[str]:
    """A few labelled cases that together name every code, kind, finding and gate which the frozen answers name."""
    facts: dict[str, set[str]] = {}
    for line in (ROOT / "tests/frozen/data/answers.jsonl").read_text().splitlines():
        where, row = json.loads(line)
        facts.setdefault(where.partition(" ")[0], set()).update(_facts(row))
    chosen, missing = [], set[str]().union(*facts.values())
    while missing:
        best = max(sorted(facts), key=lambda case: len(facts[case] & missing))
        chosen.append(best)
        missing -= facts[best]
    return [f"tests/test_cases.py::test_the_case_is_judged_as_labelled[{case}]" for case in chosen]


def _facts(row: object) -> Iterator[str]:
    """What a frozen row names by a fixed word: codes of reasons, kinds, findings and gates."""
    match row:
        case dict():
            for key, value in row.items():
                if key in ("code", "kind", "finding", "gate") and isinstance(value, str):
                    yield f"{key} {value}"
                yield from _facts(value)
        case list():
            for one in row:
                yield from _facts(one)
        case str() if len(words := row.split()) == 3:
            yield f"excluded {words[2]}"


def lay_out(module: str, tests: Sequence[str]) -> Path:
    """A copy of the project for mutmut with the package at its top; returns its folder."""
    work = ROOT / OUT / "work"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(ROOT / "shared" / "rightsizer", work / "rightsizer", ignore=shutil.ignore_patterns("__pycache__"))
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, work / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, work / name)
    (work / "conftest.py").write_text(QUICKEST_FIRST)
    (work / "run_mutmut.py").write_text(RUN)
    only = [str(_source(work, module).relative_to(work))]
    copied = [name for name in (*COPIED, "conftest.py") if name != "tests"]
    words = {"only": only, "copied": copied, "tests": list(tests)}
    (work / "pyproject.toml").write_text(SETTINGS.format(**{key: json.dumps(value) for key, value in words.items()}))
    return work


def _source(work: Path, module: str) -> Path:
    plain = work / "rightsizer" / f"{module}.py"
    return plain if plain.is_file() else work / "rightsizer" / module / "__init__.py"


def run_mutmut(work: Path, children: int, sample: int) -> None:
    """Run mutmut in the copy; RuntimeError with the end of its output where it stops early."""
    command = [sys.executable, "run_mutmut.py", "run", "--max-children", str(children)]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    clean |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "SAMPLE": str(sample)}
    with (work.parent / "mutmut.log").open("w") as log:
        code = subprocess.run(command, cwd=work, env=clean, stdout=log, stderr=subprocess.STDOUT).returncode
    if code != 0:
        end = "\n".join((work.parent / "mutmut.log").read_text().splitlines()[-15:])
        raise RuntimeError(f"mutmut stopped with {code} in {work}; do the tests pass there?\n{end}")


def read_mutants(work: Path, module: str) -> list[Mutant]:
    """What mutmut left on disk about each mutant."""
    source = work / "mutants" / _source(work, module).relative_to(work)
    codes = json.loads(Path(f"{source}.meta").read_text())["exit_code_by_key"]
    spans = json.loads(Path(f"{source}.spans").read_text())["spans"]
    lines = source.read_text().splitlines()
    return [_mutant(key, code, lines, spans) for key, code in codes.items()]


def _mutant(key: str, code: int | None, lines: Sequence[str], spans: Mapping[str, Sequence[int]]) -> Mutant:
    name = key.rpartition(".")[2]
    plain = name.rpartition("__mutmut_")[0]
    old, new = (_function(lines, spans[each], each, plain) for each in (f"{plain}__mutmut_orig", name))
    diff = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    change = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    end = "not run" if code is None else ENDS.get(code, f"exit {code}")
    return Mutant(name, end, "\n".join(change))


def _function(lines: Sequence[str], span: Sequence[int], name: str, plain: str) -> str:
    """The text of a function from a mutated file, under its plain name and without the indent of a method."""
    part = lines[span[0] - 1 : span[1]]
    indent = min((len(line) - len(line.lstrip()) for line in part if line.strip()), default=0)
    return "\n".join(line[indent:] for line in part).replace(name, plain)


COLUMNS = ("killed", "timeout", "survived", "no test")
HEAD = f"| module | mutants | {' | '.join(COLUMNS)} | other | score |\n{8 * '|---'}|"


def row(module: str, mutants: Sequence[Mutant]) -> str:
    """The line of one module."""
    ends = [mutant.end for mutant in mutants]
    counts = [ends.count(end) for end in COLUMNS]
    cells = [module, len(ends), *counts, len(ends) - sum(counts), f"{score(mutants):.1f} %"]
    return f"| {' | '.join(map(str, cells))} |"


def survivors(mutants: Iterable[Mutant]) -> str:
    """Each mutant that no test noticed, with the lines that differ."""
    left = sorted((mutant for mutant in mutants if not mutant.noticed), key=lambda mutant: mutant.name)
    return "".join(f"{mutant.name}: {mutant.end}\n{mutant.change}\n\n" for mutant in left)


def mutate(module: str, children: int, cases: Sequence[str], sample: int = 0) -> list[Mutant]:
    """Run the mutants of one module, or a sample of them, and write the survivors; ValueError without a test of it."""
    tests = select_tests(module)
    if not tests:
        name = module.partition("/")[2].replace("/", "_")
        raise ValueError(f"{module}: no test file; write tests/{module.partition('/')[0]}/test_{name}.py")
    work = lay_out(module, [*tests, *(cases if module.startswith("recommender") else ())])
    run_mutmut(work, children, sample)
    found = [mutant for mutant in read_mutants(work, module) if not sample or mutant.end != "not run"]
    kept = ROOT / OUT / "survivors" / f"{module.replace('/', '.')}.txt"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(survivors(found))
    return found


def parser() -> argparse.ArgumentParser:
    """The command line."""
    teach = argparse.ArgumentParser(
        prog="scripts/mutants.py",
        description="Changes one thing at a time in a module of the deciding packages and runs the module's tests. "
        "A change that no test notices is a survivor. Prints a row for each module; the survivors are in "
        f"{OUT}/survivors. Ends with 1 where a module scores below {LEAST:g} %, and with 2 where one could not be run.",
        epilog="make mutants MODULE=recommender/gate    one module, some minutes\n"
        "make mutants SINCE=origin/main          the modules that a branch changed, for a pull request\n"
        "make mutants                            all modules: for the night",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    teach.add_argument("modules", nargs="*", metavar="MODULE", help="such as recommender/gate; without one, all")
    teach.add_argument("--since", metavar="COMMIT", help="the modules that this branch changed")
    teach.add_argument("--children", type=int, default=2, metavar="N", help="mutants that run at a time (2)")
    teach.add_argument("--no-cases", action="store_true", help="without the labelled cases: own tests only, quicker")
    teach.add_argument("--sample", type=int, default=0, metavar="N", help="N mutants of each module, drawn by one seed")
    return teach


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for; the exit code."""
    asked = parser().parse_args(arguments)
    known = [name for package in PACKAGES for name in modules(package)]
    if unknown := [name for name in asked.modules if name not in known]:
        print(f"mutants: no module {', '.join(unknown)}; say one of {', '.join(known)}", file=sys.stderr)
        return 2
    wanted = changed_modules(asked.since) if asked.since else asked.modules or known
    cases = [] if asked.no_cases else covering_cases()
    print(HEAD, flush=True)
    worst, by_package = 0, dict[str, list[Mutant]]()
    for module in wanted:
        try:
            found = mutate(module, asked.children, cases, asked.sample)
        except (RuntimeError, ValueError) as error:
            print(f"mutants: {error}", file=sys.stderr)
            worst = 2
            continue
        print(row(module, found), flush=True)
        by_package.setdefault(module.partition("/")[0], []).extend(found)
        worst = max(worst, int(score(found) < LEAST))
    for package, found in by_package.items():
        print(row(f"all of {package} above", found))
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
