"""EC2 Auto Scaling and EC2. Codes of EC2: its guide, "Error codes for the Amazon EC2 API"."""

from collections.abc import Mapping

from sandbox.strict import Check, Key, Params, moto, shape, state
from sandbox.strict.mixed_policy import MIXED_POLICY
from sandbox.strict.words import Broken, longer, not_exactly_one, outside, together

GROUPS, EC2 = "autoscaling", "ec2"
ERROR, VALUE, COMBINATION = "ValidationError", "InvalidParameterValue", "InvalidParameterCombination"
_LAUNCH = ("LaunchTemplate", "MixedInstancesPolicy")


def _filters(*known: str) -> Broken:
    """A filter has a name that is not known; a name that ends in a colon stands for all that begin so."""

    def broken(p: Params) -> bool:
        names = [row["Name"] for row in p.get("Filters") or []]
        prefixes = tuple(name for name in known if name.endswith(":"))
        return any(name not in known and not (prefixes and name.startswith(prefixes)) for name in names)

    return broken


def _too_many_groups(p: Params) -> bool:
    return len(p.get("AutoScalingGroupNames") or ()) > (p.get("MaxRecords") or 50)


def _bounds_turned(p: Params) -> bool:
    return bool(p.get("MinSize", 0) > p.get("MaxSize", float("inf")))


def _malformed(p: Params) -> bool:
    return any(not one.startswith("i-") for one in p.get("InstanceIds") or [])


CHECKS: Mapping[Key, tuple[Check, ...]] = {
    (GROUPS, "DescribeAutoScalingGroups"): (
        shape(GROUPS, "an empty name"),
        Check("names", "more than 50 names without as large a page", ERROR, _too_many_groups),
        Check("page", "pages of more than 100", ERROR, outside("MaxRecords", 1, 100)),
        Check("filter", "filters by anything but tags", ERROR, _filters("tag-key", "tag-value", "tag:")),
    ),
    (GROUPS, "DescribeAutoScalingInstances"): (
        shape(GROUPS, "an instance id of more than 19 characters"),
        Check("ids", "more than 50 instance ids", ERROR, longer("InstanceIds", 50)),
        Check("page", "pages of more than 50", ERROR, outside("MaxRecords", 1, 50)),
    ),
    (GROUPS, "DescribeLifecycleHooks"): (
        shape(GROUPS, "more than 50 hook names"),
        state("group", "a group that does not exist", ERROR),
    ),
    (GROUPS, "DetachInstances"): (
        shape(GROUPS, "an empty group name"),
        Check("ids", "more than 20 instances", ERROR, longer("InstanceIds", 20)),
        state("group", "a group that does not exist", ERROR),
        state("member", "an instance that is no member of the group", ERROR),
    ),
    (GROUPS, "TerminateInstanceInAutoScalingGroup"): (
        shape(GROUPS, "an instance id of more than 19 characters"),
        Check(
            "one", "neither or both of InstanceId and InstanceIds", ERROR, not_exactly_one("InstanceId", "InstanceIds")
        ),
        Check(
            "group name",
            "InstanceIds without the group",
            ERROR,
            lambda p: "InstanceIds" in p and "AutoScalingGroupName" not in p,
        ),
        state("member", "an instance that no group manages", ERROR),
    ),
    (GROUPS, "UpdateAutoScalingGroup"): (
        shape(GROUPS, "an empty group name"),
        Check(
            "launch",
            "a launch configuration with a template or a mixed policy",
            ERROR,
            together("LaunchConfigurationName", *_LAUNCH),
        ),
        Check("launch template", "a launch template with a mixed policy", ERROR, together(*_LAUNCH)),
        Check("turned", "a maximum below the minimum", ERROR, _bounds_turned),
        *MIXED_POLICY,
        state("group", "a group that does not exist", ERROR),
        state("desired", "a desired capacity outside the bounds", ERROR),
    ),
    (EC2, "DescribeInstances"): (
        Check("page", "pages with instance ids", COMBINATION, together("InstanceIds", "MaxResults")),
        Check("size", "pages of other than 5 to 1,000", VALUE, outside("MaxResults", 5, 1000)),
        Check("malformed", "a malformed instance id", "InvalidInstanceID.Malformed", _malformed),
        state("unknown", "an instance that does not exist", "InvalidInstanceID.NotFound"),
    ),
    (EC2, "DescribeLaunchTemplateVersions"): (
        shape(EC2, "a template name of fewer than 3 characters"),
        Check(
            "both", "the id and the name of a template", COMBINATION, together("LaunchTemplateId", "LaunchTemplateName")
        ),
        Check(
            "numbers",
            "version numbers without a template",
            "MissingParameter",
            lambda p: (
                "LaunchTemplateId" not in p
                and "LaunchTemplateName" not in p
                and any(str(v).isdigit() for v in p.get("Versions") or [])
            ),
        ),
        Check("size", "pages of other than 1 to 200", VALUE, outside("MaxResults", 1, 200)),
    ),
    (EC2, "DescribeInstanceTypeOfferings"): (
        shape(EC2, "another location type, pages of other than 5 to 1,000"),
        Check(
            "filter",
            "filters by anything but `location` and `instance-type`, in lower case",
            VALUE,
            _filters("location", "instance-type"),
        ),
    ),
    (EC2, "DescribeSubnets"): (
        shape(EC2, "pages of other than 5 to 1,000"),
        moto("unknown", "a subnet that does not exist", "InvalidSubnetID.NotFound"),
    ),
    (EC2, "DescribeSpotPriceHistory"): (
        Check("zone", "a zone's name and its id", COMBINATION, together("AvailabilityZone", "AvailabilityZoneId")),
        Check(
            "turned",
            "an end before the start",
            VALUE,
            lambda p: "StartTime" in p and "EndTime" in p and p["EndTime"] < p["StartTime"],
        ),
    ),
    (EC2, "GetSpotPlacementScores"): (
        shape(EC2, "more than 10 Regions or 1,000 types, a capacity of 0, pages of other than 10 to 1,000"),
        Check(
            "types",
            "neither or both of instance types and requirements",
            COMBINATION,
            not_exactly_one("InstanceTypes", "InstanceRequirementsWithMetadata"),
        ),
        state(
            "limit",
            "too many new configurations in 24 hours",
            "MaxConfigLimitExceeded",
            source="EC2 guide, spot-placement-score",
        ),
    ),
}
