"""docs/sandbox-operations.md: one line for each operation, written from the tables. `python -m sandbox.strict.page`."""

from sandbox.strict import By, Check
from sandbox.strict.tables import CHECKS

HEAD = """\
# What the simulated account refuses

One line for each operation that the program calls; `python -m sandbox.strict.page` writes this page from the tables in
`sandbox/strict/`, and a test holds both against each other and against the calls in `shared/rightsizer/aws`. Each part
of a line is a check of its own, in the order of the tables. **Source** is the operation's page in the API reference
(whose text botocore carries too), with what else says so. **Test**: `tests/sandbox/strictness/test_refusals.py` sends
one refused request for each check and takes the check out to see it pass; `-k` with the operation's name runs its own.
*Shape* are the limits, patterns and enums of botocore's shapes, all of them; the words beside it are examples. What is
marked *(moto)* is refused by the pinned moto and cannot be taken out. AWS publishes codes, and almost no wording: the
texts of the refusals are assumed, unless they are public in issues.

| operation | AWS refuses | source |
|---|---|---|
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_row(*key, checks) for key, checks in sorted(CHECKS.items()))


def _row(service: str, operation: str, checks: tuple[Check, ...]) -> str:
    refused = "; ".join(map(_said, checks)) or "nothing: it has no parameters"
    sources = dict.fromkeys(check.source for check in checks if check.source)
    cited = "; ".join([f"{'Slack' if service == 'slack' else 'API'} {operation}", *sources])
    return f"| {service}:{operation} | {refused} | {cited} |\n"


def _said(check: Check) -> str:
    if check.by is By.SHAPE:
        return f"*shape*: {check.says}"
    return f"{check.says} `{check.code}`" + (" *(moto)*" if check.by is By.MOTO else "")


if __name__ == "__main__":
    print(page(), end="")
