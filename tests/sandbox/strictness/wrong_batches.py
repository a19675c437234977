"""Requests of batches and other small ones that AWS refuses, each with the member that makes it wrong."""

from typing import Any


def _item(number: int) -> dict[str, Any]:
    return {"pk": {"S": f"a{number}"}, "sk": {"S": "b"}}


BATCHES: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("sns", "ListSubscriptionsByTopic"): {"empty": {"TopicArn": ""}},
    ("cloudwatch", "DeleteAlarms"): {"shape": {"AlarmNames": [f"a{n}" for n in range(101)]}},
    ("dynamodb", "GetItem"): {
        "shape": {"TableName": ""},
        "reserved": {"ProjectionExpression": "state"},
        "unused": {"ExpressionAttributeNames": {"#s": "state"}},
        "undefined": {"ProjectionExpression": "#s"},
    },
    ("dynamodb", "BatchGetItem"): {
        "shape": {"RequestItems": {"ledger": {"Keys": [_item(n) for n in range(101)]}}},
        "twice": {"RequestItems": {"ledger": {"Keys": [_item(1), _item(1)]}}},
    },
    ("dynamodb", "BatchWriteItem"): {
        "shape": {"RequestItems": {"ledger": [{"PutRequest": {"Item": _item(n)}} for n in range(26)]}},
        "twice": {
            "RequestItems": {"ledger": [{"PutRequest": {"Item": _item(1)}}, {"DeleteRequest": {"Key": _item(1)}}]}
        },
        "size": {
            "RequestItems": {"ledger": [{"PutRequest": {"Item": {**_item(1), "doc": {"S": "x" * 409_600}}}}]},
        },
    },
    ("sqs", "SendMessageBatch"): {
        "none": {"Entries": []},
        "many": {"Entries": [{"Id": str(n), "MessageBody": "m"} for n in range(11)]},
        "ids": {"Entries": [{"Id": "0", "MessageBody": "m"}] * 2},
        "size": {"Entries": [{"Id": str(n), "MessageBody": "x" * 524_289} for n in range(2)]},
    },
}
