"""The role of the template, evaluated on every write of a change: forward, back, and what it must not reach."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rightsizer.domain.change import ChangeState, FailureClass
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.plan import StepKind
from rightsizer.domain.reason import Code
from rightsizer.flows.orders import Orders
from tests.changing import scenarios
from tests.changing.world import NAME, World, an_option, world

KEY = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def smaller() -> Option:
    """Instances without local storage, so that a key of the customer's encrypts all of it."""
    return an_option(target=Target("ml.m5.xlarge", 1))


def returned(w: World) -> Any:
    w.start()
    while w.change.turned_at is None:
        w.run(0.25)
    Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
    return w.run(4)


def test_the_way_back_is_allowed_because_the_old_configuration_was_tagged_before_the_turn() -> None:
    with world() as w:
        change = returned(w)
        tags = w.box.world.tags.of(w.box.world.fleet.arn("endpoint-config", f"{NAME}-config"))
        order = [c.operation for c in w.box.calls.writes() if c.service == "sagemaker"]
        carried = w.box.config_name(NAME)
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert carried == f"{NAME}-config"
    assert tags["rightsizer:change"] == change.id
    assert order == ["CreateEndpointConfig", "AddTags", "UpdateEndpoint", "UpdateEndpoint"]


def test_without_the_tag_the_role_could_not_go_back() -> None:
    with world() as w:
        config = w.apply.changer.config(f"{NAME}-config")
        assert config is not None
        with pytest.raises(
            ClientError, match=r"not authorized to perform: sagemaker:UpdateEndpoint on resource: .*config"
        ):
            w.box.client("sagemaker").update_endpoint(EndpointName=NAME, EndpointConfigName=f"{NAME}-config")


def test_a_tag_that_somebody_took_away_is_put_back_before_the_return() -> None:
    with world() as w:
        w.start()
        while w.change.turned_at is None:
            w.run(0.25)
        w.box.world.tags.forget(w.box.world.fleet.arn("endpoint-config", f"{NAME}-config"))
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(4)
    assert change.state is ChangeState.ROLLED_BACK, change.outcome


def test_a_role_that_may_not_tag_does_not_start_what_it_could_not_undo() -> None:
    with world() as w:
        w.box.deny("sagemaker:AddTags")
        w.start()
        change = w.run(6)
        updates = w.box.calls.of("sagemaker", "UpdateEndpoint")
    assert change.state is ChangeState.ROLLED_BACK
    assert change.failure is FailureClass.PERMISSION
    assert updates == []


def test_a_clone_of_the_old_counts_is_returned_to_with_its_own_tag() -> None:
    """The configuration says one instance, two run: deploying the old one would lose the second."""

    def grown(box: Any) -> None:
        who = {"VariantName": "AllTraffic", "DesiredInstanceCount": 2}
        box.client("sagemaker").update_endpoint_weights_and_capacities(
            EndpointName=NAME, DesiredWeightsAndCapacities=[who]
        )
        box.clock.advance(timedelta(minutes=10))

    with world(seed=grown) as w:
        change = returned(w)
        tags = w.box.world.tags.of(w.box.world.fleet.arn("endpoint-config", change.plan.back_config))
        counts = w.box.counts(NAME)
    assert change.state is ChangeState.ROLLED_BACK, change.outcome
    assert change.plan.back_config != f"{NAME}-config"
    assert "rightsizer:change" in tags
    assert counts == {"AllTraffic": 2}
    assert StepKind.TAG_CONFIG not in {s.kind for s in change.plan.prepare}


def test_an_encrypted_configuration_is_cloned_through_the_grant_for_sagemaker() -> None:
    with world(instance_type="ml.m5.2xlarge", config_extra={"KmsKeyId": KEY}, option=smaller()) as w:
        w.start()
        change = w.run(6)
    assert change.state is ChangeState.PROVEN, change.outcome


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"ExecutionRoleArn": "arn:aws:iam::111122223333:role/model"}, "iam:PassRole"),
        ({"KmsKeyId": KEY.replace("111122223333", "999988887777")}, "account 999988887777"),
    ],
)
def test_what_the_role_could_not_create_is_refused_before_anything_is_written(extra: Any, words: str) -> None:
    with world(instance_type="ml.m5.2xlarge", config_extra=extra, option=smaller()) as w:
        change = w.start()
        writes = [c.action for c in w.box.calls.writes() if c.service != "dynamodb"]
    assert change.state is ChangeState.REFUSED
    assert change.reason is not None
    assert change.reason.code is Code.PERMISSION_MISSING
    assert words in change.reason.sentence
    assert writes == []


ROLE = "arn:aws:iam::111122223333:role/model"


def test_a_role_that_cannot_see_alarms_is_refused_with_what_to_allow() -> None:
    with world() as w:
        w.box.world.iam.blind.add(ROLE)
        change = w.start()
    assert change.state is ChangeState.REFUSED
    assert change.reason is not None
    assert change.reason.code is Code.ALARM_NOT_OK
    assert f"{ROLE}, which may not call cloudwatch:DescribeAlarms" in change.reason.sentence


def test_where_iam_cannot_be_asked_the_owner_confirms_once_by_a_tag() -> None:
    with world() as w:
        w.box.deny("iam:SimulatePrincipalPolicy")
        change = w.start()
    assert change.state is ChangeState.REFUSED
    assert "Key=rightsizer:alarms,Value=visible" in change.outcome
    with world(tags={"rightsizer:mode": "propose", "rightsizer:alarms": "visible"}) as w:
        w.box.deny("iam:SimulatePrincipalPolicy")
        assert w.start().state is ChangeState.RUNNING


def test_a_change_that_deploys_nothing_needs_no_alarms() -> None:
    count = an_option(kind=OptionKind.INSTANCE_COUNT, target=Target("ml.g5.4xlarge", 1))
    with world(count, count=3) as w:
        w.box.world.iam.blind.add(ROLE)
        assert w.start().state is ChangeState.RUNNING


def test_a_permission_lost_in_the_middle_is_told_as_missing_autoscaling_before_everything_is_tried() -> None:
    with world(scenarios.AUTOSCALED.option, seed=scenarios.AUTOSCALED.seed, **scenarios.AUTOSCALED.endpoint) as w:
        w.start()
        while w.box.status(NAME) != "Updating":
            w.box.clock.advance(timedelta(minutes=1))
            w.apply.tick(w.now)
        began = w.now
        w.box.deny("application-autoscaling:Register*", "application-autoscaling:Put*", "cloudwatch:Put*")
        while len(w.told) < 2 and w.now - began < timedelta(days=1):
            w.box.clock.advance(timedelta(minutes=5))
            w.apply.tick(w.now)
        told, (incident, first, *_) = w.now, w.told
        change = w.run(24)
    assert told - began < timedelta(hours=2)
    assert incident[0] == f"INCIDENT {NAME}: its autoscaling is missing"
    assert first[1].startswith("AUTOSCALING IS MISSING on endpoint/chat/variant/AllTraffic")
    assert change.state is ChangeState.HANDED_OVER
    assert w.now - told < timedelta(hours=1)


@pytest.mark.parametrize(
    "action",
    [
        "application-autoscaling:RegisterScalableTarget",
        "application-autoscaling:PutScalingPolicy",
        "application-autoscaling:PutScheduledAction",
        "cloudwatch:PutMetricAlarm",
    ],
)
def test_autoscaling_that_could_not_be_given_back_is_never_taken_away(action: str) -> None:
    """A target tracking policy makes its alarms in our name, which an organisation's policy may forbid."""
    with world(scenarios.AUTOSCALED.option, seed=scenarios.autoscaled) as w:
        w.box.world.iam.forbidden.add(action)
        change = w.start()
        written = [c.action for c in w.box.calls.writes() if c.service != "dynamodb"]
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.PERMISSION_MISSING)
    assert f"IAM denies our role {action}" in change.outcome
    assert written == []


def test_where_nobody_may_ask_iam_the_change_goes_on_and_aws_decides() -> None:
    tags = {"rightsizer:mode": "propose", "rightsizer:alarms": "visible"}
    with world(scenarios.AUTOSCALED.option, seed=scenarios.autoscaled, tags=tags) as w:
        w.box.gate.deny("iam:SimulatePrincipalPolicy", code="AccessDenied")
        w.start()
        assert w.run(12).state is ChangeState.PROVEN, w.change.outcome
