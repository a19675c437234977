"""The table's stream on its way to a function: in order, filtered, retried, and given up in the end.

Source: Lambda developer guide, services-dynamodb-errors: a failing batch blocks its shard until its retries end.
"""

import json
from collections.abc import Callable
from typing import Any

from sandbox.account import Sandbox
from sandbox.stackparts import StreamSource
from sandbox.template import matches

type Run = Callable[[str, str, list[Any]], set[str]]
"""(function, source, records) to the sequence numbers to deliver again."""


class StreamMapping:
    """One event source mapping; it reads moto's shard from where it stood."""

    def __init__(self, box: Sandbox, source: StreamSource) -> None:
        self._box, self._source = box, source
        self._position, self._attempts = 0, 0
        self._wait_until = box.clock.now
        self._seen: dict[Any, dict[str, Any]] = {}
        """Records that were looked at and are not passed, by moto's own."""

    @property
    def blocked(self) -> bool:
        """Whether a record waits for another attempt."""
        return self._attempts > 0

    def begin_anew(self) -> None:
        """Read the table's new stream from its start: a restored table has one of its own, and it is empty.

        Source: DynamoDB developer guide, "Restoring a table from a backup": stream settings are not restored.
        """
        self._position, self._attempts = 0, 0

    def skip(self) -> None:
        """Pass over everything that was written so far."""
        self._position += len(self._records())
        self._attempts = 0

    def deliver(self, run: Run) -> bool:
        """Deliver the next batch; False when there is nothing to do now."""
        now = self._box.clock.now
        if self.blocked and now < self._wait_until:
            return False
        records = self._records()
        batch = [record for record in records if self._wanted(record)][: self._source.batch]
        if not batch:
            self._position += len(records)
            self._seen.clear()
            return False
        failed = run(self._source.function, self._source.name, batch)
        first = next((record for record in batch if record["dynamodb"]["SequenceNumber"] in failed), None)
        if first is None:
            self._move_past(batch[-1])
            return True
        if first is not batch[0]:
            self._move_to(first)
            self._attempts = 0
        self._attempts += 1
        self._wait_until = now.replace(microsecond=0)
        if self._attempts > self._source.retries:
            self._give_up(first)
            return True
        from datetime import timedelta

        self._wait_until = now + timedelta(minutes=1)
        return False

    def _records(self) -> list[dict[str, Any]]:
        from moto.dynamodb.models import dynamodb_backends

        table = dynamodb_backends[self._box.account][self._box.region].tables[self._source.table]
        items = table.stream_shard.items if table.stream_shard else []
        return [self._plain(item) for item in items[self._position :]]

    def _plain(self, item: Any) -> dict[str, Any]:
        """A record of moto's as the function gets it; each attempt and each look at the filters reads the same."""
        if item not in self._seen:
            record, arn = item.to_json(), self._box.world.arn("dynamodb", f"table/{self._source.table}/stream/sandbox")
            data = record["dynamodb"] | {"ApproximateCreationDateTime": self._box.clock.now.timestamp()}
            made = record | {"dynamodb": data, "awsRegion": self._box.region, "eventSourceARN": arn}
            self._seen[item] = json.loads(json.dumps(made, default=_jsonable))
        return self._seen[item]

    def _wanted(self, record: dict[str, Any]) -> bool:
        return not self._source.filters or any(matches(pattern, record) for pattern in self._source.filters)

    def _move_past(self, record: dict[str, Any]) -> None:
        self._move_to(record)
        self._position += 1
        self._attempts = 0

    def _move_to(self, record: dict[str, Any]) -> None:
        numbers = [one["dynamodb"]["SequenceNumber"] for one in self._records()]
        self._position += numbers.index(record["dynamodb"]["SequenceNumber"])

    def _give_up(self, record: dict[str, Any]) -> None:
        self._move_past(record)
        if self._source.on_failure:
            url = f"{self._source.name}: gave up on {record['dynamodb']['SequenceNumber']}"
            name = self._source.on_failure
            with self._box.gate.unrecorded():
                sqs = self._box.client("sqs")
                queue = next(one for one in sqs.list_queues()["QueueUrls"] if one.endswith(f"-{name}"))
                sqs.send_message(QueueUrl=queue, MessageBody=json.dumps({"why": url, "record": record}))


def _jsonable(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return str(value)
