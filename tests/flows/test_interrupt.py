"""A Spot interruption, from EC2's event to the replacement, and everything that may be wrong with it."""

from dataclasses import replace
from datetime import timedelta
from math import inf
from typing import Any

import pytest

from rightsizer.aws.capacity_changes import LEASE
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.scaling_group import LeaveAlone, Note, Replace, ReplacementMethod
from rightsizer.domain.spot import Pool
from rightsizer.domain.trigger import LookBeyond, NoTrigger, SweepDue, SweepKind
from rightsizer.errors import InputError, ThrottledError
from rightsizer.flows.interruption import interrupt
from rightsizer.ports.spot import UnreadGroup
from sandbox.refusals import Killed
from tests.flows.spot_scene import WARNING, Scene, scene

__all__ = ["scene"]


def test_a_warned_instance_of_an_opted_in_group_is_replaced_before_it_is_lost(scene: Scene) -> None:
    group = scene.spot.group("gpu", desired=4)
    scene.sweep()
    reaction = scene.warn(scene.spot.members("gpu")[0])
    assert isinstance(reaction, Replace)
    assert reaction.way is ReplacementMethod.DETACH
    assert len([i for i in group.instances if i.lifecycle == "Pending"]) == 1, "the replacement boots already"
    scene.box.clock.advance(timedelta(minutes=6))
    assert (group.serving, group.desired, group.wanted) == (4, 4, [4])


def test_the_request_takes_three_calls_beside_one_conditional_write(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    before = len(scene.box.calls)
    scene.warn(scene.spot.members("gpu")[0])
    until_request = []
    for call in scene.box.calls[before:]:
        until_request.append(call.action)
        if call.operation == "DetachInstances":
            break
    assert until_request == [
        "dynamodb:PutItem",
        "autoscaling:DescribeAutoScalingInstances",
        "dynamodb:GetItem",
        "autoscaling:DetachInstances",
    ]


def test_a_terminating_hook_is_allowed_to_run(scene: Scene) -> None:
    group = scene.spot.group("gpu", hooks=["autoscaling:EC2_INSTANCE_TERMINATING"])
    scene.sweep()
    victim = scene.spot.members("gpu")[0]
    reaction = scene.warn(victim)
    assert isinstance(reaction, Replace)
    assert reaction.way is ReplacementMethod.TERMINATE
    assert next(i for i in group.instances if i.id == victim).lifecycle == "Terminating:Wait"
    assert group.wanted == [4]


def test_the_same_event_five_times_is_one_replacement(scene: Scene) -> None:
    group = scene.spot.group("gpu")
    scene.sweep()
    scene.spot.groups.warn(scene.spot.members("gpu")[0])
    event = scene.box.events_of(WARNING)[-1]
    reactions = [scene.handle(event) for _ in range(5)]
    assert [isinstance(reaction, Replace) for reaction in reactions] == [True, False, False, False, False]
    assert [reaction.reason.code for reaction in reactions[1:]] == [Code.ALREADY_SEEN] * 4
    assert scene.replaced() == ["DetachInstances"]
    assert len(scene.told.said) == 1
    assert len(group.instances) == 4


def test_two_interruptions_in_one_group_at_once_are_two_replacements(scene: Scene) -> None:
    group = scene.spot.group("gpu")
    scene.sweep()
    first, second = scene.spot.members("gpu")[:2]
    assert isinstance(scene.warn(first), Replace)
    assert isinstance(scene.warn(second), Replace)
    scene.box.clock.advance(timedelta(minutes=6))
    assert (group.serving, group.wanted) == (4, [4])


def test_a_warning_older_than_two_minutes_changes_nothing_and_is_recorded(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    scene.spot.groups.warn(scene.spot.members("gpu")[0])
    event = scene.box.events_of(WARNING)[-1]
    scene.box.clock.advance(timedelta(seconds=121))
    reaction = scene.handle(event)
    assert reaction.reason.code is Code.STALE
    assert scene.replaced() == []
    assert [found.kind for found in scene.occurrences()] == ["spot-interruption"]


def test_an_instance_that_this_account_does_not_know_is_only_recorded(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    scene.spot.groups.warn(scene.spot.members("gpu")[0])
    event = scene.box.events_of(WARNING)[-1]
    reaction = scene.handle({**event, "detail": {**event["detail"], "instance-id": "i-0ffffffffffffffff"}})
    assert reaction.reason.code is Code.FOREIGN_INSTANCE
    assert scene.replaced() == []


@pytest.mark.parametrize(
    ("tags", "code"),
    [
        ([], Code.NO_GROUP),
        ([{"Key": "karpenter.sh/nodepool", "Value": "gpu"}], Code.SOMEONE_ELSE_HANDLES),
        ([{"Key": "eks:nodegroup-name", "Value": "gpu"}], Code.SOMEONE_ELSE_HANDLES),
        ([{"Key": "aws:ec2:fleet-id", "Value": "fleet-1"}], Code.SOMEONE_ELSE_HANDLES),
    ],
)
def test_an_instance_without_a_group_is_left_with_whoever_looks_after_it(
    scene: Scene, tags: list[dict[str, str]], code: Code
) -> None:
    scene.spot.group("gpu")
    scene.spot.ec2.loose["i-0aaaaaaaaaaaaaaaa"] = {
        "InstanceId": "i-0aaaaaaaaaaaaaaaa",
        "InstanceType": "g5.xlarge",
        "State": {"Code": 16, "Name": "running"},
        "Placement": {"AvailabilityZone": "eu-west-1a"},
        "Tags": tags,
    }
    scene.spot.groups.warn(scene.spot.members("gpu")[0])
    event = scene.box.events_of(WARNING)[-1]
    reaction = scene.handle({**event, "detail": {**event["detail"], "instance-id": "i-0aaaaaaaaaaaaaaaa"}})
    assert reaction.reason.code is code
    assert scene.replaced() == []


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"mode": ""}, Code.NOT_OPTED_IN),
        ({"mode": "propose"}, Code.NOT_OPTED_IN),
        ({"capacity_rebalance": True}, Code.REPLACES_ITSELF),
        ({"tags": {"aws-node-termination-handler/managed": ""}}, Code.SOMEONE_ELSE_HANDLES),
        ({"tags": {"kubernetes.io/cluster/ml": "owned"}}, Code.SOMEONE_ELSE_HANDLES),
        ({"suspended": {"Launch"}}, Code.LAUNCH_SUSPENDED),
    ],
)
def test_groups_that_are_not_ours_to_touch_are_left_alone_and_it_is_said(
    scene: Scene, more: dict[str, Any], code: Code
) -> None:
    group = scene.spot.group("gpu", **more)
    scene.sweep()
    reaction = scene.warn(scene.spot.members("gpu")[0])
    assert reaction.reason.code is code
    assert scene.replaced() == []
    assert group.wanted == [4]
    assert len(scene.told.said) == 1


def test_other_suspended_processes_do_not_stop_us(scene: Scene) -> None:
    group = scene.spot.group("gpu", suspended={"AZRebalance", "ReplaceUnhealthy"})
    scene.sweep()
    assert isinstance(scene.warn(scene.spot.members("gpu")[0]), Replace)
    assert len(group.instances) == 4


def test_with_terminate_suspended_the_instance_is_detached_though_a_hook_waits(scene: Scene) -> None:
    scene.spot.group("gpu", suspended={"Terminate"}, hooks=["autoscaling:EC2_INSTANCE_TERMINATING"])
    scene.sweep()
    scene.warn(scene.spot.members("gpu")[0])
    assert scene.replaced() == ["DetachInstances"]


def test_a_group_at_its_maximum_size_is_replaced_all_the_same(scene: Scene) -> None:
    group = scene.spot.group("gpu", desired=4, maximum=4)
    scene.sweep()
    assert isinstance(scene.warn(scene.spot.members("gpu")[0]), Replace)
    assert len(group.instances) == 4


def test_scale_in_protection_does_not_keep_ec2_from_taking_it_nor_us_from_replacing_it(scene: Scene) -> None:
    group = scene.spot.group("gpu")
    group.instances[0].protected = True
    scene.sweep()
    assert isinstance(scene.warn(group.instances[0].id), Replace)


def test_an_instance_on_standby_serves_nothing_and_is_left_to_the_group(scene: Scene) -> None:
    group = scene.spot.group("gpu")
    group.instances[0].lifecycle = "Standby"
    scene.sweep()
    assert scene.warn(group.instances[0].id).reason.code is Code.NOT_SERVING


def test_an_instance_that_is_leaving_already_is_left_alone(scene: Scene) -> None:
    group = scene.spot.group("gpu")
    group.instances[0].lifecycle = "Terminating:Wait"
    scene.sweep()
    assert scene.warn(group.instances[0].id).reason.code is Code.INSTANCE_GONE


def test_an_instance_that_leaves_between_reading_and_writing_is_a_note(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    text = "The instance i-1 is not part of Auto Scaling group gpu."
    scene.box.gate.fail("autoscaling", "DetachInstances", "ValidationError", text)
    reaction = scene.warn(scene.spot.members("gpu")[0])
    assert isinstance(reaction, Note)
    assert reaction.reason.code is Code.INSTANCE_GONE


@pytest.mark.parametrize("action", ["autoscaling:DetachInstances", "autoscaling:DescribeAutoScalingInstances"])
def test_a_missing_permission_is_named_and_nothing_else_happens(scene: Scene, action: str) -> None:
    group = scene.spot.group("gpu")
    scene.sweep()
    scene.box.deny(action)
    reaction = scene.warn(scene.spot.members("gpu")[0])
    assert reaction.reason.code is Code.PERMISSION_MISSING
    assert action in reaction.reason.sentence
    assert group.wanted == [4]


def test_a_refusal_of_aws_is_reported_with_its_text(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    scene.box.gate.fail("autoscaling", "DetachInstances", "ResourceContention", "a pending update")
    reaction = scene.warn(scene.spot.members("gpu")[0])
    assert isinstance(reaction, LeaveAlone)
    assert "ResourceContention: a pending update" in reaction.reason.sentence


def test_capacity_refused_in_every_pool_is_marked_and_told_once_an_hour(scene: Scene) -> None:
    group = scene.spot.group("gpu")
    scene.sweep()
    scene.spot.empty("gpu")
    assert isinstance(scene.warn(scene.spot.members("gpu")[0]), Replace)
    scene.box.clock.advance(timedelta(minutes=2))
    failures = scene.box.events_of("EC2 Instance Launch Unsuccessful")
    reactions = [scene.handle(event) for event in failures]
    assert Code.NO_OPEN_POOL in [reaction.reason.code for reaction in reactions]
    assert all(scene.ports.book.mark(Pool("g5.xlarge", zone)) for zone in group.zones)
    told = [text for title, text in scene.told.said if title == "rightsizer: launch failed in gpu"]
    assert len([text for text in told if "every Spot pool of gpu" in text]) == 1
    assert group.wanted == [4]


def test_the_interrupted_pool_is_marked_for_three_minutes(scene: Scene) -> None:
    group = scene.spot.group("gpu")
    scene.sweep()
    scene.warn(group.instances[0].id)
    mark = scene.ports.book.mark(Pool("g5.xlarge", "eu-west-1a"))
    assert mark is not None
    assert mark.until - mark.at == timedelta(minutes=3)


def test_a_rebalance_recommendation_is_recorded_and_not_acted_on(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    scene.spot.groups.warn(scene.spot.members("gpu")[0])
    event = dict(scene.box.events_of(WARNING)[-1])
    event |= {"detail-type": "EC2 Instance Rebalance Recommendation"}
    event["detail"] = {"instance-id": event["detail"]["instance-id"]}
    scene.handle(event)
    scene.handle(event)
    assert [found.kind for found in scene.occurrences()] == ["rebalance-recommendation"]
    assert scene.replaced() == []


def test_a_dry_run_asks_for_nothing(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    scene.ports = replace(scene.ports, dry_run=True)
    reaction = scene.warn(scene.spot.members("gpu")[0])
    assert "dry run" in reaction.reason.sentence
    assert scene.replaced() == []


def test_throttling_goes_up_and_the_retry_acts(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    scene.box.gate.fail("autoscaling", "DetachInstances", "Throttling", times=inf)
    scene.spot.groups.warn(scene.spot.members("gpu")[0])
    event = scene.box.events_of(WARNING)[-1]
    with pytest.raises(ThrottledError):
        scene.handle(event)
    scene.box.gate.heal()
    assert scene.handle(event).reason.code is Code.ALREADY_SEEN, "within the lease the first one may still be at work"
    scene.box.clock.advance(LEASE + timedelta(seconds=1))
    assert isinstance(scene.handle(event), Replace)


@pytest.mark.parametrize("nth", range(1, 6))
@pytest.mark.parametrize("after", [True, False])
def test_killed_at_any_write_the_retry_replaces_once_and_capacity_stays(scene: Scene, nth: int, after: bool) -> None:
    group = scene.spot.group("gpu")
    scene.sweep()
    scene.spot.groups.warn(scene.spot.members("gpu")[0])
    event = scene.box.events_of(WARNING)[-1]
    scene.box.gate.kill(nth, after=after)
    with pytest.raises(Killed):
        scene.handle(event)
    scene.box.gate.heal()
    scene.box.clock.advance(timedelta(seconds=61))
    scene.handle(event)
    assert scene.replaced().count("DetachInstances") - (nth == 2 and not after) == 1
    assert len(group.instances) == 4
    assert group.wanted == [4]


def test_the_interruption_is_in_the_account_s_own_record(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    victim = scene.spot.members("gpu")[0]
    scene.warn(victim)
    now = scene.box.clock.now
    (found,) = scene.ports.book.interruptions(now - timedelta(days=40), now + timedelta(days=1))
    assert (found.instance_id, found.group, found.reaction) == (victim, "gpu", "replace DetachInstances")
    assert found.pool == Pool("g5.xlarge", "eu-west-1a")


def test_facts_of_a_sweep_that_stopped_are_not_acted_on(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    scene.box.clock.advance(timedelta(hours=49))
    reaction = scene.warn(scene.spot.members("gpu")[0])
    assert reaction.reason.code is Code.STALE
    assert scene.replaced() == []


def test_events_of_other_doors_are_refused(scene: Scene) -> None:
    with pytest.raises(InputError, match="sweep-due"):
        interrupt(scene.ports, SweepDue(SweepKind.FULL, scene.box.clock.now), scene.box.clock.now)


def test_a_group_with_a_malformed_tag_is_named_and_the_others_are_read(scene: Scene) -> None:
    scene.spot.group("odd", mode="sometimes")
    scene.spot.group("fine")
    found = list(scene.ports.groups.groups(scene.box.clock.now))
    assert [row.name for row in found] == ["odd", "fine"]
    assert isinstance(found[0], UnreadGroup)
    assert "sometimes" in found[0].reason.sentence


def test_a_record_survives_a_topic_that_fails(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    scene.told.failing = True
    assert isinstance(scene.warn(scene.spot.members("gpu")[0]), Replace)
    assert [found.kind for found in scene.occurrences()] == ["spot-interruption"]


def test_an_event_that_asks_nothing_is_answered_with_its_reason(scene: Scene) -> None:
    reason = Reason(Code.UNKNOWN_EVENT, "nothing of ours")
    assert interrupt(scene.ports, NoTrigger(reason), scene.box.clock.now).reason is reason


class Queue:
    """The evaluation queue: remembers, or refuses."""

    def __init__(self, refuses: bool = False) -> None:
        self.looks: list[LookBeyond] = []
        self.refuses = refuses

    def send_look(self, look: LookBeyond) -> None:
        if self.refuses:
            raise ThrottledError("the queue is throttled")
        self.looks.append(look)


def test_better_capacity_is_asked_for_after_an_interruption_once_an_hour(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    queue = Queue()
    scene.ports = replace(scene.ports, queue=queue)
    scene.warn(scene.spot.members("gpu")[0])
    scene.warn(scene.spot.members("gpu")[0])
    assert [(look.subject, look.names, look.because) for look in queue.looks] == [("group", ("gpu",), "interruption")]
    scene.box.clock.advance(timedelta(hours=1))
    scene.warn(scene.spot.members("gpu")[0])
    assert len(queue.looks) == 2


def test_better_capacity_is_asked_for_when_a_launch_finds_no_capacity(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    queue = Queue()
    scene.ports = replace(scene.ports, queue=queue)
    scene.spot.empty("gpu")
    scene.warn(scene.spot.members("gpu")[0])
    queue.looks.clear()
    scene.box.clock.advance(timedelta(hours=2))
    scene.handle(scene.box.events_of("EC2 Instance Launch Unsuccessful")[-1])
    assert len(queue.looks) == 1


def test_a_queue_that_refuses_costs_the_question_only(scene: Scene) -> None:
    scene.spot.group("gpu")
    scene.sweep()
    scene.ports = replace(scene.ports, queue=Queue(refuses=True))
    assert isinstance(scene.warn(scene.spot.members("gpu")[0]), Replace)
