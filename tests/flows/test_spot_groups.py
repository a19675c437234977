"""Facts of groups are remembered by the sweep; better capacity is proposed with the exact request."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from rightsizer import catalog, wire
from rightsizer.aws.capacity_changes import CapacityChangeTable
from rightsizer.aws.detailed_metrics import AgentMetrics
from rightsizer.aws.ec2 import Ec2SpotMarket
from rightsizer.aws.groups import Groups
from rightsizer.aws.prices import OrderedPrices, PriceList, Snapshot
from rightsizer.aws.table import Table
from rightsizer.aws.training import TrainingJobs
from rightsizer.catalog import catalogue
from rightsizer.domain.capacity_change import CapacityChange, GroupPolicy
from rightsizer.domain.option import Excluded
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code
from rightsizer.domain.scaling_group import AutoScalingGroup, CapacityOption
from rightsizer.domain.spot import Pool
from rightsizer.domain.trigger import LookBeyond, LookReason, SweepKind
from rightsizer.errors import ThrottledError
from rightsizer.flows.group_options import CapacityPorts, propose_capacity
from rightsizer.flows.sweep import BeyondPorts, look_beyond, remember_groups
from rightsizer.intake import parse
from tests.flows.spot_scene import Scene, scene

__all__ = ["scene"]

TYPES = ("g5.xlarge", "g5.2xlarge", "g6.xlarge", "g6.2xlarge")


def table(scene: Scene) -> Table:
    return Table(scene.box.client("dynamodb"), "t")


def market(scene: Scene) -> Ec2SpotMarket:
    return Ec2SpotMarket(scene.box.client("ec2"), scene.box.region, table(scene), lambda: scene.box.clock.now)


def ports(scene: Scene) -> CapacityPorts:
    known = catalogue(catalog.instances(), catalog.accelerators())
    book = OrderedPrices([PriceList(None, lambda: scene.box.clock.now), Snapshot()], lambda: scene.box.clock.now)
    agent = AgentMetrics(scene.box.client("cloudwatch"))
    ledger, capacity_changes = scene.ports.ledger, CapacityChangeTable(table(scene))
    return CapacityPorts(scene.ports.book, market(scene), book, agent, known, ledger, capacity_changes)


def price(scene: Scene, **usd: float) -> None:
    before = scene.box.clock.now - timedelta(days=60)
    for zone in ("eu-west-1a", "eu-west-1b", "eu-west-1c"):
        for name, amount in usd.items():
            scene.spot.pools.price(name.replace("_", "."), zone, before, amount)


def asked(scene: Scene, state: ProposalState = ProposalState.PENDING) -> list[CapacityChange]:
    book, rows = CapacityChangeTable(table(scene)), table(scene).index(f"PROPOSAL#{state}")
    found = [book.load(str(row["pk"]).removeprefix("PROPOSAL#")) for row in rows]
    return [capacity_change for capacity_change in found if capacity_change is not None]


def proposed(scene: Scene) -> list[CapacityOption | Excluded]:
    remember_groups(scene.ports.groups, scene.ports.book, scene.box.clock.now)
    names = [group.name for group in scene.ports.book.groups()]
    return propose_capacity(ports(scene), names, scene.box.clock.now)


def test_the_facts_come_back_as_they_were_read(scene: Scene) -> None:
    scene.spot.group("gpu", hooks=["autoscaling:EC2_INSTANCE_TERMINATING"])
    scene.spot.group("odd", mode="sometimes")
    done = remember_groups(scene.ports.groups, scene.ports.book, scene.box.clock.now)
    assert (done.kept, [row.name for row in done.unread]) == (1, ["odd"])
    found = scene.ports.book.group("gpu")
    assert isinstance(found, AutoScalingGroup)
    assert found.terminating_hook
    assert found.purchase.may_use_spot
    assert set(found.pools) == {Pool("g5.xlarge", f"eu-west-1{zone}") for zone in "abc"}
    assert found.running == {"g5.xlarge|eu-west-1a": 2, "g5.xlarge|eu-west-1b": 1, "g5.xlarge|eu-west-1c": 1}


@pytest.mark.parametrize("place", range(10))
def test_one_group_whose_facts_cannot_be_stored_stops_no_other(scene: Scene, place: int) -> None:
    for number in range(10):
        scene.spot.group(f"gpu-{number}")
    bad = f"GROUP#gpu-{place}"
    scene.box.gate.fail("dynamodb", "PutItem", "ValidationException", where=lambda p: p["Item"]["pk"]["S"] == bad)
    done = remember_groups(scene.ports.groups, scene.ports.book, scene.box.clock.now)
    assert done.kept == 9
    assert [scene.ports.book.group(f"gpu-{n}") is None for n in range(10)] == [n == place for n in range(10)]


@pytest.mark.parametrize("garbled", [{"Tags": None}, {"MixedInstancesPolicy": []}, {"AutoScalingGroupName": None}])
def test_one_group_that_aws_describes_oddly_stops_no_other(scene: Scene, garbled: dict[str, Any]) -> None:
    group = scene.spot.group("gpu")
    reader = scene.ports.groups
    assert isinstance(reader, Groups)
    client = scene.box.client("autoscaling")
    (row,) = client.describe_auto_scaling_groups()["AutoScalingGroups"]
    found = list(reader.groups_of_rows([row, {**row, **garbled}, row], scene.box.clock.now))
    assert [one.name for one in found if isinstance(one, AutoScalingGroup)] == [group.name] * 2


def test_cheaper_types_that_fit_are_proposed_with_the_request_and_the_way_back(scene: Scene) -> None:
    group = scene.spot.group("gpu", types=["g5.xlarge"])
    price(scene, g5_xlarge=0.60, g6_xlarge=0.30, g4dn_xlarge=0.10)
    (option,) = proposed(scene)
    assert isinstance(option, CapacityOption), option
    types = [row["InstanceType"] for row in option.request["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]]
    assert types[0] == "g5.xlarge"
    assert "g6.xlarge" in types
    assert "g4dn.xlarge" not in types, "too little memory"
    assert option.undo["MixedInstancesPolicy"] == group.mixed
    assert option.saving_usd_per_month > 0
    scene.box.client("autoscaling").update_auto_scaling_group(**option.request)
    assert group.desired == 4


def test_a_group_is_asked_about_once_and_the_report_has_it_once_a_week(scene: Scene) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"])
    price(scene, g5_xlarge=0.60, g6_xlarge=0.30)
    proposed(scene)
    scene.box.clock.advance(timedelta(hours=3))
    price(scene, g5_xlarge=0.70, g6_xlarge=0.30)
    proposed(scene)
    assert len(asked(scene)) == 1
    assert [found.kind for found in scene.occurrences()] == ["capacity-option"]


def test_in_automatic_mode_types_of_the_same_gpu_are_approved_and_others_are_asked_about(scene: Scene) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"])
    price(scene, g5_xlarge=0.60, g5_2xlarge=0.20, g6_xlarge=0.10)
    proposed(scene)
    (capacity_change,) = asked(scene, ProposalState.APPROVED)
    assert capacity_change.decision is not None
    assert capacity_change.decision.by == "policy"
    assert isinstance(capacity_change.work, GroupPolicy)
    assert [row["InstanceType"] for row in capacity_change.work.new["LaunchTemplate"]["Overrides"]] == [
        "g5.xlarge",
        "g5.2xlarge",
    ]


def test_in_automatic_mode_another_gpu_model_is_asked_about(scene: Scene) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"])
    price(scene, g5_xlarge=0.60, g6_xlarge=0.10)
    proposed(scene)
    (capacity_change,) = asked(scene)
    assert capacity_change.approvable


def test_a_type_dearer_than_on_demand_is_not_let_in(scene: Scene) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"])
    price(scene, g5_xlarge=0.60, g6_xlarge=0.30, g5_2xlarge=1.9)
    (option,) = proposed(scene)
    assert isinstance(option, CapacityOption)
    types = [row["InstanceType"] for row in option.request["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]]
    assert types == ["g5.xlarge", "g6.xlarge"]


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({"mode": ""}, "create-or-update-tags --region eu-west-1 --tags ResourceId=gpu"),
        ({"mode": "report"}, "Value=propose"),
        ({"tags": {"aws:cloudformation:stack-name": "ml"}}, "CloudFormation stack ml"),
        ({"tags": {"eks:nodegroup-name": "n"}}, "the EKS managed node group"),
    ],
)
def test_a_group_that_may_not_be_changed_says_what_would_allow_it(
    scene: Scene, over: dict[str, Any], words: str
) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"], **over)
    price(scene, g5_xlarge=0.60, g6_xlarge=0.30)
    proposed(scene)
    (capacity_change,) = asked(scene)
    assert not capacity_change.approvable
    assert words in capacity_change.enable


def test_a_group_that_has_the_best_pools_already_is_left_with_the_reason(scene: Scene) -> None:
    scene.spot.group("gpu", types=["g5.xlarge", "g6.xlarge"])
    price(scene, g5_xlarge=0.30, g6_xlarge=0.30)
    (answer,) = proposed(scene)
    assert isinstance(answer, Excluded)
    assert answer.reason.code is Code.ALREADY_RIGHT


def test_a_group_without_gpus_is_none_of_our_business(scene: Scene) -> None:
    scene.spot.group("web", types=["m5.large"])
    (answer,) = proposed(scene)
    assert isinstance(answer, Excluded)
    assert answer.reason.code is Code.NO_SPECIFICATION


def test_one_group_that_fails_does_not_stop_the_others(scene: Scene) -> None:
    scene.spot.group("a", types=["g5.xlarge"])
    scene.spot.group("b", types=["g5.xlarge"])
    price(scene, g5_xlarge=0.60, g6_xlarge=0.30)
    scene.box.gate.fail("ec2", "DescribeSpotPriceHistory", "InvalidParameterValue")
    answers = proposed(scene)
    assert [type(answer).__name__ for answer in answers] == ["Excluded", "CapacityOption"]


def test_the_mean_price_is_weighted_by_how_long_each_price_held(scene: Scene) -> None:
    now = scene.box.clock.now
    scene.spot.pools.price("g5.xlarge", "eu-west-1a", now - timedelta(days=20), 0.2)
    scene.spot.pools.price("g5.xlarge", "eu-west-1a", now - timedelta(days=1), 0.6)
    (found,) = market(scene).prices(["g5.xlarge"], ["eu-west-1a"], now - timedelta(days=10), now)
    assert found.usd_mean == pytest.approx(0.24)


def test_scores_are_asked_once_a_day_and_a_limit_costs_only_the_score(scene: Scene) -> None:
    scene.spot.pools.scores = {"euw1-az1": 7}
    found = [market(scene).score(TYPES, 4) for _ in range(3)]
    assert found == [{"euw1-az1": 7}] * 3
    assert len(scene.box.calls.of("ec2", "GetSpotPlacementScores")) == 1
    scene.spot.pools.score_limit = 0
    assert market(scene).score(TYPES, 5) == {}


def test_the_scores_of_other_regions_are_not_the_groups(scene: Scene) -> None:
    scene.spot.pools.scores = {"euw1-az1": 2}
    assert market(scene).score(TYPES, 4) == {"euw1-az1": 2}
    everywhere = scene.box.client("ec2").get_spot_placement_scores(
        InstanceTypes=list(TYPES), TargetCapacity=4, SingleAvailabilityZone=True
    )
    assert max(row["Score"] for row in everywhere["SpotPlacementScores"]) == 10


def test_a_set_of_two_types_is_not_scored(scene: Scene) -> None:
    assert market(scene).score(TYPES[:2], 4) == {}
    assert scene.box.calls.of("ec2", "GetSpotPlacementScores") == []


@dataclass
class Sent:
    """The queue: remembers what it was sent."""

    looks: list[LookBeyond] = field(default_factory=list)

    def send_look(self, look: LookBeyond) -> None:
        self.looks.append(look)


def beyond(scene: Scene, sent: Sent) -> BeyondPorts:
    jobs = TrainingJobs(scene.box.client("sagemaker"))
    return BeyondPorts(scene.ports.groups, jobs, scene.ports.book, sent)


def test_a_light_sweep_remembers_and_a_full_one_asks_for_a_look_too(scene: Scene) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"])
    scene.spot.jobs.train("bert")
    now, sent = scene.box.clock.now, Sent()
    assert look_beyond(beyond(scene, sent), SweepKind.LIGHT, now).kept == 1
    assert [(look.subject, look.names) for look in sent.looks] == [("training-job", ("bert",))]
    assert look_beyond(beyond(scene, sent), SweepKind.FULL, now).asked == 2
    assert [(look.subject, look.names) for look in sent.looks[1:]] == [
        ("group", ("gpu",)),
        ("training-job", ("bert",)),
    ]


def test_what_the_sweep_sends_is_read_back_as_it_was(scene: Scene) -> None:
    look = LookBeyond("group", ("gpu", "web"), LookReason.SWEEP, scene.box.clock.now, "k")
    assert parse(wire.dumps(look)) == look


@pytest.mark.parametrize("action", ["autoscaling:DescribeAutoScalingGroups", "sagemaker:ListTrainingJobs"])
def test_what_may_not_be_read_costs_itself_only(scene: Scene, action: str) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"])
    scene.spot.jobs.train("bert")
    scene.box.deny(action)
    sent = Sent()
    look_beyond(beyond(scene, sent), SweepKind.FULL, scene.box.clock.now)
    assert [look.subject for look in sent.looks] == ["training-job" if action.startswith("autoscaling") else "group"]


def agent(scene: Scene, group: str, *, memory_mib: float, share: float, days: int = 14) -> None:
    """The CloudWatch agent's metrics, as it sends them with the group's name among the dimensions."""
    now = scene.box.clock.now.replace(minute=0, second=0, microsecond=0)
    dimensions = [{"Name": "AutoScalingGroupName", "Value": group}, {"Name": "index", "Value": "0"}]
    for metric, value, unit in (
        ("nvidia_smi_memory_used", memory_mib, "Megabytes"),
        ("nvidia_smi_utilization_gpu", share * 100, "Percent"),
        ("mem_used", 6 * 1024.0**3, "Bytes"),
    ):
        rows = [
            {"MetricName": metric, "Dimensions": dimensions, "Timestamp": now - timedelta(hours=hour), "Value": value,
             "Unit": unit}
            for hour in range(1, days * 24)
        ]  # fmt: skip
        for start in range(0, len(rows), 500):
            scene.box.client("cloudwatch").put_metric_data(Namespace="CWAgent", MetricData=rows[start : start + 500])


def test_the_agent_s_metrics_say_what_the_group_needs(scene: Scene) -> None:
    agent(scene, "gpu", memory_mib=5120, share=0.55)
    now = scene.box.clock.now
    found = AgentMetrics(scene.box.client("cloudwatch")).measured_use("gpu", now - timedelta(days=14), now)
    assert found is not None
    assert (found.gpu_memory_gib, found.gpu_share, found.memory_gib) == pytest.approx((5.0, 0.55, 6.0))
    assert (found.series, found.days > 13) == (1, True)
    assert AgentMetrics(scene.box.client("cloudwatch")).measured_use("other", now - timedelta(days=14), now) is None


def test_a_measured_busy_group_is_not_offered_a_slower_gpu(scene: Scene) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"])
    price(scene, g5_xlarge=0.60, g6_xlarge=0.10)
    agent(scene, "gpu", memory_mib=5120, share=0.9)
    (answer,) = proposed(scene)
    assert isinstance(answer, Excluded)


def test_a_slower_gpu_is_named_where_nothing_was_measured(scene: Scene) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"])
    price(scene, g5_xlarge=0.60, g6_xlarge=0.10)
    (option,) = proposed(scene)
    assert isinstance(option, CapacityOption)
    assert any("g6.xlarge (up to 2.0 times slower)" in what for what in option.not_checked)


def test_an_agent_that_may_not_be_read_costs_the_measurement_only(scene: Scene) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"])
    price(scene, g5_xlarge=0.60, g6_xlarge=0.10)
    scene.box.deny("cloudwatch:ListMetrics")
    (option,) = proposed(scene)
    assert isinstance(option, CapacityOption)


def test_dear_spot_is_compared_with_on_demand_of_another_type_and_with_an_endpoint(scene: Scene) -> None:
    scene.spot.group("gpu", types=["p3.2xlarge"])
    price(scene, p3_2xlarge=2.4)
    (option,) = proposed(scene)
    assert isinstance(option, CapacityOption)
    assert "On-Demand g5.4xlarge at 1.82" in " ".join(map(str, option.reasons))
    assert "SageMaker endpoint on ml.g5.4xlarge at 2.27" in " ".join(map(str, option.reasons))
    assert "endpoint" in scene.occurrences()[0].text


def test_throttling_goes_up_so_that_the_queue_delivers_again(scene: Scene) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"])
    scene.box.gate.fail("ec2", "DescribeSpotPriceHistory", "RequestLimitExceeded", times=100)
    with pytest.raises(ThrottledError):
        proposed(scene)
