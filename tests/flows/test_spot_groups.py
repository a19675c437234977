"""Facts of groups are remembered by the sweep; better capacity is proposed with the exact request."""

from datetime import timedelta
from typing import Any

import pytest

from rightsizer.aws.errand_book import Errands
from rightsizer.aws.prices import PriceListBook
from rightsizer.aws.spot_market import Market
from rightsizer.aws.table import Table
from rightsizer.catalog import tables
from rightsizer.flows.spot_groups import CapacityPorts, look_at_groups, propose_capacity, remember_groups
from rightsizer.model.capacity import CapacityOption
from rightsizer.model.errand import Errand, GroupPolicy
from rightsizer.model.group import Group
from rightsizer.model.option import Excluded
from rightsizer.model.proposal import ProposalState
from rightsizer.model.reason import Code
from rightsizer.model.spot import Pool
from rightsizer.model.trigger import SweepKind
from rightsizer.rules.catalogue import catalogue
from tests.flows.spot_scene import Scene, scene

__all__ = ["scene"]

TYPES = ("g5.xlarge", "g5.2xlarge", "g6.xlarge", "g6.2xlarge")


def table(scene: Scene) -> Table:
    return Table(scene.box.client("dynamodb"), "t")


def market(scene: Scene) -> Market:
    return Market(scene.box.client("ec2"), table(scene), lambda: scene.box.clock.now)


def ports(scene: Scene) -> CapacityPorts:
    known = catalogue(tables.instances(), tables.accelerators())
    book = PriceListBook(None, None)
    return CapacityPorts(scene.ports.book, market(scene), book, known, scene.ports.ledger, Errands(table(scene)))


def price(scene: Scene, **usd: float) -> None:
    before = scene.box.clock.now - timedelta(days=60)
    for zone in ("eu-west-1a", "eu-west-1b", "eu-west-1c"):
        for name, amount in usd.items():
            scene.spot.pools.price(name.replace("_", "."), zone, before, amount)


def asked(scene: Scene, state: ProposalState = ProposalState.PENDING) -> list[Errand]:
    book, rows = Errands(table(scene)), table(scene).index(f"PROPOSAL#{state}")
    found = [book.load(str(row["pk"]).removeprefix("PROPOSAL#")) for row in rows]
    return [errand for errand in found if errand is not None]


def proposed(scene: Scene) -> list[CapacityOption | Excluded]:
    remember_groups(scene.ports.groups, scene.ports.book, scene.box.clock.now)
    return propose_capacity(ports(scene), scene.box.clock.now)


def test_the_facts_come_back_as_they_were_read(scene: Scene) -> None:
    scene.spot.group("gpu", hooks=["autoscaling:EC2_INSTANCE_TERMINATING"])
    scene.spot.group("odd", mode="sometimes")
    done = remember_groups(scene.ports.groups, scene.ports.book, scene.box.clock.now)
    assert (done.kept, [row.name for row in done.unread]) == (1, ["odd"])
    found = scene.ports.book.group("gpu")
    assert isinstance(found, Group)
    assert found.terminating_hook
    assert found.purchase.uses_spot
    assert set(found.pools) == {Pool("g5.xlarge", f"eu-west-1{zone}") for zone in "abc"}
    assert found.running == {"g5.xlarge|eu-west-1a": 2, "g5.xlarge|eu-west-1b": 1, "g5.xlarge|eu-west-1c": 1}


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
    (errand,) = asked(scene, ProposalState.APPROVED)
    assert errand.decision is not None
    assert errand.decision.by == "policy"
    assert isinstance(errand.work, GroupPolicy)
    assert [row["InstanceType"] for row in errand.work.new["LaunchTemplate"]["Overrides"]] == [
        "g5.xlarge",
        "g5.2xlarge",
    ]


def test_in_automatic_mode_another_gpu_model_is_asked_about(scene: Scene) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"])
    price(scene, g5_xlarge=0.60, g6_xlarge=0.10)
    proposed(scene)
    (errand,) = asked(scene)
    assert errand.approvable


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
        ({"mode": ""}, "create-or-update-tags --tags ResourceId=gpu"),
        ({"mode": "report"}, "Value=propose"),
        ({"tags": {"aws:cloudformation:stack-name": "ml"}}, "the CloudFormation stack ml"),
        ({"tags": {"eks:nodegroup-name": "n"}}, "the EKS managed node group"),
    ],
)
def test_a_group_that_may_not_be_changed_says_what_would_allow_it(
    scene: Scene, over: dict[str, Any], words: str
) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"], **over)
    price(scene, g5_xlarge=0.60, g6_xlarge=0.30)
    proposed(scene)
    (errand,) = asked(scene)
    assert not errand.approvable
    assert words in errand.enable


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
    scene.box.fail("ec2", "DescribeSpotPriceHistory", "InvalidParameterValue")
    answers = proposed(scene)
    assert [type(answer).__name__ for answer in answers] == ["Excluded", "CapacityOption"]


def test_the_mean_price_is_weighted_by_how_long_each_price_held(scene: Scene) -> None:
    now = scene.box.clock.now
    scene.spot.pools.price("g5.xlarge", "eu-west-1a", now - timedelta(days=20), 0.2)
    scene.spot.pools.price("g5.xlarge", "eu-west-1a", now - timedelta(days=1), 0.6)
    (found,) = market(scene).prices(["g5.xlarge"], ["eu-west-1a"], now - timedelta(days=10), now)
    assert (found.usd_now, found.usd_mean) == pytest.approx((0.6, 0.24))


def test_scores_are_asked_once_a_day_and_a_limit_costs_only_the_score(scene: Scene) -> None:
    scene.spot.pools.scores = {"euw1-az1": 7}
    found = [market(scene).score(TYPES, 4) for _ in range(3)]
    assert found == [{"euw1-az1": 7}] * 3
    assert len(scene.box.calls.of("ec2", "GetSpotPlacementScores")) == 1
    scene.spot.pools.score_limit = 0
    assert market(scene).score(TYPES, 5) == {}


def test_a_set_of_two_types_is_not_scored(scene: Scene) -> None:
    assert market(scene).score(TYPES[:2], 4) == {}
    assert scene.box.calls.of("ec2", "GetSpotPlacementScores") == []


def test_a_light_sweep_remembers_and_a_full_one_proposes_too(scene: Scene) -> None:
    scene.spot.group("gpu", types=["g5.xlarge"])
    price(scene, g5_xlarge=0.60, g6_xlarge=0.30)
    now = scene.box.clock.now
    assert look_at_groups(scene.ports.groups, ports(scene), SweepKind.LIGHT, now).kept == 1
    assert scene.occurrences() == []
    look_at_groups(scene.ports.groups, ports(scene), SweepKind.FULL, now)
    assert [found.kind for found in scene.occurrences()] == ["capacity-option"]


def test_groups_that_may_not_be_read_cost_the_sweep_nothing(scene: Scene) -> None:
    scene.box.deny("autoscaling:DescribeAutoScalingGroups")
    assert look_at_groups(scene.ports.groups, ports(scene), SweepKind.FULL, scene.box.clock.now).kept == 0
