"""Write into docs/advise-rules.md the rules that advice cites: ``python -m scripts.advise_rules``.

With ``--check`` nothing is written, and the exit code is 1 where the page differs from the table of rules.
"""

import sys
from collections.abc import Iterator, Sequence

from rightsizer.advice.rules import Cited, rules
from scripts.page_part import DOCS, PagePart

PART = PagePart(DOCS / "advise-rules.md", "rules")
GROUPS = {
    "C": "Classes of hardware",
    "M": "Memory",
    "S": "Speed",
    "P": "Purchase",
    "H": "Hosting",
    "N": "Inferentia and Trainium",
    "T": "Training",
    "R": "An endpoint that runs already",
    "E": "Environments",
    "K": "Kubernetes",
    "X": "Experiments",
}
"""Groups by the letter of their rules, in the order of the page."""


def report() -> str:
    """The tables of all groups as Markdown."""
    used = {each.id[0] for each in rules().values()}
    return "\n".join(line for letter, title in GROUPS.items() if letter in used for line in _group(letter, title))


def _group(letter: str, title: str) -> Iterator[str]:
    yield from (f"## {title}", "", "| id | rule | figure | source |", "|---|---|---|---|")
    yield from (_row(each) for each in rules().values() if each.id.startswith(letter))
    yield ""


def _row(each: Cited) -> str:
    return f"| {each.id} | {each.rule} | {each.figure} | [{each.source}]({each.url}) |"


def main(arguments: Sequence[str]) -> int:
    """Write the page, or compare it; returns the exit code."""
    return PART.write(report(), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
