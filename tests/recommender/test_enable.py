"""What lets a change be made is said in the owner's own language."""

from dataclasses import replace

import pytest

from rightsizer.domain.endpoint import EndpointRef, ScalableTarget
from rightsizer.domain.option import OptionKind, Target
from rightsizer.recommender.proposal import CurrentFleet, permission_instructions, property_diff, tag_command
from tests import samples
from tests.recommender.test_proposal import ENDPOINT

TARGET = Target("ml.g5.xlarge", 1)
PLAIN = CurrentFleet("ml.g5.4xlarge", 1)
SCALED = CurrentFleet("ml.g5.4xlarge", 2, (2, 8))


def test_the_tag_command_names_the_endpoint_by_its_lower_case_arn() -> None:
    line = tag_command(EndpointRef("111122223333", "eu-west-1", "Chat"))
    assert "endpoint/chat" in line
    assert "Key=rightsizer:mode,Value=propose" in line


def test_cloudformation_gets_its_property_and_only_what_changes_differs() -> None:
    text = property_diff("CloudFormation stack web", "AllTraffic", PLAIN, TARGET)
    assert text.splitlines() == [
        "  VariantName: AllTraffic",
        "- InstanceType: ml.g5.4xlarge",
        "+ InstanceType: ml.g5.xlarge",
        "  InitialInstanceCount: 1",
    ]


def test_terraform_gets_hcl() -> None:
    text = property_diff("Terraform", "AllTraffic", CurrentFleet("ml.g5.xlarge", 3), TARGET)
    assert "- initial_instance_count = 3" in text
    assert '  instance_type = "ml.g5.xlarge"' in text


@pytest.mark.parametrize(
    ("owner", "lines"),
    [
        ("CloudFormation stack web", ["- MinCapacity: 2", "+ MinCapacity: 1", "  MaxCapacity: 8"]),
        ("Terraform", ["- min_capacity = 2", "+ min_capacity = 1", "  max_capacity = 8"]),
    ],
)
def test_bounds_are_a_property_of_the_scalable_target(owner: str, lines: list[str]) -> None:
    text = property_diff(owner, "AllTraffic", SCALED, Target("ml.g5.4xlarge", 2, minimum=1)).splitlines()
    assert text[-3:] == lines


@pytest.mark.parametrize(
    ("owner", "lines"),
    [
        (
            "CloudFormation stack web",
            ["+ MinCapacity: 1", "+ MaxCapacity: 4", "+ PredefinedMetricType: M", "+ TargetValue: 84.0"],
        ),
        (
            "Terraform",
            ["+ min_capacity = 1", "+ max_capacity = 4", '+ predefined_metric_type = "M"', "+ target_value = 84.0"],
        ),
    ],
)
def test_target_tracking_that_is_added_keeps_the_count_and_brings_target_and_policy(
    owner: str, lines: list[str]
) -> None:
    added = Target("ml.g5.4xlarge", 1, minimum=1, maximum=4, metric="M", target_value=84.0)
    text = property_diff(owner, "AllTraffic", CurrentFleet("ml.g5.4xlarge", 4), added).splitlines()
    assert text[-4:] == lines
    assert not any(row.startswith("- ") for row in text)


def test_pools_take_the_place_of_the_instance_type() -> None:
    pools = Target("ml.g5.xlarge", 1, pools=("ml.g5.xlarge", "ml.g5.4xlarge"))
    text = property_diff("CloudFormation stack web", "AllTraffic", PLAIN, pools)
    assert "- InstanceType: ml.g5.4xlarge" in text
    assert "+   - {InstanceType: ml.g5.xlarge, Priority: 1}" in text
    assert "+ InstanceType" not in text


def test_counts_by_the_hour_are_scheduled_actions_at_each_change() -> None:
    hours = Target("ml.g5.4xlarge", 2, hourly_counts=(1,) * 8 + (2,) * 16)
    text = property_diff("CloudFormation stack web", "AllTraffic", CurrentFleet("ml.g5.4xlarge", 2), hours)
    assert text.count("cron(") == 2
    assert 'cron(45 7 * * ? *)", ScalableTargetAction: {MinCapacity: 2, MaxCapacity: 2}' in text


def test_an_owned_endpoint_gets_the_difference_with_its_live_bounds() -> None:
    scaling = (ScalableTarget(f"endpoint/{ENDPOINT.ref.name}/variant/AllTraffic", "d", 2, 8),)
    owned = replace(ENDPOINT, owned_by="Terraform", scaling=scaling)
    option = samples.option(kind=OptionKind.AUTOSCALING, target=Target("ml.g5.2xlarge", 1, minimum=1, maximum=4))
    found = samples.recommendation(options=(option,), instance_type="ml.g5.2xlarge", instance_count=1)
    text = permission_instructions(owned, found, "change it in Terraform")
    assert text.startswith("change it in Terraform\n")
    assert "- max_capacity = 8" in text
    assert "+ max_capacity = 4" in text


def test_an_endpoint_that_nobody_owns_needs_no_difference() -> None:
    assert permission_instructions(ENDPOINT, samples.recommendation(), "why") == "why"
