"""Why a configuration is not cloned: fields that nobody here knows, hardware that differs, permissions not held."""

from collections.abc import Iterable, Sequence
from typing import Any

from rightsizer.domain.hardware import Catalogue, InstanceType
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import Target
from rightsizer.domain.plan import VariantCount
from rightsizer.domain.reason import Code, Reason

OUTPUT_ONLY = frozenset({"EndpointConfigArn", "CreationTime", "ResponseMetadata", "EndpointConfigName"})
CARRIED = frozenset(
    {
        "ProductionVariants",
        "DataCaptureConfig",
        "KmsKeyId",
        "AsyncInferenceConfig",
        "ExplainerConfig",
        "ShadowProductionVariants",
        "ExecutionRoleArn",
        "VpcConfig",
        "EnableNetworkIsolation",
        "MetricsConfig",
    }
)
CARRIED_OF_VARIANT = frozenset(
    {
        "VariantName",
        "ModelName",
        "InitialInstanceCount",
        "InstanceType",
        "InstancePools",
        "VariantInstanceProvisionTimeoutInSeconds",
        "InitialVariantWeight",
        "CoreDumpConfig",
        "VolumeSizeInGB",
        "ModelDataDownloadTimeoutInSeconds",
        "ContainerStartupHealthCheckTimeoutInSeconds",
        "EnableSSMAccess",
        "ManagedInstanceScaling",
        "RoutingConfig",
        "InferenceAmiVersion",
    }
)
DEAD_OF_VARIANT = frozenset({"AcceleratorType"})
"""Elastic Inference is gone; AWS still returns the field."""
REFUSED_OF_VARIANT = {
    "ServerlessConfig": "it is serverless",
    "CapacityReservationConfig": "its instance type is tied to a capacity reservation",
    "AcceleratorPartitionLayouts": "its GPUs are partitioned (MIG), and the layout of a running endpoint cannot change",
}


def refusals(
    source: ConfigSight, wanted: Sequence[VariantCount], target: Target, catalogue: Catalogue
) -> tuple[Reason, ...]:
    """Every reason why `source` must not be cloned for `wanted`; empty when it may. Total."""
    found: list[Reason] = []
    unknown = [*source.unknown_fields, *(k for k, v in source.body.items() if _unknown(k, v))]
    variants = source.body.get("ProductionVariants") or []
    for variant in variants:
        name = variant.get("VariantName", "?")
        for key, value in variant.items():
            if key in REFUSED_OF_VARIANT and not _empty(value):
                found.append(
                    Reason(
                        Code.OTHER_KIND, f"variant {name} cannot be cloned to another size: {REFUSED_OF_VARIANT[key]}"
                    )
                )
            elif key not in CARRIED_OF_VARIANT | DEAD_OF_VARIANT | set(REFUSED_OF_VARIANT) and not _empty(value):
                unknown.append(f"ProductionVariants.{name}.{key}")
    if unknown:
        found.append(unknown_fields(source.name, unknown))
    if {v.get("VariantName") for v in variants} != {w.name for w in wanted}:
        found.append(
            Reason(Code.CHANGED_SINCE, f"configuration {source.name} has other variants than the change was made for")
        )
        return tuple(found)
    return (*found, *_keyed(source), *_scaled(source, target), *_hardware(source, wanted, target, catalogue))


def unknown_fields(config: str, fields: Iterable[str]) -> Reason:
    """The refusal of a configuration with fields that a clone would drop."""
    listed = ", ".join(sorted(set(fields)))
    return Reason(Code.UNKNOWN_FIELD, f"configuration {config} has fields that this program does not know: {listed}")


def foreign_key(config: str, key: str, own: str) -> tuple[Reason, ...]:
    """Why a configuration with a KMS key of another account than `own` is not cloned.

    CreateEndpointConfig needs kms:CreateGrant, which the role does not hold there (SageMaker API permissions). Passing
    an execution role is a question to IAM, which preflight asks.
    """
    other = _account(key)
    if not own or not other or own == other:
        return ()
    text = f"configuration {config} encrypts with a KMS key of account {other}; creating another one like it "
    text += f"needs kms:CreateGrant there, and rightsizer holds it for keys of account {own} only"
    return (Reason(Code.PERMISSION_MISSING, text),)


def key_on_nvme(key: str, hardware: InstanceType | None) -> tuple[Reason, ...]:
    """Why a configuration with a KMS key is not cloned to hardware with local NVMe, which the key does not encrypt."""
    if hardware is None or not key or not hardware.local_nvme:
        return ()
    text = f"the configuration encrypts its volume with a KMS key, and {hardware.name} has local NVMe storage "
    return (Reason(Code.KMS_ON_NVME, text + "that the key does not encrypt"),)


def _scaled(source: ConfigSight, target: Target) -> tuple[Reason, ...]:
    """Why a scale-in policy has nothing to belong to."""
    if target.scale_in is None:
        return ()
    name = target.scale_in.variant
    mine = (v for v in source.body["ProductionVariants"] if v.get("VariantName") == name)
    if any((v.get("ManagedInstanceScaling") or {}).get("Status") == "ENABLED" for v in mine):
        return ()
    text = f"variant {name} of configuration {source.name} has no managed instance scaling that is enabled, "
    return (Reason(Code.NOT_APPLICABLE, text + "and a scale-in policy is a part of it"),)


def _keyed(source: ConfigSight) -> tuple[Reason, ...]:
    own = _account(str(source.body.get("EndpointConfigArn", "")))
    return foreign_key(source.name, str(source.body.get("KmsKeyId") or ""), own)


def _account(arn: str) -> str:
    parts = arn.split(":")
    return parts[4] if arn.startswith("arn:") and len(parts) > 5 else ""


def _unknown(key: str, value: Any) -> bool:
    return key not in CARRIED | OUTPUT_ONLY and not _empty(value)


def _empty(value: Any) -> bool:
    """Whether nothing is said. False and 0 say something: what AWS does without the field may be another thing."""
    return value is None or value in ([], {}, "")


def _hardware(
    source: ConfigSight, wanted: Sequence[VariantCount], target: Target, catalogue: Catalogue
) -> tuple[Reason, ...]:
    found: list[Reason] = []
    sources = {v["VariantName"]: v for v in source.body["ProductionVariants"]}
    for want in wanted:
        old_name = sources[want.name].get("InstanceType", "")
        for new_name in target.pools or (want.instance_type,):
            if new_name == old_name or not new_name:
                continue
            new, old = catalogue.find(new_name), catalogue.find(old_name) if old_name else None
            if new is None:
                found.append(
                    Reason(Code.NO_SPECIFICATION, f"{new_name} is not in the catalogue, so it is never a target")
                )
            elif old is not None:
                found.extend(_between(old, new))
            found.extend(key_on_nvme(str(source.body.get("KmsKeyId") or ""), new))
    return tuple(found)


def _between(old: InstanceType, new: InstanceType) -> list[Reason]:
    found = []
    if old.cpu_arch != new.cpu_arch:
        found.append(
            Reason(
                Code.ANOTHER_ARCHITECTURE,
                f"{new.name} is {new.cpu_arch} and {old.name} is {old.cpu_arch}; the image may not run",
            )
        )
    old_vendor = old.accelerator.vendor if old.accelerator else "none"
    new_vendor = new.accelerator.vendor if new.accelerator else "none"
    if old_vendor != new_vendor:
        found.append(
            Reason(
                Code.ANOTHER_VENDOR,
                f"{new.name} has accelerators of {new_vendor}, {old.name} of {old_vendor}; the model must be rebuilt",
            )
        )
    return found
