"""A stage for the Spot flows: the sandbox with groups and pools, the real adapters, and a notifier that remembers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from rightsizer import intake
from rightsizer.aws.capacity_changes import InterruptionTable
from rightsizer.aws.groups import Groups, GroupWrites
from rightsizer.aws.ledger import SavingsTable
from rightsizer.aws.table import Table
from rightsizer.domain.message import Message, Notice
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.proposal import MessageRef
from rightsizer.domain.scaling_group import Reaction
from rightsizer.errors import ThrottledError
from rightsizer.flows.interruption import InterruptPorts, interrupt
from rightsizer.ports.spot import UnreadGroup
from sandbox.account import Sandbox
from sandbox.spot import Spot, add_spot
from tests.table import create_table

WARNING = "EC2 Spot Instance Interruption Warning"


class Told:
    """A notifier that remembers."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []
        self.failing = False

    def post(self, message: Message) -> MessageRef | None:
        assert isinstance(message, Notice)
        if self.failing:
            raise ThrottledError("the topic is throttled")
        self.said.append((message.subject, message.body))
        return None

    def update(self, ref: MessageRef, message: Message) -> None:
        raise AssertionError("the flow sends notices")


@dataclass
class Scene:
    box: Sandbox
    spot: Spot
    ports: InterruptPorts
    told: Told

    def sweep(self) -> None:
        """What the sweep does for groups."""
        for group in self.ports.groups.groups(self.box.clock.now):
            assert not isinstance(group, UnreadGroup), group
            self.ports.book.keep(group)

    def handle(self, event: Mapping[str, Any]) -> Reaction:
        return interrupt(self.ports, intake.parse(event), self.box.clock.now)

    def warn(self, instance_id: str) -> Reaction:
        self.spot.groups.warn(instance_id)
        return self.handle(self.box.events_of(WARNING)[-1])

    def occurrences(self) -> list[Occurrence]:
        now = self.box.clock.now
        return list(self.ports.ledger.occurrences(now - timedelta(days=1), now + timedelta(days=1)))

    def replaced(self) -> list[str]:
        calls = self.box.calls.of("autoscaling")
        return [call.operation for call in calls if call.writes]


@pytest.fixture
def scene() -> Iterator[Scene]:
    with Sandbox() as box:
        client = box.client("dynamodb")
        create_table(client)
        table, told = Table(client, "t"), Told()
        groups = Groups(box.client("autoscaling"), box.client("ec2"), box.region)
        writes = GroupWrites(box.client("autoscaling"))
        ports = InterruptPorts(groups, writes, InterruptionTable(table), SavingsTable(table), told)
        yield Scene(box, add_spot(box), ports, told)
