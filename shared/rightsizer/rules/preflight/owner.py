"""Which stack or tool owns a thing, by its tags: its next deployment would undo a change from outside."""

from collections.abc import Mapping

STACK_TAGS = ("aws:cloudformation:stack-name", "aws:servicecatalog:provisioningartifactidentifier")
TERRAFORM = ("terraform", "opentofu", "pulumi")


def owned_by(tags: Mapping[str, str]) -> str:
    """The stack or tool that owns the endpoint by its tags; empty when none is found."""
    for key in STACK_TAGS:
        if tags.get(key):
            return f"the stack {tags[key]}"
    for key, value in tags.items():
        if any(tool in f"{key}={value}".lower() for tool in TERRAFORM) and value.lower() not in ("false", "no", "0"):
            return f"{key}={value}"
    return ""
