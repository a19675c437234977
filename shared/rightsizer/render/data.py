"""A report as JSON for machines, safe to show on a terminal, too."""

import json
import re

from rightsizer import wire
from rightsizer.model.report import Report

_NOT_ASCII = re.compile(r"[^ -~]")


def report(told: Report) -> str:
    """The report as one JSON document. Characters that are not printable are written as ``\\u`` and four digits."""
    text = wire.dumps(told)
    return text if text.isprintable() else _NOT_ASCII.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    letter = found.group()
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]
