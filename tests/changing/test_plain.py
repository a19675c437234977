"""The plain change: one variant, another instance type, from an approval to its proof or its way back."""

from datetime import datetime, timedelta

from rightsizer.domain.change import ChangeState, FailureClass
from rightsizer.domain.proposal import ProposalState
from sandbox.sagemaker.load import Served
from tests.changing.world import NAME, NEW_TYPE, OLD_TYPE, world


def test_an_approved_change_is_deployed_served_and_proven() -> None:
    with world() as w:
        w.start()
        change = w.run(12)
        live = w.live()
        config = w.box.client("sagemaker").describe_endpoint_config(EndpointConfigName=live["EndpointConfigName"])
        alarms = w.box.client("cloudwatch").describe_alarms()["MetricAlarms"]
        entries = list(w.ledger.entries(w.now - timedelta(days=2), w.now + timedelta(days=1)))

    assert change.state is ChangeState.PROVEN, change.outcome
    assert config["ProductionVariants"][0]["InstanceType"] == NEW_TYPE
    assert live["EndpointStatus"] == "InService"
    assert alarms == []
    assert w.proposal.id == change.proposal_id
    assert {(e.kind, e.proven) for e in entries} == {("switch-cost", False), ("estimated", False), ("realised", True)}
    assert [e.note for e in entries if e.kind == "switch-cost"] == ["overlap of both fleets"]


def test_an_alarm_during_the_deployment_is_reported_as_rolled_back() -> None:
    def slow_on_new(at: datetime, instance_type: str, count: int) -> Served:
        return Served(60, latency_ms=100.0 if instance_type == OLD_TYPE else 2000.0)

    with world(load=slow_on_new, tags={"rightsizer:mode": "propose", "rightsizer:p95-ms": "500"}) as w:
        w.start()
        change = w.run(12)
        shown, alarms = w.shown(), w.box.client("cloudwatch").describe_alarms()["MetricAlarms"]
        config = w.box.config_name(NAME)

    assert change.state is ChangeState.ROLLED_BACK
    assert change.failure is FailureClass.ALARM
    assert config == f"{NAME}-config"
    assert shown.state is ProposalState.ROLLED_BACK
    assert alarms == []


def test_the_same_approval_delivered_twice_is_one_change() -> None:
    with world() as w:
        first = w.start()
        w.run(1)
        second = w.start()
        updates = w.box.calls.of("sagemaker", "UpdateEndpoint")

    assert first.id == second.id
    assert len(updates) == 1
