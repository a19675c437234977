"""A Spot group, an errand that was asked about its policy, and the flow that carries it out."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from rightsizer.aws import decisions
from rightsizer.aws.capacity_changes import CapacityChangeCalls
from rightsizer.aws.capacity_changes import CapacityChangeTable as Book
from rightsizer.aws.ledger import SavingsTable
from rightsizer.aws.table import Table
from rightsizer.domain.approvers import Approvers
from rightsizer.domain.capacity_change import CapacityChange, GroupPolicy
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.flows.change_capacity import CapacityChanges, request_rollback
from sandbox.spot_groups import SimGroup
from tests.flows.spot_scene import Scene


@dataclass
class Stage:
    scene: Scene
    group: SimGroup
    flow: CapacityChanges
    book: Book
    errand: CapacityChange
    old: dict[str, Any]
    new: dict[str, Any]

    @property
    def now(self) -> datetime:
        return self.scene.box.clock.now

    def approve(self, by: str = "slack:U1") -> None:
        decision = Decision(ProposalState.APPROVED, by, self.now)
        decisions.decide(Table(self.scene.box.client("dynamodb"), "t"), self.errand.id, decision, self.now)

    def start(self) -> CapacityChange:
        self.approve()
        return self.flow.start(self.errand.id, self.now)

    def go_back(self, by: str = "cli:me", flow: CapacityChanges | None = None) -> CapacityChange:
        """What a person orders at a terminal, and the tick that carries it out."""
        request_rollback(self.book, self.errand.id, by, self.now)
        (flow or self.flow).tick(self.now)
        return self.seen()

    def later(self, **length: float) -> CapacityChange:
        self.scene.box.clock.advance(timedelta(**length))
        self.flow.tick(self.now)
        return self.seen()

    def seen(self) -> CapacityChange:
        found = self.book.load(self.errand.id)
        assert found is not None
        return found

    def updates(self) -> int:
        return len(self.scene.box.calls.of("autoscaling", "UpdateAutoScalingGroup"))


@pytest.fixture
def stage(scene: Scene) -> Stage:
    group = scene.spot.group("gpu", types=["g5.xlarge"])
    old = group.mixed
    template = old["LaunchTemplate"] | {"Overrides": [{"InstanceType": "g5.xlarge"}, {"InstanceType": "g6.xlarge"}]}
    new = old | {"LaunchTemplate": template}
    now = scene.box.clock.now
    table = Table(scene.box.client("dynamodb"), "t")
    calls = CapacityChangeCalls(scene.box.client("autoscaling"), scene.box.client("sagemaker"))
    book = Book(table)
    reason = Reason(Code.MORE_POOLS, "two types are steadier than one")
    capacity_change = CapacityChange(
        "e-1", "gpu", "ml", GroupPolicy("gpu", old, new), "gpu can use more pools", reason,
        now, now + timedelta(days=14), ProposalState.PENDING, approvable=True,
    )  # fmt: skip
    assert book.add(capacity_change)
    people = Approvers(frozenset({"U1"}), "aws:111122223333")
    flow = CapacityChanges(book, calls, calls, Switch, SavingsTable(table), scene.told, approvers=people)
    return Stage(scene, group, flow, book, capacity_change, old, new)
