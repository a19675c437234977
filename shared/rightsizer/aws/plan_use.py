"""How much of the account's Savings Plans is used, kept in the table: each answer of Cost Explorer costs USD 0.01.

The key is made of the plans, so that a plan that was bought or has ended is asked about at once.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rightsizer.aws.table import Item, Row, Table, epoch, money, read_if_readable, whole_number
from rightsizer.domain.price import PLAN_USE_DAYS
from rightsizer.errors import ConflictError, RightsizerError
from rightsizer.telemetry import logger

GRACE_DAYS = 1
"""So long the old use still serves while one process asks for the new one, or cannot."""
CLAIM_DAYS = 10 / (24 * 60)
"""Ten minutes: another process asks where the one that wanted to did not write by then."""


@dataclass(frozen=True, slots=True)
class _KeptUse:
    """A use, when it should be asked again, when it serves no longer (seconds since 1970), and the row's version."""

    use: float
    until: int
    expires: int
    version: int


class PlanUse:
    """The kept use of some plans. A table that fails costs a request more, and nothing else."""

    def __init__(self, table: Table, clock: Callable[[], datetime], *, writes: bool = True) -> None:
        self._table, self._clock, self._writes = table, clock, writes

    def recall(self, arns: Sequence[str], ask: Callable[[], float]) -> float:
        """The use of these plans, 0..1, at most eight days old.

        Of several processes that find it too old one asks. Errors are those of `ask`.
        """
        key = f"PLANS#{hashlib.sha256(' '.join(sorted(arns)).encode()).hexdigest()[:32]}"
        now = self._clock()
        kept = self._read(key)
        serves = kept is not None and epoch(now) < kept.expires
        if kept is not None and serves and (epoch(now) < kept.until or not self._claim(key, kept, now)):
            return kept.use
        use = ask()
        end = epoch(now, PLAN_USE_DAYS)
        self._write(key, _KeptUse(use, end, epoch(now, PLAN_USE_DAYS + GRACE_DAYS), kept.version + 2 if kept else 1))
        return use

    def _read(self, key: str) -> _KeptUse | None:
        try:
            return read_if_readable(self._table.get(key, "USE"), _kept)
        except RightsizerError as error:
            logger.warning("the kept use of the Savings Plans was not read", extra={"problem": str(error)})
            return None

    def _claim(self, key: str, kept: _KeptUse, now: datetime) -> bool:
        """Whether this process asks anew, and no other for ten minutes."""
        if not self._writes:
            return False
        claimed = _KeptUse(kept.use, epoch(now, CLAIM_DAYS), kept.expires, kept.version + 1)
        try:
            self._table.swap(_item(key, claimed), kept.version)
        except ConflictError:
            return False
        except RightsizerError as error:
            logger.warning("the kept use of the Savings Plans was not claimed", extra={"problem": str(error)})
        return True

    def _write(self, key: str, kept: _KeptUse) -> None:
        if not self._writes:
            return
        try:
            self._table.put(_item(key, kept))
        except RightsizerError as error:
            logger.warning("the use of the Savings Plans was not kept", extra={"problem": str(error)})


def _item(key: str, kept: _KeptUse) -> Item:
    return {
        "pk": key,
        "sk": "USE",
        "use": str(kept.use),
        "until": kept.until,
        "expires": kept.expires,
        "version": kept.version,
    }


def _kept(row: Row) -> _KeptUse:
    until, expires, version = (whole_number(row, name) for name in ("until", "expires", "version"))
    return _KeptUse(float(money(row, "use")), until, expires, version)
