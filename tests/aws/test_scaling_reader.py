"""Policies are read by walking the account where it is short, and target by target where it is not."""

import pytest

from rightsizer.aws.scaling import PAGE, SHORT, ScalingReader
from rightsizer.aws.session import Session
from sandbox.account import Sandbox

POLICIES, TARGETS = (
    "application-autoscaling:DescribeScalingPolicies",
    "application-autoscaling:DescribeScalableTargets",
)


def scaled(box: Sandbox, endpoints: int) -> list[str]:
    """Resource ids of so many endpoints, each with a policy of its own."""
    box.set_quota("ml.g5.xlarge", endpoints)
    for number in range(endpoints):
        box.add_endpoint(f"e-{number}", instance_type="ml.g5.xlarge", count=1)
        box.autoscale(f"e-{number}", 1, 4)
    return [f"endpoint/e-{number}/variant/AllTraffic" for number in range(endpoints)]


def asked(box: Sandbox, account: Session, *chunks: list[str]) -> tuple[int, int]:
    """Requests for policies that one reader makes for these chunks, and how many targets came with a policy."""
    reader, found = ScalingReader(account.client("application-autoscaling")), 0
    box.calls.clear()
    for chunk in chunks:
        read = reader.read(chunk)
        found += sum(len(target.policies) == 1 for (target,) in read.values())
    return box.calls.counts()[POLICIES], found


def test_few_targets_are_walked_once_and_many_are_asked_for_by_name(
    box: Sandbox, account: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources = scaled(box, 3)
    none = [f"endpoint/other-{number}/variant/AllTraffic" for number in range(PAGE + 1)]
    reader = ScalingReader(account.client("application-autoscaling"))
    box.calls.clear()
    assert set(reader.read(resources[:2])) == set(resources[:2])
    assert reader.read(none) == {}
    assert set(reader.read(resources[2:])) == set(resources[2:])
    assert box.calls.counts()[TARGETS] == 1
    monkeypatch.setattr(ScalingReader, "_walk_targets", lambda _: None)
    named = ScalingReader(account.client("application-autoscaling"))
    assert set(named.read([*none, *resources])) == set(resources)
    assert box.calls.counts()[TARGETS] == 1 + 2


def test_a_short_account_is_walked_once_for_all_chunks(box: Sandbox, account: Session) -> None:
    resources = scaled(box, 25)
    assert asked(box, account, resources[:10], resources[10:]) == (3, 25)


def test_in_a_long_account_each_target_is_asked_for(box: Sandbox, account: Session) -> None:
    resources = scaled(box, 10 * SHORT + 1)
    assert asked(box, account, resources[:2], resources[2:4]) == (SHORT + 2 + 2, 4)


def test_a_walk_that_ends_with_its_last_request_is_whole(box: Sandbox, account: Session) -> None:
    resources = scaled(box, 10 * SHORT)
    assert asked(box, account, resources[:2]) == (SHORT, 2)


def test_a_target_with_two_policies_has_both_however_they_are_read(box: Sandbox, account: Session) -> None:
    (resource, *_) = scaled(box, 12)
    client = box.client("application-autoscaling")
    (first,) = client.describe_scaling_policies(ServiceNamespace="sagemaker", ResourceId=resource)["ScalingPolicies"]
    again = {key: first[key] for key in ("ServiceNamespace", "ResourceId", "ScalableDimension", "PolicyType")}
    configuration = first["TargetTrackingScalingPolicyConfiguration"] | {"TargetValue": 99.0}
    configuration["PredefinedMetricSpecification"] = {
        "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
    }
    configuration.pop("CustomizedMetricSpecification", None)
    client.put_scaling_policy(PolicyName="second", TargetTrackingScalingPolicyConfiguration=configuration, **again)
    reader = ScalingReader(account.client("application-autoscaling"))
    ((target,),) = reader.read([resource]).values()
    assert {policy["PolicyName"] for policy in target.policies} == {first["PolicyName"], "second"}
