"""A part of a page of the documentation that a script writes, between two marks with the part's name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


@dataclass(frozen=True, slots=True)
class PagePart:
    """Where a script writes: the page, and the name in the marks ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``.

    Example:
        >>> PagePart(DOCS / "advise.md", "sum").put("4", "two and two: <!-- sum: begin -->5<!-- sum: end -->")
        'two and two: <!-- sum: begin -->\\n4\\n<!-- sum: end -->'
    """

    path: Path
    name: str

    def put(self, text: str, page: str) -> str:
        """The page with this text in place of what stands between the marks."""
        begin, end = f"<!-- {self.name}: begin -->", f"<!-- {self.name}: end -->"
        before, _, rest = page.partition(begin)
        return f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}"

    def write(self, text: str, arguments: Sequence[str]) -> int:
        """Write the page, or with ``--check`` only compare it; the exit code, 1 where it differs."""
        page = self.path.read_text(encoding="utf-8")
        made = self.put(text, page)
        if "--check" in arguments:
            return int(made != page)
        self.path.write_text(made, encoding="utf-8")
        return 0
