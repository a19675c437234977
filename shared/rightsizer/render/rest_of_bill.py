"""The rest of the bill in words, one list for scan, explain, e-mail and page."""

from collections.abc import Sequence
from decimal import Decimal

from rightsizer.domain.account_finding import ADVICE_ONLY, AccountFinding, FindingItem
from rightsizer.domain.reason import Reason
from rightsizer.render import sentences
from rightsizer.render.html import Cell, HtmlNode, Markup, join, table, tag

TITLE = "The rest of the bill"
HEADING = f"{TITLE} ({ADVICE_ONLY})"
ITEMS = 5
"""Items of a finding at a terminal and in an e-mail; JSON and page have all, the page 200 at most."""
STEPS_TITLE = "The next training and processing runs"
PAGE_ITEMS = 200


def amount(finding: AccountFinding) -> str:
    """``saves USD 1,022.00 a month``; that there is nothing to save, that nothing is proposed, or that nobody knows."""
    if finding.usd_per_month is None:
        return "saving not known"
    if finding.usd_per_month > 0:
        return f"saves USD {finding.usd_per_month:,.2f} a month"
    return "nothing is proposed" if _is_refused(finding) else "nothing to save"


def _is_refused(finding: AccountFinding) -> bool:
    return finding.usd_per_month == 0 and "reason" in finding.evidence


def lines(finding: AccountFinding) -> list[str]:
    """One finding as lines: what and how much, what to do, its figures, its items, what was not checked.

    One line where nothing is proposed: its reason stands in it.
    """
    if _is_refused(finding):
        return [f"{finding.what}: {amount(finding)}"]
    return [
        *_head_lines(finding),
        *(f"  {name}: {text}" for name, text in finding.evidence.items()),
        *_item_lines(finding),
        *([f"  not checked: {'; '.join(finding.not_checked)}"] if finding.not_checked else []),
    ]


def listed_lines(findings: Sequence[AccountFinding]) -> list[str]:
    """The findings for a list of the account: without the figures and questions that JSON and the report have."""
    parts = []
    for finding in filter(is_worth_listing, findings):
        even = [f"  {name}: {text}" for name, text in finding.evidence.items() if name == "break-even"]
        parts += [*_head_lines(finding), *even, *_item_lines(finding)]
    return [*parts, "Figures, all items and what was not checked: --json"] if parts else []


def _head_lines(finding: AccountFinding) -> list[str]:
    return [f"{finding.what}: {amount(finding)}", f"  advice: {finding.advice}"]


def _item_lines(finding: AccountFinding) -> list[str]:
    more = len(finding.items) - ITEMS
    shown = [f"  - {item_text(item)}" for item in finding.items[:ITEMS]]
    return [*shown, f"  - and {more:,} more"] if more > 0 else shown


def is_worth_listing(finding: AccountFinding) -> bool:
    """Whether a list of the account tells it. That an endpoint is right as it is, only `explain` and JSON tell."""
    return not finding.endpoint or finding.usd_per_month != 0


def short_lines(findings: Sequence[AccountFinding], bullet: str = "  ", most: int | None = None) -> list[str]:
    """Each finding in one line, for a message, with the steps that it proposes; nothing without one."""
    told = [finding for finding in findings if is_worth_listing(finding)][:most]
    found = [f"{HEADING}:"] if told else []
    for finding in told:
        found.append(f"{bullet}{finding.what}: {amount(finding)}")
        steps = [item for item in finding.items if item.next_step]
        found += [f"    - {_named(item)}: {item.next_step}{_saved(item)}" for item in steps[:ITEMS]]
        if len(steps) > ITEMS:
            found.append(f"    - and {len(steps) - ITEMS:,} more, in the report")
    return found


def item_text(item: FindingItem) -> str:
    """``bert (owner nlp): use ml.c5.xlarge, saves USD 12.00 a month: the GPU did nothing``."""
    used = f", last used {item.last_used}" if item.last_used else ""
    if item.next_step:
        return f"{_named(item)}: {item.next_step}{_saved(item)}: {item.detail}{used}"
    usd = f", USD {item.usd_per_month:,.2f} a month" if item.usd_per_month else ""
    return f"{_named(item)}: {item.detail}{used}{usd}"


def _named(item: FindingItem) -> str:
    return f"{item.name} (owner {item.owner})" if item.owner else item.name


def _saved(item: FindingItem) -> str:
    return f", saves USD {item.usd_per_month:,.2f} a month" if item.usd_per_month else ""


def unread_line(reason: Reason) -> str:
    """A part of the rest of the bill that could not be read, in one line."""
    return f"rest of the bill, not read: {reason.sentence}"


def section_content(findings: Sequence[AccountFinding], unread: Sequence[Reason]) -> Markup:
    """The table of the report's page."""
    rows = [
        [
            Cell(
                join(finding.what, tag("div", finding.owner, class_="note") if finding.owner else None),
                finding.code,
                "why",
            ),
            Cell(
                "not known" if finding.usd_per_month is None else sentences.exact_money(finding.usd_per_month),
                float(finding.usd_per_month or 0),
                "n",
            ),
            Cell(join(finding.advice, *_notes(finding)), look="why"),
        ]
        for finding in findings
        if is_worth_listing(finding)
    ]
    heads = ("What", "Saving a month", "Advice")
    listed = table(TITLE, heads, rows, "Nothing was found beside the endpoints.")
    markups = [tag("p", unread_line(reason), class_="note") for reason in unread]
    return tag("div", tag("p", f"{ADVICE_ONLY}. In no sum of this report.", class_="note"), *markups, listed)


def steps_content(findings: Sequence[AccountFinding]) -> Markup | None:
    """Table of the next runs that are proposed to the owner of each work; None where nothing is."""
    rows = [
        [
            Cell(join(item.name, tag("div", item.owner, class_="note") if item.owner else None), item.name),
            Cell(item.next_step, look="why"),
            Cell(sentences.exact_money(item.usd_per_month or Decimal(0)), float(item.usd_per_month or 0), "n"),
            Cell(item.detail, look="why"),
        ]
        for finding in findings
        for item in finding.items
        if item.next_step
    ]
    if not rows:
        return None
    text = (
        "No change of rightsizer starts a training job: whoever starts the next run decides. In no sum of this report."
    )
    heads = ("Work", "Next run", "Saves a month", "Why")
    return tag("div", tag("p", text, class_="note"), table(STEPS_TITLE, heads, rows, ""))


def _notes(finding: AccountFinding) -> list[HtmlNode]:
    """Figures, items and open questions, in small print."""
    parts = [f"{name}: {text}" for name, text in finding.evidence.items()]
    items = [item for item in finding.items if not item.next_step]
    parts += [f"each stands above, under: {STEPS_TITLE}"] if len(items) < len(finding.items) else []
    parts += [item_text(item) for item in items[:PAGE_ITEMS]]
    hidden = len(items) - PAGE_ITEMS
    parts += [f"and {hidden:,} more; the JSON has all"] if hidden > 0 else []
    parts += [f"not checked: {each}" for each in finding.not_checked]
    return [tag("div", each, class_="note") for each in parts]
