"""The files that a report is stored as, in the order in which they are stored. docs/extending.md adds one."""

from rightsizer.ports.evaluation import ReportFormat
from rightsizer.render import csv, report_json, report_page

REPORT_FORMATS: tuple[ReportFormat, ...] = (
    report_page.FORMAT,
    report_json.FORMAT,
    csv.FORMAT,
)
