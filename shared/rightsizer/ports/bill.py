"""Port to AWS's bill."""

from collections.abc import Iterator
from typing import Protocol

from rightsizer.domain.bill import BilledCharge, BillNature, BillWindow


class BillReader(Protocol):
    """Reads charges of SageMaker from one bill."""

    def lines(self, scope: BillWindow) -> Iterator[BilledCharge]:
        """The charges, one at a time and of any account and Region; those outside the scope may be left out.

        InputError where the bill is damaged or of another kind, ReadError where it cannot be read.
        """
        ...

    def nature(self) -> BillNature:
        """Format, level and reach of the bill; only after `lines` was read to its end."""
        ...
