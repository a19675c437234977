"""Spot at the real doors: rules, roles and retries of the template, from the event to what is done and recorded."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from math import inf
from typing import Any

import pytest

from rightsizer import bootstrap
from rightsizer.aws.capacity_changes import CapacityChangeTable, InterruptionTable
from rightsizer.aws.ledger import SavingsTable
from rightsizer.domain.capacity_change import CapacityChange, ManualStep
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.spot import Pool
from sandbox.delivery import Delivery
from sandbox.refusals import Killed
from sandbox.spot import SPOT_ONLY, Spot, add_spot
from sandbox.spot_groups import SimGroup
from tests.doors.scene import Scene, scene
from tests.spot.test_jobs import CLUSTER, MANY, fits_the_model, row

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
WARNING = "EC2 Spot Instance Interruption Warning"
THREE = ["autoscaling:DescribeAutoScalingInstances", "dynamodb:GetItem", "autoscaling:DetachInstances"]


@dataclass
class Stage:
    """The deployed stack beside groups of Auto Scaling."""

    at: Scene
    spot: Spot

    def group(self, name: str = "gpu", **over: Any) -> SimGroup:
        """A group whose facts the sweep has read."""
        group = self.spot.group(name, **{"zones": ZONES} | over)
        self.at.sweep("Hourly")
        return group

    def warn(self, *instances: str) -> None:
        for one in instances or self.spot.members("gpu")[:1]:
            self.spot.groups.warn(one)
        self.at.stack.settle()

    def again(self, event: Any) -> None:
        self.at.stack.route(event)
        self.at.stack.settle()

    def answers(self) -> list[Any]:
        return [run.answer for run in self.at.stack.runs("interruption") if run.answer is not None]

    def replaced(self) -> list[str]:
        calls = self.at.box.calls.of("autoscaling", "Detach*") + self.at.box.calls.of("autoscaling", "Terminate*")
        return [call.operation for call in calls if call.error is None]

    def occurrences(self, *kinds: str) -> list[Occurrence]:
        now = self.at.box.clock.now
        with self.at.box.gate.unrecorded():
            found = list(SavingsTable(bootstrap.table()).occurrences(now - timedelta(days=2), now + timedelta(days=1)))
        return [one for one in found if not kinds or one.kind in kinds]

    def errands(self, state: ProposalState = ProposalState.PENDING) -> list[CapacityChange]:
        with self.at.box.gate.unrecorded():
            book = CapacityChangeTable(bootstrap.table())
            rows = list(bootstrap.table().index(f"PROPOSAL#{state}"))
            found = [book.load(str(row["pk"]).removeprefix("PROPOSAL#")) for row in rows]
        return [one for one in found if one is not None]

    def kept(self, group: SimGroup, want: int = 4) -> None:
        """Capacity was never lowered, and is whole when the replacement has booted."""
        self.at.pass_time(minutes=7)
        assert (group.serving, group.desired, group.wanted) == (want, want, [want])


@contextmanager
def stage(**over: Any) -> Iterator[Stage]:
    with scene(slack=False, **over) as at:
        yield Stage(at, add_spot(at.box))


def test_the_replacement_is_asked_for_by_three_calls_beside_one_write_and_a_look_at_the_freeze() -> None:
    with stage() as on:
        group = on.group()
        before = len(on.at.box.calls)
        on.warn()
        made = [call.action for call in on.at.box.calls[before:]]
        first = made[: made.index(THREE[-1]) + 1]
        assert sorted(first) == sorted(["dynamodb:PutItem", "dynamodb:GetItem", *THREE])
        assert first.index("dynamodb:GetItem") < first.index(THREE[-1]), "a hard freeze stops it"
        assert on.at.refused() == []
        on.kept(group)


def test_events_that_come_five_times_late_and_mixed_up_replace_each_instance_once() -> None:
    with stage() as on:
        group = on.group()
        on.at.stack.delivery = Delivery(seed=3, latest=timedelta(seconds=90), copies=5, exactly=True)
        for victim in on.spot.members("gpu")[:2]:
            on.spot.groups.warn(victim)
        on.kept(group)
        assert on.replaced() == ["DetachInstances"] * 2
        assert len(on.at.stack.runs("interruption")) >= 10
        assert len(on.occurrences("spot-interruption")) == 2


def test_every_instance_of_a_group_at_once_is_replaced_and_the_group_is_whole_again() -> None:
    with stage() as on:
        group = on.group(maximum=4)
        on.warn(*on.spot.members("gpu"))
        assert on.replaced() == ["DetachInstances"] * 4
        on.kept(group)


def test_an_instance_of_another_account_is_recorded_and_nothing_is_touched() -> None:
    with stage() as on:
        group = on.group()
        on.at.box.world.emit(
            "aws.ec2",
            WARNING,
            ["arn:aws:ec2:us-east-1a:instance/i-0ffffffffffffffff"],
            {"instance-id": "i-0ffffffffffffffff", "instance-action": "terminate"},
        )
        on.at.stack.settle()
        assert ["is no instance of this account" in answer["reason"] for answer in on.answers()] == [True]
        assert (on.replaced(), group.serving) == ([], 4)
        assert len(on.occurrences("spot-interruption")) == 1


def test_an_instance_that_is_gone_already_is_recorded() -> None:
    with stage() as on:
        group = on.group()
        victim = group.instances.pop()
        on.at.box.world.emit("aws.ec2", WARNING, [], {"instance-id": victim.id, "instance-action": "terminate"})
        on.at.stack.settle()
        assert on.replaced() == []
        assert len(on.occurrences("spot-interruption")) == 1


def test_a_warning_older_than_two_minutes_changes_nothing_and_is_recorded() -> None:
    with stage() as on:
        group = on.group()
        on.at.stack.paused = True
        on.spot.groups.warn(on.spot.members("gpu")[0])
        event = on.at.box.events_of(WARNING)[-1]
        on.at.box.clock.advance(timedelta(seconds=121))
        on.at.stack.invoke("interruption", event)
        assert on.replaced() == []
        assert group.wanted == [4]
        assert len(on.occurrences("spot-interruption")) == 1


@pytest.mark.parametrize(
    ("over", "way"),
    [
        ({"maximum": 4}, "DetachInstances"),
        ({"suspended": {"AZRebalance", "ReplaceUnhealthy"}}, "DetachInstances"),
        ({"hooks": ["autoscaling:EC2_INSTANCE_TERMINATING"]}, "TerminateInstanceInAutoScalingGroup"),
    ],
    ids=["at its maximum", "other processes suspended", "a terminating hook"],
)
def test_groups_that_can_be_helped_are(over: dict[str, Any], way: str) -> None:
    with stage() as on:
        group = on.group(**over)
        on.warn()
        assert on.replaced() == [way]
        on.kept(group)


def test_scale_in_protection_hinders_nothing() -> None:
    with stage() as on:
        group = on.group()
        group.instances[0].protected = True
        on.warn(group.instances[0].id)
        on.kept(group)


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({"suspended": {"Launch"}}, "has Launch suspended"),
        ({"capacity_rebalance": True}, "Capacity Rebalancing is on"),
        ({"mode": ""}, "has not opted in"),
        ({"mode": "propose"}, "has not opted in"),
        ({"tags": {"k8s.io/cluster-autoscaler/enabled": "true"}}, "the Kubernetes cluster"),
    ],
)
def test_groups_that_are_not_ours_to_touch_are_left_alone(over: dict[str, Any], words: str) -> None:
    with stage() as on:
        group = on.group(**over)
        on.warn()
        assert [words in answer["reason"] for answer in on.answers()] == [True]
        assert (on.replaced(), group.wanted) == ([], [4])


def test_a_tag_that_was_taken_away_since_the_sweep_is_respected_by_the_role_itself() -> None:
    with stage() as on:
        group = on.group()
        group.tags.clear()
        on.warn()
        assert on.replaced() == []
        (answer,) = on.answers()
        assert "autoscaling:DetachInstances" in answer["reason"]


@pytest.mark.parametrize("action", ["autoscaling:DetachInstances", "autoscaling:DescribeAutoScalingInstances"])
def test_a_missing_permission_is_named_recorded_and_harms_nothing(action: str) -> None:
    with stage() as on:
        group = on.group()
        on.at.box.deny(action)
        on.warn()
        (answer,) = on.answers()
        assert action in answer["reason"]
        assert group.wanted == [4]
        assert len(on.occurrences("spot-interruption")) == 1


def test_without_write_permissions_the_stack_records_and_asks_for_nothing() -> None:
    with stage(MayChange="nothing") as on:
        group = on.group()
        on.warn()
        assert "dry run" in on.answers()[0]["reason"]
        assert (on.replaced(), group.wanted) == ([], [4])


def test_capacity_refused_in_every_pool_marks_them_tells_once_and_asks_for_more_pools() -> None:
    with stage() as on:
        group = on.group()
        on.spot.empty("gpu")
        on.warn()
        on.at.pass_time(minutes=3)
        with on.at.box.gate.unrecorded():
            book = InterruptionTable(bootstrap.table())
            assert all(book.mark(Pool("g5.xlarge", zone)) for zone in ZONES)
        assert group.wanted == [4]
        assert len([one for one in on.occurrences("launch-failures") if "every Spot pool" in one.text]) == 1
        assert [run.error for run in on.at.stack.runs("evaluate")] == [None, None], "each question once an hour"


def without_capacity(on: Stage, **over: Any) -> SimGroup:
    """An instance is taken, and no Spot pool gives another."""
    group = on.group(**over)
    on.spot.empty("gpu")
    on.warn()
    on.at.pass_time(minutes=3)
    return group


def test_where_the_owner_said_so_on_demand_stands_in_for_an_hour_and_the_old_policy_comes_back() -> None:
    with stage() as on:
        group = without_capacity(on, tags={"rightsizer:fallback": "on-demand"})
        old = {**SPOT_ONLY}
        assert group.mixed["InstancesDistribution"]["OnDemandBaseCapacity"] == 1
        on.at.pass_time(minutes=6)
        assert (group.serving, [one.spot for one in group.instances].count(False)) == (4, 1)
        on.spot.pools.room.clear()
        on.at.pass_time(minutes=70)
        assert group.mixed["InstancesDistribution"] == old
        assert [one.state for one in on.errands(ProposalState.ROLLED_BACK)] == [ProposalState.ROLLED_BACK]
        assert group.wanted == [4]
        assert on.at.refused() == []


def test_elsewhere_on_demand_is_a_question_with_its_price_and_nothing_is_written() -> None:
    with stage() as on:
        group = without_capacity(on)
        (capacity_change,) = on.errands()
        assert "1 of 4 instances can run On-Demand" in capacity_change.headline
        assert capacity_change.approvable
        assert dict(capacity_change.facts)["On-Demand, up to"].startswith("$1.0")
        assert group.mixed["InstancesDistribution"]["OnDemandBaseCapacity"] == 0


def test_throttling_is_tried_again_within_the_two_minutes() -> None:
    with stage() as on:
        group = on.group()
        on.at.box.gate.fail("autoscaling", "DetachInstances", "Throttling", times=inf)
        on.warn()
        assert on.replaced() == []
        on.at.box.gate.heal()
        on.at.pass_time(seconds=61)
        assert on.replaced() == ["DetachInstances"]
        on.kept(group)


CALLS = 10
"""More than a warning takes, so that every place is tried."""


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, CALLS + 1))
@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
def test_killed_between_any_two_calls_the_retry_replaces_once(nth: int, after: bool) -> None:
    with stage() as on:
        group = on.group()
        on.at.box.gate.kill(nth, after=after, matches=lambda call: True)
        on.warn()
        killed = [run for run in on.at.stack.runs("interruption") if isinstance(run.error, Killed)]
        on.at.box.gate.heal()
        on.at.pass_time(seconds=61)
        assert on.replaced() == ["DetachInstances"], f"killed: {len(killed)}"
        on.kept(group)
        assert len(on.occurrences("spot-interruption")) == 1
        assert not [one for one in on.occurrences("spot-interruption") if "nothing replaces it" in one.text]


# What `evaluate` may read for groups, jobs and clusters


def priced(on: Stage, **usd: float) -> None:
    before = on.at.box.clock.now - timedelta(days=60)
    for zone in ZONES:
        for name, amount in usd.items():
            on.spot.pools.price(name.replace("_", "."), zone, before, amount)


def test_after_an_interruption_better_capacity_is_asked_about_with_the_role_of_evaluate() -> None:
    with stage() as on:
        priced(on, g5_xlarge=0.60, g6_xlarge=0.30, g6_2xlarge=0.31)
        on.spot.pools.scores = {"use1-az1": 7}
        on.group(mode="propose")
        on.warn()
        (capacity_change,) = on.errands()
        assert capacity_change.subject == "gpu"
        assert ("Placement score", "7 of 10") in capacity_change.facts
        assert on.at.refused() == []
        assert on.at.box.calls.of("autoscaling", "Update*") == [], "asked, not done"


def test_in_automatic_mode_apply_sets_the_policy_and_nobody_else_does() -> None:
    with stage() as on:
        priced(on, g5_xlarge=0.60, g5_2xlarge=0.20)
        group = on.group()
        on.warn()
        on.at.pass_time(minutes=10)
        assert "g5.2xlarge" in group.types
        assert [one.state for one in on.errands(ProposalState.APPLYING)] == [ProposalState.APPLYING]
        assert group.wanted == [4]
        assert on.at.refused() == []


def test_a_spot_job_that_runs_out_of_time_is_handed_over_with_the_role_of_evaluate() -> None:
    with stage() as on:
        now = on.at.box.clock.now
        past = [
            {"Status": "Training", "StartTime": now - timedelta(hours=10), "EndTime": now - timedelta(hours=8)},
            {"Status": "Interrupted", "StartTime": now - timedelta(hours=8)},
        ]
        on.spot.jobs.train("bert", SecondaryStatusTransitions=past, SecondaryStatus="Interrupted")
        on.spot.jobs.emit("bert")
        on.at.stack.settle()
        (capacity_change,) = on.errands()
        assert isinstance(capacity_change.work, ManualStep)
        assert fits_the_model("CreateTrainingJob", capacity_change.work.request)
        assert on.at.refused() == []
        assert len(on.occurrences("training-interrupted")) == 1
        assert on.at.stack.runs("interruption") == [], "training events go by the queue"


def test_a_job_that_waits_for_capacity_is_found_by_the_hourly_sweep() -> None:
    with stage() as on:
        now = on.at.box.clock.now
        past = [
            {"Status": "Training", "StartTime": now - timedelta(hours=10), "EndTime": now - timedelta(hours=8)},
            {"Status": "Interrupted", "StartTime": now - timedelta(hours=8)},
        ]
        on.spot.jobs.train("bert", SecondaryStatusTransitions=past)
        on.at.sweep("Hourly")
        assert [capacity_change.subject for capacity_change in on.errands()] == ["bert"]
        assert on.at.refused() == []


def test_a_cluster_short_of_capacity_is_handed_over_with_the_role_of_evaluate() -> None:
    with stage() as on:
        on.spot.jobs.clusters["big"] = CLUSTER | {
            "InstanceGroups": [row("a", CurrentCount=4), row("b", InstanceRequirements=MANY)]
        }
        detail = {
            "EventId": "e-1",
            "ClusterName": "big",
            "ClusterArn": CLUSTER["ClusterArn"],
            "EventLevel": "Error",
            "Description": "We currently do not have sufficient capacity to launch new ml.g5.8xlarge instances.",
        }
        on.at.box.world.emit("aws.sagemaker", "SageMaker HyperPod Cluster Event", [], {"EventDetails": detail})
        on.at.stack.settle()
        (capacity_change,) = on.errands()
        assert isinstance(capacity_change.work, ManualStep)
        assert [group["InstanceGroupName"] for group in capacity_change.work.request["InstanceGroups"]] == ["a", "b"]
        assert fits_the_model("UpdateCluster", capacity_change.work.request)
        assert on.at.refused() == []
