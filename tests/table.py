"""The stack's table, for tests that need one and do not read the template."""

from datetime import datetime
from typing import Any

from rightsizer import wire
from rightsizer.aws import decisions
from rightsizer.aws.proposals import Proposals
from rightsizer.domain.proposal import Decision, Proposal


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


def decide(store: Proposals, proposal_id: str, decision: Decision, now: datetime) -> Proposal:
    """The proposal after a decision that is recorded as both doors do it, without their lists of approvers."""
    return wire.revive(Proposal, decisions.decide(store._table, proposal_id, decision, now))
