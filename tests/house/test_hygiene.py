"""What is committed fits every machine: no host of a registry, no path of somebody's machine."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REQUIREMENTS = sorted([*ROOT.glob("requirements/*.txt"), *ROOT.glob("shared/requirements*.txt")])
# Written in two pieces, so that this file does not match itself.
HOSTS = re.compile("|".join(["py" + r"pi\.org", "python" + r"hosted\.org", "registry" + r"\.npmjs"]))
MACHINE = re.compile("|".join([r"(?<![\w.])/" + "home/[a-z]", r"(?<![\w.])/" + "Users/", r"(?<![\w.])/" + r"root/"]))
BINARY = {".gz", ".npz", ".png", ".ico", ".pdf", ".zip"}


def committed() -> list[Path]:
    """Files that git tracks; a source archive has no git, and is then taken as it is."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout: there is no list of committed files")
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.is_file() and path.suffix not in BINARY]


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.stem)
def test_a_requirement_file_pins_by_hash_and_names_no_source(path: Path) -> None:
    text = path.read_text()
    pinned = re.findall(r"^[A-Za-z0-9][\w.\[\]-]*==\S+", text, re.MULTILINE)
    assert pinned
    assert len(pinned) == len(re.findall(r"^[^\s#]", text, re.MULTILINE))
    assert text.count("--hash=sha256:") >= len(pinned)
    assert not re.search(r"://|--index-url|--extra-index-url|--find-links", text)


def test_the_layer_takes_the_versions_that_the_tests_run_with() -> None:
    def pins(path: Path) -> dict[str, str]:
        return dict(re.findall(r"^([\w.-]+)==(\S+)", path.read_text(), re.MULTILINE))

    tested = pins(ROOT / "requirements" / "dev.txt")
    for name in ("requirements.txt", "requirements-models.txt"):
        for package, version in pins(ROOT / "shared" / name).items():
            assert tested[package] == version, package


def test_no_committed_file_names_a_registry_host_or_a_machine_path() -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text(errors="replace") for path in committed()}
    matches = {name: HOSTS.search(text) or MACHINE.search(text) for name, text in texts.items()}
    found = {name: match[0] for name, match in matches.items() if match}
    assert found == {}


def test_no_environment_or_build_is_committed() -> None:
    names = {str(path.relative_to(ROOT)) for path in committed()}
    assert [n for n in names if n.startswith((".venv", ".aws-sam", "out/")) or n.endswith((".pyc", "uv.lock"))] == []
