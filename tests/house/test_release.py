"""What a release rests on: one version, a changelog by version, the commands of docs/release.md, and the forms."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rightsizer import __version__
from scripts.check_readme import commands_of_the_program

ROOT = Path(__file__).parents[2]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
PAGE = (ROOT / "docs" / "release.md").read_text()
HEADING = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)
KINDS = ["Breaking", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def headings(text: str) -> list[tuple[str, str]]:
    """The versions of a changelog with their dates, from the top."""
    return HEADING.findall(text)


def number(version: str) -> tuple[int, ...]:
    """A version without its suffix, to compare."""
    return tuple(int(part) for part in version.split(".dev")[0].split("."))


def test_the_changelog_has_unreleased_on_top_and_each_version_once_with_its_day() -> None:
    (top, day), *released = headings((ROOT / "CHANGELOG.md").read_text())
    assert (top, day) == ("Unreleased", "")
    assert all(day for _, day in released)
    versions = [number(version) for version, _ in released]
    assert versions == sorted(set(versions), reverse=True)


def test_each_version_of_the_changelog_has_each_kind_of_change_once() -> None:
    for section in re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.+)$", section, re.MULTILINE)
        assert len(kinds) == len(set(kinds)), section.splitlines()[0]
        assert set(kinds) <= set(KINDS), section.splitlines()[0]


def test_the_version_is_the_newest_of_the_changelog_or_on_the_way_to_the_next() -> None:
    newest = headings((ROOT / "CHANGELOG.md").read_text())[1][0]
    if ".dev" in __version__:
        assert number(__version__) > number(newest)
    else:
        assert __version__ == newest


def test_the_security_page_names_the_newest_release_and_how_to_report() -> None:
    major, minor, _ = number(headings((ROOT / "CHANGELOG.md").read_text())[1][0])
    page = (ROOT / "SECURITY.md").read_text()
    assert f"`{major}.{minor}.x`" in page
    assert "Report a vulnerability" in page


def test_the_commands_of_the_checklist_give_the_changelog_and_the_version_their_number(tmp_path: Path) -> None:
    for name in ("CHANGELOG.md", "SECURITY.md", "shared/rightsizer/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    first, *others = re.findall(r"^perl .*$", PAGE, re.MULTILINE)
    assert len(others) == 3
    for line in (first, *others[:-1]):
        subprocess.run(line, shell=True, cwd=tmp_path, check=True)
    before = headings((ROOT / "CHANGELOG.md").read_text())
    top, (version, day), *rest = headings((tmp_path / "CHANGELOG.md").read_text())
    assert (top, version, rest) == (before[0], "0.3.0", before[1:])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day)
    assert '__version__ = "0.3.0"\n' in (tmp_path / "shared/rightsizer/__init__.py").read_text()
    assert "`0.3.x`" in (tmp_path / "SECURITY.md").read_text()
    subprocess.run(others[-1], shell=True, cwd=tmp_path, check=True)
    assert '__version__ = "0.4.0.dev0"\n' in (tmp_path / "shared/rightsizer/__init__.py").read_text()


def not_installed(page: str) -> list[str]:
    """Lines of a section's commands that run a program of .venv before the section installs it."""
    found: list[str] = []
    for section in re.split(r"^## ", page, flags=re.MULTILINE):
        lines = "".join(re.findall(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)).splitlines()
        installed = next(
            (at for at, line in enumerate(lines) if line.split("#")[0].strip() == "make install"), len(lines)
        )
        found += [line for line in lines[:installed] if line.startswith(".venv/bin/")]
    return found


def test_a_section_that_runs_rightsizer_installs_it_first() -> None:
    """`make build` makes no .venv, so who begins at "Deploy" would get "not found"."""
    assert not_installed("## Deploy\n```sh\nmake build\n.venv/bin/rightsizer doctor\n```\n") == [
        ".venv/bin/rightsizer doctor"
    ]
    first, second = PAGE.split("\n## 3. ")[0], (ROOT / "README.md").read_text()
    assert not_installed(first) == []
    assert not_installed(second) == []


def form(path: Path) -> dict[str, Any]:
    found = yaml.safe_load(path.read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_one_that_the_forge_shows(path: Path) -> None:
    """The keys are those of GitHub's page "Syntax for GitHub's form schema"; a form with another one is not shown."""
    found = form(path)
    assert found.keys() <= {"name", "description", "title", "labels", "body", "assignees", "projects", "type"}
    assert {"name", "description", "body"} <= found.keys()
    ids = [part["id"] for part in found["body"] if part["type"] != "markdown"]
    assert len(ids) == len(set(ids))
    for part in found["body"]:
        assert part.keys() <= {"type", "id", "attributes", "validations"}
        if part["type"] == "markdown":
            assert part["attributes"].keys() == {"value"}
            continue
        assert part["attributes"]["label"]
        options = part["attributes"].get("options", [])
        assert bool(options) is (part["type"] in ("dropdown", "checkboxes"))
        kind = dict if part["type"] == "checkboxes" else str
        assert all(isinstance(option, kind) for option in options), "a bare yes or no is a boolean in YAML"


def test_the_forms_name_commands_and_files_that_exist() -> None:
    commands = commands_of_the_program()
    for path in FORMS:
        text = path.read_text()
        assert set(re.findall(r"`rightsizer ([a-z]+)\b", text)) <= commands
        for linked in re.findall(r"\]\(\.\./blob/main/([^)]+)\)", text):
            assert (ROOT / linked).exists(), linked


def test_the_first_thing_that_a_bug_report_says_is_where_a_vulnerability_goes() -> None:
    first = form(ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml")["body"][0]
    assert "SECURITY.md" in first["attributes"]["value"]
