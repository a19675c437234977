"""The documentation stays short, true in its links, and can be found from one index."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
PAGE_LINES = 200
RECORD_LINES = 40
RECORD_WIDTH = 150
"""A record is one screen: so its lines have a width too. Rows of tables are left out."""
RECORDS = 25
PARTS = ("Context", "Decision", "Consequences", "Refused")
CODE = ("shared", "functions", "sandbox", "bench", "scripts", "tests")
NAMED = re.compile(r"\b[Dd]ecisions? (\d+(?:(?:, | and )\d+)*)\b")
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"\s]+)\"")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


@cache
def pages() -> tuple[Path, ...]:
    return tuple(sorted(DOCS.rglob("*.md")))


def read_by_people() -> list[Path]:
    return [*pages(), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))]


@cache
def records() -> tuple[Path, ...]:
    return tuple(path for path in pages() if path.parent.name == "decisions" and path != path.parent / "README.md")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def links(page: Path) -> tuple[str, ...]:
    """Where a page links to inside the repository; code blocks hold no links."""
    found = (one or other for one, other in LINK.findall(FENCE.sub("", page.read_text())))
    return tuple(link for link in found if "://" not in link and not link.startswith("mailto:"))


def target(page: Path, link: str) -> Path:
    return (page.parent / link.partition("#")[0]).resolve() if link.partition("#")[0] else page


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain)


def broken(page: Path, link: str) -> bool:
    """Whether the file is missing, or has no such heading."""
    to, anchor = target(page, link), link.partition("#")[2]
    return not to.exists() or (to.suffix == ".md" and bool(anchor) and anchor not in anchors(to))


def reached(start: Path) -> set[Path]:
    """Every page of docs that can be clicked to from a page of docs, that page included."""
    seen, waiting = {start}, [start]
    while waiting:
        page = waiting.pop()
        found = {target(page, link) for link in links(page) if not broken(page, link)}
        inside = {to / "README.md" if to.is_dir() else to for to in found} & set(pages())
        waiting += inside - seen
        seen |= inside
    return seen


def test_there_are_few_enough_records_to_read_them_all() -> None:
    assert 0 < len(records()) <= RECORDS


@pytest.mark.parametrize("record", records(), ids=lambda path: path.stem)
def test_a_record_is_one_screen_and_says_what_was_refused(record: Path) -> None:
    lines = record.read_text().splitlines()
    assert len(lines) <= RECORD_LINES
    assert [line for line in lines if len(line) > RECORD_WIDTH and not line.startswith("|")] == []
    assert lines[0].startswith(f"# {int(record.stem[:4])}. ")
    assert [part for part in PARTS if not re.search(rf"\*\*{part}\b", "\n".join(lines))] == []


def test_the_index_of_records_has_a_line_for_each_and_its_number() -> None:
    listed = re.findall(r"^- \[(\d+)\]\((\S+)\): .+\.$", (DOCS / "decisions" / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted((str(int(path.stem[:4])), path.name) for path in records())


def test_a_decision_that_is_named_exists() -> None:
    """In pages, in the changelog and in the code alike."""
    numbers = {str(int(path.stem[:4])) for path in records()}
    code = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    named = {
        (name(path), number)
        for path in [*read_by_people(), ROOT / "CHANGELOG.md", *code]
        for some in NAMED.findall(path.read_text())
        for number in re.findall(r"\d+", some)
    }
    assert len({number for _, number in named}) > len(numbers) / 2, "nobody names a decision: the search is broken"
    assert {one for one in named if one[1] not in numbers} == set()


def test_no_page_is_longer_than_a_reader_stays() -> None:
    lengths = {name(page): len(page.read_text().splitlines()) for page in pages()}
    assert {page: lines for page, lines in lengths.items() if lines > PAGE_LINES} == {}


def test_every_link_leads_somewhere() -> None:
    assert [(name(page), link) for page in read_by_people() for link in links(page) if broken(page, link)] == []


def test_every_page_can_be_found_from_the_index() -> None:
    found = reached(INDEX)
    assert [name(page) for page in pages() if page not in found] == []


def test_the_first_page_of_the_project_leads_to_the_index() -> None:
    assert INDEX in {target(ROOT / "README.md", link) for link in links(ROOT / "README.md")}
