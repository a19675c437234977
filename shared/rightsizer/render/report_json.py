"""A report as JSON for machines, safe to show on a terminal, too."""

import json
import re

from rightsizer import wire
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import Report
from rightsizer.ports.evaluation import ReportFormat
from rightsizer.render import report_tables

_OPTIONS = {"options": {"__all__": {"test_hours": True, "policy_changes": True}}}
"""Left out of each option: its facts say the same, and whoever reads the documents knows them by those."""
_REPORT = {"recommendations": {"__all__": _OPTIONS}, "proposals": {"__all__": {"recommendation": _OPTIONS}}}
_NOT_ASCII = re.compile(r"[^ -~]")


def report(report: Report) -> str:
    """The report as one JSON document. Characters that are not printable are written as ``\\u`` and four digits."""
    return _printable(wire.dumps(report_tables.cut_report(report), left_out=_REPORT))


def line(recommendation: Recommendation) -> str:
    """One recommendation as JSON in one line, in printable characters."""
    return _printable(wire.dumps(recommendation, left_out=_OPTIONS))


def _printable(text: str) -> str:
    return text if text.isprintable() else _NOT_ASCII.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    letter = found.group()
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]


FORMAT = ReportFormat("json", "application/json", report)
