"""The SpotBook on the one table: claims, the record of interruptions, groups and marks. Keys: docs/ledger.md."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from rightsizer import wire
from rightsizer.aws.documents import noun_of
from rightsizer.aws.table import Row, Table, epoch, read_if_readable, readable_rows, stamp, text, whole_number
from rightsizer.domain.scaling_group import AutoScalingGroup, Interruption
from rightsizer.domain.spot import Mark, Pool
from rightsizer.errors import ConflictError
from rightsizer.ports.spot import Claim

LEASE = timedelta(seconds=30)
"""An invocation that died gives the interruption back after this; Lambda's own retry comes after a minute."""
RECORD_DAYS = 400
GROUP_DAYS = 7
ONCE_DAYS = 2


class InterruptionTable:
    """Keeps the promises of `ports.spot.SpotBook`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def claim(self, key: str, now: datetime) -> Claim:
        """Take an interruption, by one conditional write; a claim that was never settled ends after 30 s."""
        row: Row = {
            "pk": f"SPOT#{key}",
            "sk": "INTERRUPTION",
            "state": "claimed",
            "version": 1,
            "until": epoch(now + LEASE),
            "expires": epoch(now, RECORD_DAYS),
        }
        try:
            self._table.put(row, unless="pk")
        except ConflictError:
            return self._take_over(key, row, now)
        return Claim.OURS

    def _take_over(self, key: str, row: Row, now: datetime) -> Claim:
        """A claim that cannot be read is somebody's: nothing is done twice."""

        def over(before: Row) -> int | None:
            free = text(before, "state") == "claimed" and whole_number(before, "until") <= epoch(now)
            return whole_number(before, "version") if free else None

        before = self._table.get(f"SPOT#{key}", "INTERRUPTION")
        version = read_if_readable(before, over)
        if before is None or version is None:
            return Claim.TAKEN
        try:
            self._table.swap({**before, **row, "version": version + 1}, version)
        except ConflictError:
            return Claim.TAKEN  # another retry was quicker
        return Claim.RESUMED

    def settle(self, key: str, interruption: Interruption) -> None:
        """The interruption is dealt with and is never acted on again."""
        self._table.put(
            {
                "pk": f"SPOT#{key}",
                "sk": "INTERRUPTION",
                "state": "settled",
                "version": 1_000_000,
                "gsi1pk": f"SPOT#{stamp(interruption.at)[:7]}",
                "gsi1sk": f"{stamp(interruption.at)}#{key}",
                "expires": epoch(interruption.at, RECORD_DAYS),
                "doc": wire.dump_stored(interruption),
            }
        )

    def interruptions(self, start: datetime, end: datetime) -> Iterator[Interruption]:
        """The account's own record of the window, `start` included and `end` not, oldest first."""
        month = start.replace(day=1)
        while stamp(month)[:7] <= stamp(end)[:7]:
            rows = self._table.index(f"SPOT#{stamp(month)[:7]}", stamp(start), stamp(end))
            yield from readable_rows(rows, lambda row: noun_of(Interruption, row))
            month = (month + timedelta(days=32)).replace(day=1)

    def is_first(self, what: str, now: datetime) -> bool:
        """Whether this is asked for the first time within two days, by one conditional write."""
        try:
            self._table.put({"pk": f"ONCE#{what}", "sk": "ONCE", "expires": epoch(now, ONCE_DAYS)}, unless="pk")
        except ConflictError:
            return False
        return True

    def group(self, name: str) -> AutoScalingGroup | None:
        """The group as the sweep stored it; None where this release can read nothing."""
        return self._load_if_readable(AutoScalingGroup, f"GROUP#{name}", "FACTS")

    def keep(self, group: AutoScalingGroup) -> None:
        """Store what the sweep read."""
        self._table.put(
            {
                "pk": f"GROUP#{group.name}",
                "sk": "FACTS",
                "gsi1pk": "GROUP",
                "gsi1sk": group.name,
                "expires": epoch(group.read_at, GROUP_DAYS),
                "doc": wire.dump_stored(group),
            }
        )

    def groups(self) -> Iterator[AutoScalingGroup]:
        """Every group that the sweep knew."""
        yield from readable_rows(self._table.index("GROUP"), lambda row: noun_of(AutoScalingGroup, row))

    def mark(self, pool: Pool) -> Mark | None:
        """The pool's last mark; None without one that this release can read."""
        return self._load_if_readable(Mark, f"POOL#{pool.instance_type}|{pool.zone}", "MARK")

    def _load_if_readable[T](self, noun: type[T], pk: str, sk: str) -> T | None:
        return read_if_readable(self._table.get(pk, sk), lambda found: noun_of(noun, found))

    def remember(self, mark: Mark) -> None:
        """Store the pool's mark."""
        self._table.put(
            {
                "pk": f"POOL#{mark.pool.instance_type}|{mark.pool.zone}",
                "sk": "MARK",
                "expires": epoch(mark.until, 2),
                "doc": wire.dump_stored(mark),
            }
        )
