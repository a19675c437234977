"""Why SageMaker refuses a configuration or an update. Texts as observed in public; see each source.

Sources: API reference of CreateEndpointConfig, UpdateEndpoint and DeploymentConfig; developer guide pages
endpoint-scaling-update, deployment-guardrails-*, serverless-endpoints; texts from the Kubeflow and ACK SageMaker
operators and from public issues. A text that nobody published is marked [assumed]: match on nothing in it.
"""

import re
from collections.abc import Mapping
from typing import Any

from sandbox.refusals import AwsRefusal, invalid
from sandbox.sagemaker.nouns import Endpoint, Params, Record, Variant
from sandbox.strict import on

UPDATE = "UpdateEndpoint"
NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_NVME = re.compile(r"ml\.([a-z]+\d+[a-z]*d[a-z]*|g5|g6|g6e|g7|g7e|p5|p5e|p5en|trn1|trn1n)\.")


def name(kind: str, value: str) -> None:
    """Refuse a name that the API's pattern forbids (no trailing hyphen, no underscore, at most 63 characters)."""
    if not NAME.fullmatch(value) or len(value) > 63:
        raise invalid(
            f"1 validation error detected: Value '{value}' at '{kind}' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
        )


def config(request: Mapping[str, Any], models: Mapping[str, Record]) -> None:
    """Refuse a CreateEndpointConfig request."""
    production, shadow = request["ProductionVariants"], request.get("ShadowProductionVariants") or []
    if len(production) + len(shadow) > 10 and on("CreateEndpointConfig", "variants"):
        raise invalid("At most 10 production and shadow variants are allowed.")  # [assumed] limit: API reference
    if shadow and (len(production) > 1 or len(shadow) > 1) and on("CreateEndpointConfig", "shadows"):
        raise invalid(  # rule: CreateEndpointConfig.ShadowProductionVariants; [assumed] text
            "If you use ShadowProductionVariants, specify one ProductionVariant and one ShadowProductionVariant."
        )
    names = [spec["VariantName"] for spec in [*production, *shadow]]
    if len(set(names)) < len(names) and on("CreateEndpointConfig", "names"):
        raise invalid(f"Variant names must be unique, got {names}")  # [assumed] text
    for spec in [*production, *shadow]:
        _variant(spec, frozenset(models), request)
        _containers(spec, models, bool(shadow))


def _containers(spec: Params, models: Mapping[str, Record], shadowed: bool) -> None:
    """Guide pages shadow-tests-exclusions and serverless-endpoints ("feature exclusions"); [assumed] texts."""
    record = models.get(spec.get("ModelName", ""))
    model = record.request if record else {}
    containers = model.get("Containers") or []
    many = len(containers) > 1 or any(
        one.get("Mode") == "MultiModel" for one in [model.get("PrimaryContainer") or {}, *containers]
    )
    if shadowed and many and on("CreateEndpointConfig", "shadow containers"):
        raise invalid("Shadow variants do not support multi-model and multi-container endpoints.")
    apart = "VpcConfig" in model or model.get("EnableNetworkIsolation")
    if "ServerlessConfig" in spec and (many or apart) and on("CreateEndpointConfig", "serverless containers"):
        raise invalid("Serverless endpoints support neither multi-model, pipeline, VPC nor network isolated models.")


def _variant(spec: Params, models: frozenset[str], request: Mapping[str, Any]) -> None:
    model = spec.get("ModelName")
    if model is None and not request.get("ExecutionRoleArn") and on("CreateEndpointConfig", "role"):
        raise invalid(  # API reference: ExecutionRoleArn is required for inference components; [assumed] text
            "A production variant without a ModelName needs an ExecutionRoleArn in the endpoint configuration."
        )
    if model is not None and model not in models and on("CreateEndpointConfig", "model"):
        raise invalid(f'Could not find model "{model}".')
    _capacity(spec)
    managed = (spec.get("ManagedInstanceScaling") or {}).get("Status") == "ENABLED"
    if model is not None and managed and on("CreateEndpointConfig", "managed"):
        # hashicorp/terraform-provider-aws#45926
        raise invalid("ManagedInstanceScaling is only supported for inference component endpoints.")
    _volume(spec)
    ami = spec.get("InferenceAmiVersion", "")
    kind = spec.get("InstanceType", "")
    wrong = ("-gpu-" in ami and not re.match(r"ml\.(g|p)\d", kind)) or (
        "neuron" in ami and not re.match(r"ml\.(inf|trn)", kind)
    )
    if wrong and on("CreateEndpointConfig", "ami"):
        raise invalid(f"InferenceAmiVersion {ami} is not supported on {kind}.")  # [assumed] text
    if len(spec.get("AcceleratorPartitionLayouts") or []) > 1 and on("CreateEndpointConfig", "layouts"):
        raise invalid("Only one AcceleratorPartitionLayout is supported.")  # API text: exactly 1 entry


def _capacity(spec: Params) -> None:
    given = [key for key in ("InstanceType", "InstancePools", "ServerlessConfig") if spec.get(key)]
    if len(given) != 1 and on("CreateEndpointConfig", "capacity"):
        raise invalid(
            f"Variant {spec['VariantName']}: specify exactly one of InstanceType, InstancePools and ServerlessConfig, "
            f"got {given}"
        )  # [assumed] text
    if "ServerlessConfig" in given:
        if spec.get("InitialInstanceCount") and on("CreateEndpointConfig", "serverless count"):
            raise invalid("InitialInstanceCount cannot be specified with ServerlessConfig.")  # [assumed] text
        memory = spec["ServerlessConfig"]["MemorySizeInMB"]
        if memory % 1024 and on("CreateEndpointConfig", "memory"):
            raise invalid(f"MemorySizeInMB must be a multiple of 1024, got {memory}")  # [assumed] text
        return
    counted = spec.get("InitialInstanceCount") or spec.get("ManagedInstanceScaling")
    if not counted and on("CreateEndpointConfig", "count"):
        raise invalid(f"InitialInstanceCount is required for variant {spec['VariantName']}.")  # [assumed] text
    priorities = [pool["Priority"] for pool in spec.get("InstancePools") or []]
    if len(set(priorities)) < len(priorities) and on("CreateEndpointConfig", "priorities"):
        raise invalid("InstancePools priorities must be unique.")  # [assumed] text


def _volume(spec: Params) -> None:
    types = [spec.get("InstanceType"), *(pool["InstanceType"] for pool in spec.get("InstancePools") or [])]
    nvme = [kind for kind in types if kind and _NVME.match(kind)]
    if spec.get("VolumeSizeInGB") and nvme and on("CreateEndpointConfig", "volume"):
        # sagemaker-python-sdk volume_size_supported: the service refuses it on types with local storage
        raise invalid(f"VolumeSizeInGB parameter is not allowed for {nvme[0]}")


def update(endpoint: Endpoint, old: Mapping[str, Any], new: Mapping[str, Any], new_name: str) -> None:
    """Refuse an UpdateEndpoint from the configuration `old` to `new`."""
    if endpoint.config_name == new_name and on(UPDATE, "same"):
        raise invalid(f'Cannot update endpoint with the currently in use endpoint configuration "{new_name}"')
    before_async, after_async = bool(old.get("AsyncInferenceConfig")), bool(new.get("AsyncInferenceConfig"))
    if before_async and not after_async and on(UPDATE, "async"):
        raise invalid(  # aws/sagemaker-python-sdk#3124
            f"The AsyncInferenceConfig parameter cannot be removed from this endpoint {endpoint.name}. "
            "To change the endpoint type, create a new endpoint."
        )
    if after_async and not before_async and on(UPDATE, "async"):
        raise invalid(
            f"The AsyncInferenceConfig parameter cannot be added to this endpoint {endpoint.name}."
        )  # [assumed]
    before = {spec["VariantName"]: spec for spec in old["ProductionVariants"]}
    after = {spec["VariantName"]: spec for spec in new["ProductionVariants"]}
    serverless = [any("ServerlessConfig" in spec for spec in specs.values()) for specs in (before, after)]
    if serverless == [False, True] and on(UPDATE, "serverless"):
        # developer guide, serverless-endpoints-update: "you receive a ValidationError message"; [assumed] text
        raise invalid("An instance-based endpoint cannot be converted to a serverless endpoint.")
    for variant, spec in after.items():
        layouts = before.get(variant, spec).get("AcceleratorPartitionLayouts")
        if layouts != spec.get("AcceleratorPartitionLayouts") and on(UPDATE, "layouts"):
            raise invalid("The AcceleratorPartitionLayouts of an endpoint cannot be changed.")  # [assumed] text


def scalable_targets(variants: Mapping[str, Variant], new: Mapping[str, Any], registered: frozenset[str]) -> None:
    """Refuse a type change, or the removal, of a variant that is a registered scalable target.

    Developer guide, endpoint-scaling-update: "the update fails". The text is [assumed].
    """
    after = {spec["VariantName"]: spec for spec in new["ProductionVariants"]}
    touched = [
        name
        for name, variant in variants.items()
        if name in registered
        and (
            name not in after
            or (after[name].get("InstanceType"), after[name].get("InstancePools"))
            != (variant.spec.get("InstanceType"), variant.spec.get("InstancePools"))
        )
    ]
    if touched and on(UPDATE, "scalable"):
        listed = ", ".join(f'"{name}"' for name in touched)
        raise invalid(
            f"The variant(s) [{listed}] must be deregistered as scalable targets with AWS Auto Scaling before they "
            "can be removed or have their instance type updated."
        )


def deployment(request: Mapping[str, Any], variants: Mapping[str, Variant], new: Mapping[str, Any]) -> None:
    """Refuse a DeploymentConfig (API reference of DeploymentConfig; guide pages deployment-guardrails-*)."""
    blue_green, rolling = request.get("BlueGreenUpdatePolicy"), request.get("RollingUpdatePolicy")
    if bool(blue_green) == bool(rolling) and on(UPDATE, "policy"):
        raise invalid("Specify exactly one of BlueGreenUpdatePolicy and RollingUpdatePolicy.")  # [assumed] text
    names = {spec["VariantName"] for spec in new["ProductionVariants"]}
    if names != set(variants) and on(UPDATE, "guarded variants"):
        raise invalid(  # guide: "the same variant names"; [assumed] text
            f"DeploymentConfig requires the same variants in both configurations: {sorted(variants)}, {sorted(names)}"
        )
    if blue_green:
        _blue_green(blue_green, variants)
    if rolling:
        _rolling(rolling, variants, new)


def _blue_green(policy: Mapping[str, Any], variants: Mapping[str, Variant]) -> None:
    routing = policy["TrafficRoutingConfiguration"]
    kind, wait = routing["Type"], routing["WaitIntervalInSeconds"]
    canary, linear = routing.get("CanarySize"), routing.get("LinearStepSize")
    odd = (kind == "CANARY") != bool(canary) or (kind == "LINEAR") != bool(linear)
    if odd and on(UPDATE, "routing"):
        raise invalid(f"{kind} traffic routing does not go with CanarySize {canary} and LinearStepSize {linear}.")
    steps = 1
    for variant in variants.values():
        if canary:
            _share("CanarySize", canary, variant, 50)
        if linear:
            step = _share("LinearStepSize", linear, variant, 50, at_least=10)
            steps = max(steps, -(-variant.count // step))
    waits = wait * (steps if linear else 1) + policy.get("TerminationWaitInSeconds", 0)
    timeout = policy.get("MaximumExecutionTimeoutInSeconds")
    _time_out(timeout, waits)


def _rolling(policy: Mapping[str, Any], variants: Mapping[str, Variant], new: Mapping[str, Any]) -> None:
    serverless = any("ServerlessConfig" in spec for spec in new["ProductionVariants"])
    if (len(variants) > 1 or serverless) and on(UPDATE, "rolling"):
        # deployment-guardrails-exclusions; [assumed] text
        raise invalid("Rolling deployments do not support serverless or multi-variant endpoints.")
    for variant in variants.values():
        batch = _share("MaximumBatchSize", policy["MaximumBatchSize"], variant, 50, at_least=5)
        back = policy.get("RollbackMaximumBatchSize")
        if back and size(back, variant.count) > variant.count and on(UPDATE, "roll-back batch"):
            # RollingUpdatePolicy: 100 percent where it is absent, in batches below that (CapacitySize); [assumed] text
            raise invalid(f"RollbackMaximumBatchSize must be at most the capacity ({variant.count} instances).")
        waits = policy["WaitIntervalInSeconds"] * -(-variant.count // batch)
        _time_out(policy.get("MaximumExecutionTimeoutInSeconds"), waits)


def _time_out(timeout: int | None, waits: int) -> None:
    if timeout is not None and timeout <= waits and on(UPDATE, "time-out"):
        raise invalid(f"MaximumExecutionTimeoutInSeconds {timeout} must exceed all waits together ({waits} s).")


def size(capacity: Mapping[str, Any], count: int) -> int:
    """Instances of a CapacitySize; a percentage is rounded up to one instance at least."""
    value = int(capacity["Value"])
    return value if capacity["Type"] == "INSTANCE_COUNT" else max(1, -(-count * value // 100))


def _share(field: str, capacity: Mapping[str, Any], variant: Variant, most: int, at_least: int = 0) -> int:
    """The instances of `capacity`, refused when outside `at_least` to `most` percent of the variant's instances.

    Limits from the API reference. That one instance can have no canary follows from them; its text is [assumed].
    """
    instances = size(capacity, variant.count)
    percent = capacity["Value"] if capacity["Type"] == "CAPACITY_PERCENT" else 100 * instances / max(1, variant.count)
    odd = percent > most or percent < at_least or instances * 100 > most * variant.count
    if odd and on(UPDATE, "share"):
        raise invalid(
            f"{field} of {instances} instance(s) must be between {at_least} and {most} percent of the variant's total "
            f"instance count ({variant.count})."
        )
    return instances


def quota(kind: str, limit: int, used: int, delta: int, operation: str = UPDATE) -> None:
    """Refuse instances above the quota; the text is public in many issues."""
    if used + delta > limit and on(operation, "quota"):
        raise AwsRefusal(
            "ResourceLimitExceeded",
            f"The account-level service limit '{kind} for endpoint usage' is {limit} Instances, with current "
            f"utilization of {used} Instances and a request delta of {delta} Instances. Please use AWS Service Quotas "
            "to request an increase for this quota. If AWS Service Quotas is not available, contact AWS support to "
            "request an increase for this quota.",
        )
