"""The bill beside a report: read it once, compare, and say why where nothing can be compared."""

from collections.abc import Callable
from datetime import datetime

from rightsizer.domain.bill import BillWindow, Reconciliation
from rightsizer.errors import RightsizerError
from rightsizer.ports.bill import BillReader
from rightsizer.reporting.bill import BillSums, expected_costs, reconcile
from rightsizer.reporting.totals import Records
from rightsizer.telemetry import logger


def reconcile_with_bill(
    make_reader: Callable[[], BillReader], records: Records, start: datetime, end: datetime, now: datetime
) -> Reconciliation:
    """The report's figures against the bill. A bill that cannot be read is a reason, and the report goes on."""
    sums = BillSums(BillWindow(records.account, records.region, start, end))
    try:
        reader = make_reader()
        for line in reader.lines(sums.scope):
            sums.add(line)
        return reconcile(sums, reader.nature(), expected_costs(records, start, end, now), now)
    except RightsizerError as error:
        logger.warning("the bill was not read", extra={"problem": str(error)})
        return Reconciliation(reason=str(error))
