"""Whether EC2 offers the hardware of an instance type where an endpoint's subnets are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from types_boto3_ec2 import EC2Client


def sold(ec2: "EC2Client", instance_type: str, subnets: Sequence[str]) -> bool | None:
    """EC2's offerings are a hint, not SageMaker's word; None when the role may not ask."""
    try:
        pages = ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": [instance_type.removeprefix("ml.")]}],
        )
        zones = {o.get("Location") for page in pages for o in page["InstanceTypeOfferings"]}
        if not subnets:
            return bool(zones)
        wanted = {s.get("AvailabilityZone") for s in ec2.describe_subnets(SubnetIds=list(subnets))["Subnets"]}
    except (ClientError, BotoCoreError):
        return None  # not knowing is an answer here: UpdateEndpoint itself refuses what is not sold
    return bool(zones & wanted)
