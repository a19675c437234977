"""Rows of the table by the hundred: BatchGetItem and BatchWriteItem, until nothing is left unprocessed.

DynamoDB may leave a part of a batch undone, for its size or for want of capacity, and says which part. That part is
asked again, later each time, as DynamoDB's guide advises ("Error handling with DynamoDB": batch operations).
"""

import time
from collections.abc import Callable, Collection, Sequence
from itertools import batched
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.errors import translate_read_errors
from rightsizer.aws.table import Item, Row, Table, from_dynamodb, raise_write_error, text, to_dynamodb
from rightsizer.errors import ThrottledError

MOST_READ, MOST_WRITTEN = 100, 25
"""Items of one BatchGetItem and of one BatchWriteItem at most (DynamoDB API reference)."""
PAUSES_S = (0.0, 0.1, 0.4, 1.6)
"""Before each try of what is left."""

type RowKey = tuple[str, str]
"""Partition key and sort key."""


class Batches:
    """Many rows of one table in few calls. Errors are those of `rightsizer.errors`."""

    def __init__(self, table: Table, sleep: Callable[[float], None] = time.sleep) -> None:
        self._table = table
        self._sleep = sleep

    def read(self, keys: Collection[RowKey]) -> dict[RowKey, Row]:
        """The rows under these keys, read consistently; a key without a row is left out.

        ThrottledError where DynamoDB leaves keys unread again and again.
        """
        found: dict[RowKey, Row] = {}
        name = self._table.name
        doing = f"reading {len(keys)} rows of the table {name}"

        def ask(left: Any) -> Any:
            with translate_read_errors("dynamodb:BatchGetItem", doing):
                answer: Any = self._table.client.batch_get_item(
                    RequestItems={name: {"Keys": left, "ConsistentRead": True}}
                )
            for row in map(from_dynamodb, answer["Responses"].get(name, ())):
                found[text(row, "pk"), text(row, "sk")] = row
            return answer.get("UnprocessedKeys", {}).get(name, {}).get("Keys")

        for some in batched(dict.fromkeys(keys), MOST_READ):
            self._until_done(ask, [to_dynamodb({"pk": pk, "sk": sk}) for pk, sk in some], doing)
        return found

    def write(self, rows: Sequence[Item]) -> None:
        """Write these rows without conditions; no two may have one key.

        An error leaves some of them written. ThrottledError where DynamoDB leaves rows unwritten again and again.
        """
        name = self._table.name
        doing = f"writing {len(rows)} rows to the table {name}"

        def ask(left: Any) -> Any:
            try:
                answer: Any = self._table.client.batch_write_item(RequestItems={name: left})
            except (ClientError, BotoCoreError) as error:
                raise_write_error(error, "dynamodb:BatchWriteItem", doing)
            return answer.get("UnprocessedItems", {}).get(name)

        for some in batched(rows, MOST_WRITTEN):
            self._until_done(ask, [{"PutRequest": {"Item": to_dynamodb(row)}} for row in some], doing)

    def _until_done(self, ask: Callable[[Any], Any], left: Any, doing: str) -> None:
        """Ask for what is left, until nothing is; at most as often as there are pauses."""
        for pause in PAUSES_S:
            self._sleep(pause)
            left = ask(left)
            if not left:
                return
        raise ThrottledError(f"{doing}: DynamoDB left {len(left)} of a batch undone {len(PAUSES_S)} times")
