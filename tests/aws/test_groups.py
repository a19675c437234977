"""A mixed instances policy that AWS described is one that AWS takes back."""

from typing import Any

import pytest

from rightsizer.aws.groups import sendable_policy
from sandbox.strict import judge

BY_ID = {"LaunchTemplateId": "lt-0123456789abcdef0", "LaunchTemplateName": "gpu", "Version": "$Latest"}
PLAIN: dict[str, Any] = {"SpotAllocationStrategy": "price-capacity-optimized", "OnDemandBaseCapacity": 0}


@pytest.mark.parametrize(
    ("described", "sent"),
    [
        (PLAIN | {"SpotInstancePools": 0}, PLAIN),
        (PLAIN | {"SpotInstancePools": 2}, PLAIN),
        ({"SpotAllocationStrategy": "lowest-price", "SpotInstancePools": 2}, None),
        ({"OnDemandBaseCapacity": 1, "SpotInstancePools": 0}, {"OnDemandBaseCapacity": 1}),
    ],
)
def test_pools_are_sent_back_only_where_aws_takes_them(described: dict[str, Any], sent: dict[str, Any] | None) -> None:
    policy = sendable_policy({
        "LaunchTemplate": {
            "LaunchTemplateSpecification": BY_ID,
            "Overrides": [{"InstanceType": "g5.xlarge", "LaunchTemplateSpecification": BY_ID}],
        },
        "InstancesDistribution": described,
    })  # fmt: skip
    assert policy["InstancesDistribution"] == (described if sent is None else sent)
    request = {"AutoScalingGroupName": "gpu", "MixedInstancesPolicy": policy}
    assert judge("autoscaling", "UpdateAutoScalingGroup", request) is None


def test_a_policy_without_a_distribution_stays_without_one() -> None:
    assert "InstancesDistribution" not in sendable_policy({"LaunchTemplate": {"LaunchTemplateSpecification": BY_ID}})
