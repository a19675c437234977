"""Clone an endpoint configuration with another size: every field carried, or the clone refused.

An EndpointConfig is immutable, so a resize is a complete new one; a dropped field silently changes the customer's
endpoint. Fields: CreateEndpointConfig and DescribeEndpointConfig of the SageMaker API. It is refused for fields that
nobody here knows, for hardware that differs, and for permissions that are not held.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rightsizer.domain.hardware import Catalogue, InstanceType
from rightsizer.domain.live_state import (
    CARRIED,
    CARRIED_OF_VARIANT,
    REFUSED_OF_VARIANT,
    ConfigSight,
    is_unset,
    uncarried_fields,
)
from rightsizer.domain.option import Target
from rightsizer.domain.plan import VariantCount
from rightsizer.domain.reason import Code, Reason

__all__ = [
    "CARRIED",
    "CHANGE_TAG",
    "ClonedConfig",
    "Wanted",
    "clone_config",
    "content_hash",
    "key_refusals",
    "nvme_key_refusals",
    "rename_clone",
    "unknown_fields",
    "written_counts",
]

NAME_LIMIT = 63
CHANGE_TAG = "rightsizer:change"
"""The tag of every configuration that a change makes or returns to; the role may deploy no other."""
NOTHING_ELSE = Target("", 0)
"""A target without pools, routing and scale-in policy."""


def content_hash(body: Mapping[str, Any]) -> str:
    """Hash of everything that a configuration says, without its name, tags and output-only fields.

    Metrics that are switched off are as good as not named: where AWS refuses the field it is left out.
    """
    content = {k: v for k, v in body.items() if k in CARRIED and v is not None}
    if not any((content.get("MetricsConfig") or {}).values()):
        content.pop("MetricsConfig", None)
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ClonedConfig:
    """The input of CreateEndpointConfig."""

    name: str
    body: Mapping[str, Any]
    content_hash: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Fleet that a clone shall run, with what its changed variant gets beside."""

    fleet: Sequence[VariantCount]
    """Type, count and live weight of each variant."""
    target: Target = NOTHING_ELSE
    """The pools and the routing of `variant`, and a scale-in policy, which names its own variant."""
    variant: str = ""
    """The variant that is changed; every other one keeps its pools and its routing."""

    def pools_of(self, name: str) -> tuple[str, ...]:
        """The instance pools that a variant gets; () where it gets none."""
        return self.target.pools if name == self.variant else ()


def clone_config(
    source: ConfigSight,
    wanted: Wanted,
    catalogue: Catalogue,
    tags: Mapping[str, str],
    capture_stopped: bool = False,
) -> ClonedConfig | tuple[Reason, ...]:
    """The new configuration, or every reason why it cannot be cloned safely. `tags` are added to the source's own."""
    refused = clone_refusals(source, wanted, catalogue)
    if refused:
        return refused
    notes: list[str] = []
    by_name = {w.name: w for w in wanted.fleet}
    body = {k: v for k, v in source.body.items() if k in CARRIED and v is not None}
    body["ProductionVariants"] = [
        _variant(v, by_name[v["VariantName"]], wanted, catalogue, notes) for v in source.body["ProductionVariants"]
    ]
    body["MetricsConfig"] = _metrics(source.body.get("MetricsConfig") or {}, notes)
    if capture_stopped and body.get("DataCaptureConfig", {}).get("EnableCapture"):
        body["DataCaptureConfig"] = {**body["DataCaptureConfig"], "EnableCapture": False}
        notes.append("data capture was stopped by hand and stays stopped")
    digest = content_hash(body)
    name = _name(source.name, digest)
    kept = {k: v for k, v in source.tags.items() if not k.startswith("aws:")}
    all_tags = [{"Key": k, "Value": v} for k, v in sorted({**kept, **tags}.items())]
    return ClonedConfig(name, {"EndpointConfigName": name, **body, "Tags": all_tags}, digest, tuple(notes))


def written_counts(source: ConfigSight) -> tuple[VariantCount, ...]:
    """Variants and counts that the configuration itself names, for a clone that changes neither."""
    return tuple(
        VariantCount(
            v["VariantName"],
            v.get("InstanceType", ""),
            v.get("InitialInstanceCount", 0),
            float(v.get("InitialVariantWeight", 1.0)),
        )
        for v in source.body.get("ProductionVariants") or []
    )


def rename_clone(clone: ClonedConfig, source: str, body: Mapping[str, Any]) -> ClonedConfig:
    """The clone with another body, named by what that says; `source` is the name that it is derived from."""
    digest = content_hash(body)
    name = _name(source, digest)
    return replace(clone, name=name, body={**body, "EndpointConfigName": name}, content_hash=digest)


def _variant(
    source: Mapping[str, Any], want: VariantCount, wanted: Wanted, catalogue: Catalogue, notes: list[str]
) -> dict[str, Any]:
    body = {k: v for k, v in source.items() if k in CARRIED_OF_VARIANT and v is not None}
    target, pools = wanted.target, wanted.pools_of(want.name)
    if "InitialInstanceCount" in body or not source.get("ManagedInstanceScaling"):
        body["InitialInstanceCount"] = want.count
    body["InitialVariantWeight"] = want.weight
    types = pools or (want.instance_type,)
    if pools:
        body.pop("InstanceType", None)
        body["InstancePools"] = [{"InstanceType": t, "Priority": i} for i, t in enumerate(pools, start=1)]
    elif want.instance_type:
        body.pop("InstancePools", None)  # one type replaces them: SageMaker takes one of the two only
        body["InstanceType"] = want.instance_type
    if target.routing and want.name == wanted.variant:
        body["RoutingConfig"] = _routing(body.get("RoutingConfig") or {}, target.routing)
    if target.scale_in is not None and target.scale_in.variant == want.name:
        scaling = body["ManagedInstanceScaling"]  # `clone_refusals` looked for it
        policy = {**(scaling.get("ScaleInPolicy") or {}), **target.scale_in.policy}
        body["ManagedInstanceScaling"] = {**scaling, "ScaleInPolicy": policy}
    hardware = [catalogue.find(t) for t in types]
    if "VolumeSizeInGB" in body and any(h is not None and h.has_local_nvme for h in hardware):
        notes.append(
            f"VolumeSizeInGB {body.pop('VolumeSizeInGB')} of {want.name} is dropped: {types[0]} has local NVMe"
        )
    return body


def _routing(source: Mapping[str, Any], strategy: str) -> dict[str, Any]:
    """The routing with another strategy, without what belongs to the old one: SageMaker refuses that beside another."""
    kept = dict(source)
    if source.get("RoutingStrategy") != strategy:
        kept.pop("PrefixAwareRoutingConfig", None)
    return {**kept, "RoutingStrategy": strategy}


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


def clone_refusals(source: ConfigSight, wanted: Wanted, catalogue: Catalogue) -> tuple[Reason, ...]:
    """Every reason why `source` must not be cloned for `wanted`; empty when it may. Total."""
    reasons: list[Reason] = []
    unknown = [*source.unknown_fields, *uncarried_fields(source.body)]
    variants = source.body.get("ProductionVariants") or []
    for variant in variants:
        name = variant.get("VariantName", "?")
        for key, value in variant.items():
            if key in REFUSED_OF_VARIANT and not is_unset(value):
                text = f"variant {name} cannot be cloned to another size: {REFUSED_OF_VARIANT[key]}"
                reasons.append(Reason(Code.OTHER_KIND, text))
    if unknown:
        reasons.append(unknown_fields(source.name, unknown))
    if {v.get("VariantName") for v in variants} != {w.name for w in wanted.fleet}:
        reasons.append(
            Reason(Code.CHANGED_SINCE, f"configuration {source.name} has other variants than the change was made for")
        )
        return tuple(reasons)
    return (
        *reasons,
        *_key_refusals(source),
        *_scale_in_refusals(source, wanted.target),
        *_hardware_refusals(source, wanted, catalogue),
    )


def unknown_fields(config: str, fields: Iterable[str]) -> Reason:
    """The refusal of a configuration with fields that a clone would drop."""
    listed = ", ".join(sorted(set(fields)))
    return Reason(Code.UNKNOWN_FIELD, f"configuration {config} has fields that this program does not know: {listed}")


def key_refusals(config: str, key: str, own: str) -> tuple[Reason, ...]:
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


def nvme_key_refusals(key: str, hardware: InstanceType | None) -> tuple[Reason, ...]:
    """Why a configuration with a KMS key is not cloned to local NVMe, which no key encrypts."""
    if hardware is None or not key or not hardware.has_local_nvme:
        return ()
    text = f"the configuration encrypts its volume with a KMS key, and {hardware.name} has local NVMe storage "
    return (Reason(Code.KMS_ON_NVME, text + "that the key does not encrypt"),)


def _scale_in_refusals(source: ConfigSight, target: Target) -> tuple[Reason, ...]:
    """Why a scale-in policy has nothing to belong to."""
    if target.scale_in is None:
        return ()
    name = target.scale_in.variant
    mine = (v for v in source.body["ProductionVariants"] if v.get("VariantName") == name)
    if any((v.get("ManagedInstanceScaling") or {}).get("Status") == "ENABLED" for v in mine):
        return ()
    text = f"variant {name} of configuration {source.name} has no managed instance scaling that is enabled, "
    return (Reason(Code.NOT_APPLICABLE, text + "and a scale-in policy is a part of it"),)


def _key_refusals(source: ConfigSight) -> tuple[Reason, ...]:
    own = _account(str(source.body.get("EndpointConfigArn", "")))
    return key_refusals(source.name, str(source.body.get("KmsKeyId") or ""), own)


def _account(arn: str) -> str:
    parts = arn.split(":")
    return parts[4] if arn.startswith("arn:") and len(parts) > 5 else ""


def _hardware_refusals(source: ConfigSight, wanted: Wanted, catalogue: Catalogue) -> tuple[Reason, ...]:
    reasons: list[Reason] = []
    sources = {v["VariantName"]: v for v in source.body["ProductionVariants"]}
    for want in wanted.fleet:
        old_name = sources[want.name].get("InstanceType", "")
        for new_name in wanted.pools_of(want.name) or (want.instance_type,):
            if new_name == old_name or not new_name:
                continue
            new, old = catalogue.find(new_name), catalogue.find(old_name)
            if new is None:
                reasons.append(
                    Reason(Code.NO_SPECIFICATION, f"{new_name} is not in the catalogue, so it is never a target")
                )
            elif old is not None:
                reasons.extend(_hardware_differences(old, new))
            reasons.extend(nvme_key_refusals(str(source.body.get("KmsKeyId") or ""), new))
    return tuple(reasons)


def _hardware_differences(old: InstanceType, new: InstanceType) -> list[Reason]:
    reasons = []
    if old.cpu_arch != new.cpu_arch:
        reasons.append(
            Reason(
                Code.ANOTHER_ARCHITECTURE,
                f"{new.name} is {new.cpu_arch} and {old.name} is {old.cpu_arch}; the image may not run",
            )
        )
    old_vendor = old.accelerator.vendor if old.accelerator else "none"
    new_vendor = new.accelerator.vendor if new.accelerator else "none"
    if old_vendor != new_vendor:
        reasons.append(
            Reason(
                Code.ANOTHER_VENDOR,
                f"{new.name} has accelerators of {new_vendor}, {old.name} of {old_vendor}; the model must be rebuilt",
            )
        )
    return reasons
