"""The stack's table, for tests that need one and do not read the template."""

from typing import Any


def create_table(client: Any) -> None:
    """The table `t` with the keys and the index of the stack's."""
    keys = ("pk", "sk", "gsi1pk", "gsi1sk")
    client.create_table(
        TableName="t",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        KeySchema=_keys("pk", "sk"),
        GlobalSecondaryIndexes=[
            {"IndexName": "GSI1", "KeySchema": _keys("gsi1pk", "gsi1sk"), "Projection": {"ProjectionType": "ALL"}}
        ],
    )


def _keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]
