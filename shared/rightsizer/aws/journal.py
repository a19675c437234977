"""Changes, their locks, the day's budget and the freeze switch on the one table.

Keys: `CHANGE#<id>`/`CHANGE` (with gsi1pk=`DUE`, gsi1sk=next_due while open); `LOCK#ENDPOINT#<name>`/`LOCK` and
`LOCK#MODEL#<name>`/`LOCK` (attribute `change`); `LAST#<endpoint>`/`LAST`; `BUDGET#<day>`/`BUDGET`; `CONTROL`/`FREEZE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from rightsizer import wire
from rightsizer.aws.documents import Parking, noun_with_version, other_attributes
from rightsizer.aws.errors import code_of, translate_read_errors, translate_write_errors
from rightsizer.aws.table import (
    Row,
    Table,
    Value,
    moment,
    number,
    pass_over,
    read_if_readable,
    read_row,
    text,
    to_dynamodb,
)
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.policy import BudgetShare, Switch
from rightsizer.domain.reason import day_text
from rightsizer.errors import BudgetUnreadableError, ConflictError, ReadError, UnreadableError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

    from rightsizer.domain.change import Change

UNREAD_LOCK = "a lock that cannot be read"
"""Stands for the id of the change that holds an endpoint where its lock does not say which one."""
KEEP_BUDGET = timedelta(days=40)
MOST = 1000
"""Changes that one look at the index names; the ones behind them are named once those were looked at."""
OURS = frozenset({"pk", "sk", "version", "state", "endpoint", "proposal", "doc", "gsi1pk", "gsi1sk"})
BOOKED_EVERY = timedelta(days=1)
"""How often the saving of a change that stands is booked."""


@dataclass(frozen=True, slots=True)
class TableJournal:
    """Keeps the promises of `ports.changes.Journal` in DynamoDB. Reads are strongly consistent, except the due list."""

    dynamodb: DynamoDBClient
    table: str

    def load(self, change_id: str) -> Change | None:
        """The change as it stands, or None."""
        item = self._get(f"CHANGE#{change_id}", "CHANGE")
        return None if item is None else revive_change(item)

    def create(self, change: Change) -> Change:
        """Store a new change with the lock of its endpoint, all or nothing."""
        stored = replace(change, version=1)
        self._transact(
            f"starting change {change.id}",
            [
                self._put(change_item(stored), "attribute_not_exists(pk)"),
                self._lock("ENDPOINT", change.ref.name, change.id),
            ],
            ("the change exists", f"endpoint {change.ref.name} is held by another change"),
        )
        return stored

    def begin(self, change: Change, share: BudgetShare) -> Change:
        """Save, take the locks of the models and the part of the day's budget, all or nothing.

        BudgetUnreadableError where the row of the budget cannot be read. What restores begins all the same, uncounted.
        """
        if share.room.changes <= 0:  # the condition below passes on a day without an item
            raise ConflictError(f"beginning change {change.id}: no change is allowed on any day (changes_per_day is 0)")
        stored = replace(change, version=change.version + 1)
        doing, models = f"beginning change {change.id}", sorted(set(change.models))
        spent = f"the budget of {day_text(datetime.fromisoformat(share.day))} ({share.limit}) is spent"
        save = (self._put(change_item(stored), *version_read(change)), "somebody saved it in between")
        budget = (self._budget(share, change.created_at), spent)
        locks = [
            (self._lock("MODEL", model, change.id), f"another endpoint with model {model} is being changed")
            for model in models
        ]
        try:
            self._transact_each(doing, [save, budget, *locks])
        except ConflictError:
            problem = self._budget_problem(share.day)
            if not problem:
                raise
            if not change.option.restores:
                raise BudgetUnreadableError(f"{doing}: {problem}") from None
            self._transact_each(doing, [save, *locks])
        return stored

    def tell_budget(self, day: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> None:
        """Tell once of the row of a day's budget that cannot be read, with the remedy."""
        key, shown = f"BUDGET#{day}", day_text(datetime.fromisoformat(day))
        text = (
            f"{cause}. On {shown} (UTC) no other change begins; those that bring room back do, and are not "
            f"counted. Remedy: delete the row {key} BUDGET of the table {self.table}, and the day counts from nothing; "
            f"or wait, for the next day (UTC) has a row of its own. This is said once."
        )
        Parking(Table(self.dynamodb, self.table)).tell_once(key, f"no change starts on {shown}", text, now, tell)

    def _budget_problem(self, day: str) -> str:
        """Why the row of the day's budget cannot be read; empty where it can, or is not there."""
        row = self._get(f"BUDGET#{day}", "BUDGET")
        try:
            if row is not None:
                read_row(row, lambda found: (number(found, "changes"), number(found, "usd")))
        except UnreadableError as error:
            pass_over(f"BUDGET#{day} BUDGET", error)
            return f"the row BUDGET#{day} BUDGET, with what the day may still start, cannot be read: {error}"
        return ""

    def reopen(self, change: Change) -> Change:
        """Save a closed change as open again with the lock of its endpoint, all or nothing.

        The models are not locked: a rollback does not wait for the change of another endpoint with the same model.
        """
        stored = replace(change, version=change.version + 1)
        self._transact(
            f"reopening change {change.id}",
            [self._put(change_item(stored), *version_read(change)), self._lock("ENDPOINT", change.ref.name, change.id)],
            ("somebody saved it in between", f"endpoint {change.ref.name} is held by another change"),
        )
        return stored

    def save(self, change: Change) -> Change:
        """Save over the version that was read.

        A closed change gives back its own locks in the same write.

        An open change is one conditional put, since a transaction costs twice as much and takes twice as long. Where
        its answer is lost and the client repeats it, the condition fails: the next tick goes on, as after a crash.
        """
        stored = replace(change, version=change.version + 1)
        if not change.is_closed:
            self._put_single(f"saving change {change.id}", stored, change)
            return stored
        puts: list[TransactWriteItemTypeDef] = [self._put(change_item(stored), *version_read(change))]
        if any(entry.status == "intended" for entry in change.journal):  # a refusal starts no cooldown
            puts.append(self._put_last_change(change))
        held = [("ENDPOINT", change.ref.name), *(("MODEL", model) for model in self._models_with_lock(change))]
        puts += [self._release(kind, name, change.id) for kind, name in held]
        self._transact(f"saving change {change.id}", puts, ("somebody saved it in between",))
        return stored

    def _models_with_lock(self, change: Change) -> list[str]:
        """Models whose lock is its own; a reopened change has none, and another one's must not cancel its end."""
        rows = {model: self._get(f"LOCK#MODEL#{model}", "LOCK") for model in sorted(set(change.models))}
        return [m for m, row in rows.items() if read_if_readable(row, lambda found: text(found, "change")) == change.id]

    def _put_single(self, doing: str, change: Change, read: Change) -> None:
        condition, values = version_read(read)
        item = change_item(change)
        try:
            self.dynamodb.put_item(
                TableName=self.table, Item=item, ConditionExpression=condition, ExpressionAttributeValues=values
            )
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise ReadError(f"{doing}: {code_of(error)}: {error}") from error
            raise ConflictError(f"{doing}: somebody saved it in between") from error

    def due(self, now: datetime) -> tuple[str, ...]:
        """One query; the index is eventually consistent, the load that follows is not."""
        return self._ids_until("DUE", now, "looking for due changes")

    def changes_to_book(self, now: datetime) -> tuple[str, ...]:
        """Ids of the closed changes that stand and whose saving was not booked for a day, the longest waiting first."""
        return self._ids_until("SAVING", now, "looking for savings to book")

    def save_booking(self, change: Change) -> Change:
        """Save what was booked of a closed change: its lock and the endpoint's last change are left alone."""
        stored = replace(change, version=change.version + 1)
        self._put_single(f"saving what change {change.id} saved", stored, change)
        return stored

    def park(self, change_id: str, cause: str, now: datetime, tell: Callable[[str, str], bool]) -> None:
        """Give a change that cannot be read a look after an hour, count it, and tell of it once."""
        Parking(Table(self.dynamodb, self.table)).park(f"CHANGE#{change_id}", "CHANGE", cause, now, tell)

    def postpone(self, change_id: str, now: datetime) -> None:
        """Show a change an hour later in the index, unless somebody saved it meanwhile."""
        Parking(Table(self.dynamodb, self.table)).postpone(f"CHANGE#{change_id}", "CHANGE", now)

    def _ids_until(self, kind: str, now: datetime, doing: str) -> tuple[str, ...]:
        with translate_read_errors("dynamodb:Query", doing):
            keys = Table(self.dynamodb, self.table).keys_until(kind, sortable_time(now), MOST)
        return tuple(key.removeprefix("CHANGE#") for key in keys)

    def open_changes(self, unread: list[UnreadRow] | None = None) -> Iterator[Change]:
        """Every open change, by the due index; one that cannot be read is counted, put into `unread`, passed over."""
        with translate_read_errors("dynamodb:Query", "listing open changes"):
            rows = list(Table(self.dynamodb, self.table).index("DUE", only=("pk",)))
        ids = [text(row, "pk").removeprefix("CHANGE#") for row in rows]
        for change_id in ids:
            try:
                change = self.load(change_id)
            except UnreadableError as error:
                pass_over(f"CHANGE#{change_id} CHANGE", error, unread)
                continue
            if change is not None and not change.is_closed:
                yield change

    def last_change(self, endpoint: str) -> str:
        """Id of the last change of the endpoint that wrote anything; empty when there was none. ReadError."""
        return self._of_last(endpoint, lambda row: text(row, "change")) or ""

    def last_lasting_change(self, endpoint: str) -> str:
        """The same without shadow tests, which leave what serves as it was. ReadError."""
        return self._of_last(endpoint, lambda row: text(row, "lasting" if "lasting" in row else "change")) or ""

    def holder_of(self, endpoint: str) -> str:
        """Id of the change that holds the endpoint; empty when none does. A lock that cannot be read holds it too."""
        item = self._get(f"LOCK#ENDPOINT#{endpoint}", "LOCK")
        return "" if item is None else read_if_readable(item, lambda row: text(row, "change")) or UNREAD_LOCK

    def last_change_at(self, endpoint: str) -> datetime | None:
        """When the last change of the endpoint that wrote anything was closed. ReadError."""
        return self._of_last(endpoint, lambda row: moment(row, "at"))

    def _of_last[T](self, endpoint: str, read: Callable[[Row], T]) -> T | None:
        """One that cannot be read is a ReadError: nobody knows then whether the endpoint has rested."""
        item = self._get(f"LAST#{endpoint}", "LAST")
        try:
            return None if item is None else read_row(item, read)
        except UnreadableError as error:
            raise ReadError(f"reading LAST#{endpoint} LAST, the last change of {endpoint}: {error}") from error

    def switch(self) -> Switch:
        """The freeze switch; thawed when nobody ever froze, frozen where it cannot be read."""
        item = self._get("CONTROL", "FREEZE")
        try:
            return Switch() if item is None else read_row(item, _switch_of)
        except UnreadableError as error:
            pass_over("CONTROL FREEZE", error)
            from rightsizer.domain.plan import terminal_command

            anew = terminal_command("freeze", self.dynamodb.meta.region_name)
            return Switch(frozen=True, by=f"a row CONTROL FREEZE that cannot be read; {anew} writes it anew")

    def set_switch(self, switch: Switch) -> None:
        """Freeze or thaw; the last word counts."""
        before = self._get("CONTROL", "FREEZE") or {}
        known = before.get("doc")
        doc = wire.dump_rewritten(switch, known if isinstance(known, str) else "")
        item: Row = before | {"pk": "CONTROL", "sk": "FREEZE", "doc": doc}
        with translate_write_errors("dynamodb:PutItem", f"setting the freeze switch in the table {self.table}"):
            self.dynamodb.put_item(TableName=self.table, Item=to_dynamodb(item))

    def _get(self, pk: str, sk: str) -> Row | None:
        return Table(self.dynamodb, self.table).get(pk, sk)

    def _put(
        self, item: Mapping[str, Any], condition: str, values: Mapping[str, Any] | None = None
    ) -> TransactWriteItemTypeDef:
        put: dict[str, Any] = {"TableName": self.table, "Item": item, "ConditionExpression": condition}
        if values:
            put["ExpressionAttributeValues"] = values
        return {"Put": put}  # type: ignore[typeddict-item]

    def _put_last_change(self, change: Change) -> TransactWriteItemTypeDef:
        """The last change of the endpoint; an update, so that what a newer release keeps there stays.

        A shadow test is the last change, and leaves the last one that lasts as it was. The lock of the endpoint keeps
        others away between the read and the write.
        """
        from rightsizer.domain.plan import PlanKind

        test = change.plan.kind is PlanKind.SHADOW_TEST
        lasting = self.last_lasting_change(change.ref.name) if test else change.id
        values = {":change": change.id, ":at": change.journal[-1].at.isoformat(), ":lasting": lasting}
        return {
            "Update": {
                "TableName": self.table,
                "Key": {"pk": {"S": f"LAST#{change.ref.name}"}, "sk": {"S": "LAST"}},
                "UpdateExpression": "SET #change = :change, #at = :at, #lasting = :lasting",
                "ExpressionAttributeNames": {"#change": "change", "#at": "at", "#lasting": "lasting"},
                "ExpressionAttributeValues": to_dynamodb(values),
            }
        }

    def _lock(self, kind: str, name: str, change_id: str) -> TransactWriteItemTypeDef:
        item = {"pk": {"S": f"LOCK#{kind}#{name}"}, "sk": {"S": "LOCK"}, "change": {"S": change_id}}
        return self._put(item, "attribute_not_exists(pk) OR change = :me", {":me": {"S": change_id}})

    def _release(self, kind: str, name: str, change_id: str) -> TransactWriteItemTypeDef:
        return {
            "Delete": {
                "TableName": self.table,
                "Key": {"pk": {"S": f"LOCK#{kind}#{name}"}, "sk": {"S": "LOCK"}},
                "ConditionExpression": "attribute_not_exists(pk) OR change = :me",
                "ExpressionAttributeValues": {":me": {"S": change_id}},
            }
        }

    def _budget(self, share: BudgetShare, at: datetime) -> TransactWriteItemTypeDef:
        """One count and one sum a day; the condition is `Room.has`, where no item is no change of that day."""
        return {
            "Update": {
                "TableName": self.table,
                "Key": {"pk": {"S": f"BUDGET#{share.day}"}, "sk": {"S": "BUDGET"}},
                "UpdateExpression": "ADD changes :one, usd :usd SET expires = :expires",
                "ConditionExpression": "attribute_not_exists(pk) OR (changes < :most AND usd <= :room)",
                "ExpressionAttributeValues": {
                    ":one": {"N": "1"},
                    ":usd": {"N": str(share.usd)},
                    ":most": {"N": str(share.room.changes)},
                    ":room": {"N": str(share.room.usd)},
                    ":expires": {"N": str(int((at + KEEP_BUDGET).timestamp()))},
                },
            }
        }

    def _transact_each(self, doing: str, writes: list[tuple[TransactWriteItemTypeDef, str]]) -> None:
        """Each write with what it means that its condition fails."""
        self._transact(doing, [write for write, _ in writes], tuple(meaning for _, meaning in writes))

    def _transact(self, doing: str, items: list[TransactWriteItemTypeDef], meaning: tuple[str, ...]) -> None:
        try:
            self.dynamodb.transact_write_items(TransactItems=items)
        except ClientError as error:
            if code_of(error) != "TransactionCanceledException":
                raise ReadError(f"{doing}: {code_of(error)}: {error}") from error
            reasons = [r.get("Code", "None") for r in error.response.get("CancellationReasons", [])]
            lost = [m for m, code in zip(meaning, reasons, strict=False) if code == "ConditionalCheckFailed"]
            raise ConflictError(f"{doing}: {lost[0] if lost else 'another write was in the way'}") from error


def _switch_of(row: Row) -> Switch:
    return wire.load_stored(Switch, text(row, "doc"))


def version_read(change: Change) -> tuple[str, dict[str, Any]]:
    """The condition that nobody saved since the change was read, with its value."""
    return "version = :read", {":read": {"N": str(change.version)}}


def change_item(change: Change) -> dict[str, Any]:
    """The typed item of a change.

    While open it is in the index of due changes, then in that of changes that save.
    """
    item: dict[str, Value] = other_attributes(change) | {
        "pk": f"CHANGE#{change.id}",
        "sk": "CHANGE",
        "version": change.version,
        "state": change.state.value,
        "endpoint": change.ref.name,
        "proposal": change.proposal_id,
        "doc": wire.dump_stored(change),
    }
    if change.next_due is not None and not change.is_closed:
        item |= {"gsi1pk": "DUE", "gsi1sk": sortable_time(change.next_due)}
    elif change.is_still_saving and change.booked_until is not None:
        item |= {"gsi1pk": "SAVING", "gsi1sk": sortable_time(change.booked_until + BOOKED_EVERY)}
    return to_dynamodb(item)


def revive_change(row: Row) -> Change:
    """The change of a row, with what a newer program added; UnreadableError when this release cannot read it."""
    from rightsizer.domain.change import Change  # whoever asks for the freeze switch alone loads no change

    return read_row(row, lambda found: noun_with_version(Change, found, OURS))


def sortable_time(moment: datetime) -> str:
    """Sorts as text in the order of time."""
    return moment.isoformat(timespec="seconds")
