"""Clone an endpoint configuration with another size: every field carried, or the clone refused.

An EndpointConfig is immutable, so a resize is a complete new one; a dropped field silently changes the customer's
endpoint. Fields: CreateEndpointConfig and DescribeEndpointConfig of the SageMaker API.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rightsizer.model.change import VariantCount
from rightsizer.model.hardware import Catalogue, InstanceType
from rightsizer.model.option import Target
from rightsizer.model.reason import Code, Reason
from rightsizer.model.sight import ConfigSight

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
NAME_LIMIT = 63
CHANGE_TAG = "rightsizer:change"
"""The tag of every configuration that a change makes or returns to; the role may deploy no other."""


@dataclass(frozen=True, slots=True)
class Clone:
    """The input of CreateEndpointConfig."""

    name: str
    body: Mapping[str, Any]
    content_hash: str
    notes: tuple[str, ...] = ()


def clone(
    source: ConfigSight,
    wanted: Sequence[VariantCount],
    target: Target,
    catalogue: Catalogue,
    tags: Mapping[str, str],
    capture_stopped: bool = False,
) -> Clone | tuple[Reason, ...]:
    """The new configuration, or every reason why it cannot be cloned safely.

    `wanted` says what each variant shall run, with the live weights; pools and routing of `target` go to the variants
    whose size changes. `tags` are added to the source's own.
    """
    refusals = _refusals(source, wanted, target, catalogue)
    if refusals:
        return refusals
    notes: list[str] = []
    by_name = {w.name: w for w in wanted}
    body = {k: v for k, v in source.body.items() if k in CARRIED and v is not None}
    body["ProductionVariants"] = [
        _variant(v, by_name[v["VariantName"]], target, catalogue, notes) for v in source.body["ProductionVariants"]
    ]
    body["MetricsConfig"] = _metrics(source.body.get("MetricsConfig") or {}, notes)
    if capture_stopped and body.get("DataCaptureConfig", {}).get("EnableCapture"):
        body["DataCaptureConfig"] = {**body["DataCaptureConfig"], "EnableCapture": False}
        notes.append("data capture was stopped by hand and stays stopped")
    digest = content_hash(body)
    name = _name(source.name, digest)
    kept = {k: v for k, v in source.tags.items() if not k.startswith("aws:")}
    all_tags = [{"Key": k, "Value": v} for k, v in sorted({**kept, **tags}.items())]
    return Clone(name, {"EndpointConfigName": name, **body, "Tags": all_tags}, digest, tuple(notes))


def content_hash(body: Mapping[str, Any]) -> str:
    """Hash of everything that a configuration says, without its name, tags and output-only fields."""
    content = {k: v for k, v in body.items() if k in CARRIED and v is not None}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _refusals(
    source: ConfigSight, wanted: Sequence[VariantCount], target: Target, catalogue: Catalogue
) -> tuple[Reason, ...]:
    found: list[Reason] = []
    unknown = [*source.unknown_fields, *(k for k, v in source.body.items() if _unknown(k, v))]
    variants = source.body.get("ProductionVariants") or []
    for variant in variants:
        name = variant.get("VariantName", "?")
        for key, value in variant.items():
            if key in REFUSED_OF_VARIANT and value:
                found.append(
                    Reason(
                        Code.OTHER_KIND, f"variant {name} cannot be cloned to another size: {REFUSED_OF_VARIANT[key]}"
                    )
                )
            elif key not in CARRIED_OF_VARIANT | DEAD_OF_VARIANT and value and key not in REFUSED_OF_VARIANT:
                unknown.append(f"ProductionVariants.{name}.{key}")
    if unknown:
        fields = ", ".join(sorted(set(unknown)))
        found.append(
            Reason(
                Code.UNKNOWN_FIELD, f"configuration {source.name} has fields that this program does not know: {fields}"
            )
        )
    if {v.get("VariantName") for v in variants} != {w.name for w in wanted}:
        found.append(
            Reason(Code.CHANGED_SINCE, f"configuration {source.name} has other variants than the change was made for")
        )
        return tuple(found)
    return (*found, *_permissions(source), *_hardware(source, wanted, target, catalogue))


def _permissions(source: ConfigSight) -> tuple[Reason, ...]:
    """What CreateEndpointConfig needs beyond itself, and the role does not hold (SageMaker API permissions)."""
    found: list[Reason] = []
    role, key = source.body.get("ExecutionRoleArn"), str(source.body.get("KmsKeyId") or "")
    if role:
        text = f"configuration {source.name} names the execution role {role}; creating another one like it needs "
        text += "iam:PassRole on that role, which rightsizer does not hold: its owner has to create it"
        found.append(Reason(Code.PERMISSION_MISSING, text))
    own, other = _account(str(source.body.get("EndpointConfigArn", ""))), _account(key)
    if own and other and own != other:
        text = f"configuration {source.name} encrypts with a KMS key of account {other}; creating another one like it "
        text += f"needs kms:CreateGrant there, and rightsizer holds it for keys of account {own} only"
        found.append(Reason(Code.PERMISSION_MISSING, text))
    return tuple(found)


def _account(arn: str) -> str:
    parts = arn.split(":")
    return parts[4] if arn.startswith("arn:") and len(parts) > 5 else ""


def _unknown(key: str, value: Any) -> bool:
    return key not in CARRIED | OUTPUT_ONLY and value not in (None, [], {})


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
            if new is not None and new.local_nvme and source.body.get("KmsKeyId"):
                found.append(
                    Reason(
                        Code.KMS_ON_NVME,
                        f"the configuration encrypts its volume with a KMS key, and {new_name} has local NVMe storage "
                        "that the key does not encrypt",
                    )
                )
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


def _variant(
    source: Mapping[str, Any], want: VariantCount, target: Target, catalogue: Catalogue, notes: list[str]
) -> dict[str, Any]:
    body = {k: v for k, v in source.items() if k in CARRIED_OF_VARIANT and v is not None}
    resized = want.instance_type != source.get("InstanceType") or want.count != source.get("InitialInstanceCount")
    if "InitialInstanceCount" in body or not source.get("ManagedInstanceScaling"):
        body["InitialInstanceCount"] = want.count
    body["InitialVariantWeight"] = want.weight
    types: tuple[str, ...] = (want.instance_type,)
    if target.pools and resized:
        types = target.pools
        body.pop("InstanceType", None)
        body["InstancePools"] = [{"InstanceType": t, "Priority": i} for i, t in enumerate(target.pools, start=1)]
    elif "InstanceType" in body:
        body["InstanceType"] = want.instance_type
    if target.routing and (resized or body.get("RoutingConfig", {}).get("RoutingStrategy") != target.routing):
        body["RoutingConfig"] = {**body.get("RoutingConfig", {}), "RoutingStrategy": target.routing}
    hardware = [catalogue.find(t) for t in types]
    if "VolumeSizeInGB" in body and any(h is not None and h.local_nvme for h in hardware):
        notes.append(
            f"VolumeSizeInGB {body.pop('VolumeSizeInGB')} of {want.name} is dropped: {types[0]} has local NVMe"
        )
    return body


def _metrics(source: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """New configurations switch detailed observability on by default (since 2026-06-17); a clone must not."""
    if "EnableDetailedObservability" not in source:
        notes.append("detailed observability stays off, which AWS would switch on for a new configuration")
    return {"EnableEnhancedMetrics": False, "EnableDetailedObservability": False, **source}


def _name(source: str, digest: str) -> str:
    """Base and content hash, at most 63 characters: the same content has the same name, so a retry finds its own."""
    suffix = f"-rs-{digest[:10]}"
    base = re.sub(r"-rs-[0-9a-f]{10}$", "", source)[: NAME_LIMIT - len(suffix)].rstrip("-")
    return f"{base}{suffix}"
