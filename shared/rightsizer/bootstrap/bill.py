"""The bill that a report is compared with: from its address to what reads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rightsizer.errors import InputError

if TYPE_CHECKING:
    from rightsizer.aws.session import Session
    from rightsizer.ports.account import BillReader

COST_EXPLORER = "cost-explorer"
IN_STACK_S = 90.0
"""Seconds that a stack's report reads its bill for, of the 300 that its function has."""
AT_TERMINAL_S = 3600.0


def bill_reader(account: Session, where: str, seconds: float) -> BillReader:
    """The reader of the bill at `where`.

    `where`: ``cost-explorer``, ``cost-explorer:TAG``, ``s3://...``, or else a local file. InputError where it is none.
    """
    explorer, _, tag = where.partition(":")
    if explorer == COST_EXPLORER:
        from rightsizer.aws.bill_sources import CostExplorerBill

        return CostExplorerBill(account.client("ce", "us-east-1"), tag)
    from rightsizer.aws.bill_sources import BillFiles, ExportInS3, local_file

    if where.startswith("s3://"):
        return BillFiles(ExportInS3(account.client("s3"), where), seconds)
    path = Path(where)
    if not path.is_file():
        raise InputError(
            f"the bill {where[:200]!r} is no file; name one, s3://BUCKET/PREFIX/EXPORT-NAME, {COST_EXPLORER} or"
            f" {COST_EXPLORER}:TAG"
        )
    return BillFiles(local_file(path), seconds)
