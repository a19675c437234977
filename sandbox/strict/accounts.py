"""What an account says about itself: tags, roles, stacks, secrets, and who asks."""

import re
from collections.abc import Mapping

from sandbox.strict import Check, Key, Params, moto, shape, state
from sandbox.strict.words import longer, outside, together

TAGS, IAM, STACKS, SECRETS = "resourcegroupstaggingapi", "iam", "cloudformation", "secretsmanager"
PARAMETERS, TOO_LONG = "ssm", "ValidationException"
PARAMETER = "InvalidParameterException"
_ENTITY = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:(user|group|role)/.+")


def _no_action(p: Params) -> bool:
    return any(not re.fullmatch(r"[a-z0-9-]+:[A-Za-z0-9*]+", action) for action in p.get("ActionNames") or [])


def _too_long(p: Params) -> bool:
    return len(p.get("Value") or "") > (4096 if p.get("Tier", "Standard") == "Standard" else 8192)


CHECKS: Mapping[Key, tuple[Check, ...]] = {
    (TAGS, "GetResources"): (
        shape(TAGS, "more than 100 ARNs, 50 tag filters or 20 values of one"),
        Check(
            "types",
            "ResourceARNList with ResourceTypeFilters",
            PARAMETER,
            together("ResourceARNList", "ResourceTypeFilters"),
        ),
        Check("filters", "ResourceARNList with TagFilters", PARAMETER, together("ResourceARNList", "TagFilters")),
        Check(
            "pages",
            "ResourceARNList with ResourcesPerPage, TagsPerPage or PaginationToken, be it empty",
            PARAMETER,
            together("ResourceARNList", "ResourcesPerPage", "TagsPerPage", "PaginationToken"),
        ),
        Check("page", "pages of other than 1 to 100 resources", PARAMETER, outside("ResourcesPerPage", 1, 100)),
        Check("tags", "pages of other than 100 to 500 tags", PARAMETER, outside("TagsPerPage", 100, 500)),
        Check("many types", "more than 100 types", PARAMETER, longer("ResourceTypeFilters", 100)),
        Check(
            "compliant",
            "ExcludeCompliantResources without IncludeComplianceDetails",
            PARAMETER,
            lambda p: p.get("ExcludeCompliantResources") and not p.get("IncludeComplianceDetails"),
        ),
        state("token", "a token that it did not give", "PaginationTokenExpiredException"),
    ),
    (IAM, "SimulatePrincipalPolicy"): (
        shape(IAM, "an ARN of fewer than 20 characters, a type of context outside its enum"),
        Check(
            "source",
            "a source that is no user, group or role (a session of a role is none)",
            "InvalidInput",
            lambda p: not _ENTITY.fullmatch(p["PolicySourceArn"]),
        ),
        Check("action", "an action without its service", "InvalidInput", _no_action),
        Check(
            "caller",
            "a caller that is no user, group or role",
            "InvalidInput",
            lambda p: "CallerArn" in p and not _ENTITY.fullmatch(p["CallerArn"]),
        ),
        Check(
            "resource policy",
            "a resource policy for a role",
            "InvalidInput",
            lambda p: "ResourcePolicy" in p and ":role/" in p["PolicySourceArn"],
        ),
    ),
    ("sts", "GetCallerIdentity"): (),
    (STACKS, "DescribeStacks"): (moto("unknown", "a stack that does not exist", "ValidationError"),),
    (STACKS, "DescribeStackResource"): (moto("unknown", "a stack that does not exist", "ValidationError"),),
    (STACKS, "ListStackResources"): (
        shape(STACKS, "a token of more than 1,024 characters"),
        moto("unknown", "a stack that does not exist", "ValidationError"),
    ),
    (SECRETS, "GetSecretValue"): (
        shape(SECRETS, "an empty id, a version id of fewer than 32 characters"),
        moto("unknown", "a secret that does not exist", "ResourceNotFoundException"),
        moto("deleted", "a secret that is to be deleted", "InvalidRequestException"),
    ),
    (PARAMETERS, "GetParameter"): (
        shape(PARAMETERS, "an empty name"),
        moto("unknown", "a parameter that does not exist", "ParameterNotFound"),
    ),
    (PARAMETERS, "PutParameter"): (
        shape(PARAMETERS, "an empty name, a description of more than 1,024 characters"),
        Check(
            "size",
            "a value of more than 4,096 characters in the standard tier, or 8,192 in another",
            TOO_LONG,
            _too_long,
        ),
        moto("exists", "a name that exists, without Overwrite", "ParameterAlreadyExists"),
    ),
}
