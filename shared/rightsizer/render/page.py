"""The two pages by the names that callers use: `page.proposal` and `page.report`."""

from rightsizer.render.details_page import details as proposal
from rightsizer.render.report_page import report

__all__ = ["proposal", "report"]
