"""Say how an owner lets a change be made: the tag command, or the property of the stack that owns the endpoint.

A stack-owned endpoint is never changed by a call: its next deployment would undo it. What helps is the difference in
the owner's own source (CloudFormation AWS::SageMaker::EndpointConfig, Terraform aws_sagemaker_endpoint_configuration).
"""

from rightsizer.model.observation import EndpointRef
from rightsizer.model.option import Target

TERRAFORM = ("terraform", "opentofu")


def tag_command(ref: EndpointRef, mode: str = "propose") -> str:
    """The AWS CLI line that lets rightsizer change the endpoint after an approval (`auto`: by itself)."""
    return f"aws sagemaker add-tags --resource-arn {ref.arn} --tags Key=rightsizer:mode,Value={mode}"


def property_diff(owned_by: str, variant: str, old_type: str, old_count: int, target: Target) -> str:
    """The lines to change in the owner's source, as a unified diff; HCL for Terraform, else CloudFormation YAML."""
    hcl = any(tool in owned_by.lower() for tool in TERRAFORM)
    name, kind, count = (
        (f'variant_name = "{variant}"', "instance_type", "initial_instance_count")
        if hcl
        else (f"VariantName: {variant}", "InstanceType", "InitialInstanceCount")
    )
    lines = [f"  {name}"]
    for label, old, new in ((kind, old_type, target.instance_type), (count, old_count, target.instance_count)):
        if old == new:
            lines.append(f"  {_line(hcl, label, old)}")
        else:
            lines += [f"- {_line(hcl, label, old)}", f"+ {_line(hcl, label, new)}"]
    return "\n".join(lines)


def _line(hcl: bool, label: str, value: str | int) -> str:
    if not hcl:
        return f"{label}: {value}"
    return f"{label} = {value}" if isinstance(value, int) else f'{label} = "{value}"'
