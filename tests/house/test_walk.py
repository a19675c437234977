"""The walk of a reader: files that are visited, and steps from a lower layer to a higher one."""

from pathlib import Path

import pytest

from scripts.walk import ROOT, STARTS, Walk, layer_ranks, library, main, walk

CONTRACT = """
[[tool.importlinter.contracts]]
type = "layers"
layers = ["flows | intake", "wire : telemetry", "ports", "changes", "domain", "errors"]
"""
FLOW = """
from rightsizer.changes import proof
from rightsizer.changes.window import opens
from rightsizer.domain.change import ended
from rightsizer.ports.store import Store

class Planner:
    store: Store

    def advance(self, change):
        opens(change)
        self.store.save(change)
        ended(change)
        self._finish(change)

    def _finish(self, change):
        return proof.verdict(change)
"""
SMALL = {
    "flows/advance.py": FLOW,
    "changes/proof.py": "from rightsizer.changes.window import opens\ndef verdict(change):\n    return opens(change)\n",
    "changes/window.py": "def opens(change):\n    return True\ndef unused():\n    return opens(1)\n",
    "domain/change.py": "def ended(change):\n    return True\n",
    "ports/store.py": 'class Store:\n    def save(self, change):\n        """Save it."""\n        ...\n',
}


def read(folder: Path, changed: dict[str, str]) -> Walk:
    for name, code in {**SMALL, **changed}.items():
        path = folder / "rightsizer" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    start = "rightsizer.flows.advance:Planner.advance"
    return walk(library(folder / "rightsizer"), layer_ranks(CONTRACT), start)


def test_a_return_to_a_higher_layer_is_a_climb(tmp_path: Path) -> None:
    found = read(tmp_path, {})
    assert found.climbs == (("rightsizer.changes.window:opens", "rightsizer.flows.advance:Planner._finish"),)
    assert found.files == ("rightsizer.flows.advance", "rightsizer.changes.window", "rightsizer.changes.proof")
    assert found.from_below == (), "the planner itself calls its next method"


def test_reading_downward_only_is_no_climb(tmp_path: Path) -> None:
    straight = FLOW.replace("        opens(change)\n        self.store", "        self.store")
    assert read(tmp_path, {"flows/advance.py": straight}).climbs == ()


def test_a_function_that_a_lower_layer_calls_is_a_call_from_below(tmp_path: Path) -> None:
    proof = "from rightsizer.flows.tell import tell\ndef verdict(change):\n    return tell(change)\n"
    found = read(tmp_path, {"changes/proof.py": proof, "flows/tell.py": "def tell(change):\n    return change\n"})
    assert found.from_below == ("rightsizer.flows.tell:tell",)


def test_packages_on_one_line_of_the_contract_have_one_rank() -> None:
    ranks = layer_ranks(CONTRACT)
    assert ranks["flows"] == ranks["intake"] > ranks["wire"] == ranks["telemetry"] > ranks["changes"]


def test_a_start_that_is_gone_is_named(tmp_path: Path) -> None:
    read(tmp_path, {})
    with pytest.raises(KeyError, match=r"rightsizer\.domain\.change has no function begun"):
        walk(library(tmp_path / "rightsizer"), layer_ranks(CONTRACT), "rightsizer.domain.change:begun")


@pytest.mark.parametrize("what", STARTS)
def test_both_ways_are_walked_on_the_library(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([what])
    assert capsys.readouterr().out.startswith(f"{what}: ")
    found = walk(library(ROOT / "shared/rightsizer"), layer_ranks((ROOT / "pyproject.toml").read_text()), STARTS[what])
    assert len(found.files) > 20
    assert found.from_below == (), "no rule calls back, and no adapter calls up"
