"""Clone an endpoint configuration with another size: every field carried, or the clone refused.

An EndpointConfig is immutable, so a resize is a complete new one; a dropped field silently changes the customer's
endpoint. Fields: CreateEndpointConfig and DescribeEndpointConfig of the SageMaker API.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rightsizer.changes.clone_refusals import (
    CARRIED,
    CARRIED_OF_VARIANT,
    foreign_key,
    key_on_nvme,
    refusals,
    unknown_fields,
)
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.live_state import ConfigSight
from rightsizer.domain.option import Target
from rightsizer.domain.plan import VariantCount
from rightsizer.domain.reason import Reason

__all__ = [
    "CARRIED",
    "CHANGE_TAG",
    "Clone",
    "as_written",
    "clone",
    "content_hash",
    "foreign_key",
    "key_on_nvme",
    "renamed",
    "unknown_fields",
]

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
    refused = refusals(source, wanted, target, catalogue)
    if refused:
        return refused
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


def as_written(source: ConfigSight) -> tuple[VariantCount, ...]:
    """What the configuration itself says of each variant, for a clone that changes neither type nor count."""
    return tuple(
        VariantCount(
            v["VariantName"],
            v.get("InstanceType", ""),
            v.get("InitialInstanceCount", 0),
            float(v.get("InitialVariantWeight", 1.0)),
        )
        for v in source.body.get("ProductionVariants") or []
    )


def renamed(made: Clone, source: str, body: Mapping[str, Any]) -> Clone:
    """The clone with another body, named by what that says; `source` is the name that it is derived from."""
    digest = content_hash(body)
    name = _name(source, digest)
    return replace(made, name=name, body={**body, "EndpointConfigName": name}, content_hash=digest)


def content_hash(body: Mapping[str, Any]) -> str:
    """Hash of everything that a configuration says, without its name, tags and output-only fields.

    Metrics that are switched off are as good as not named: where AWS refuses the field it is left out.
    """
    content = {k: v for k, v in body.items() if k in CARRIED and v is not None}
    if not any((content.get("MetricsConfig") or {}).values()):
        content.pop("MetricsConfig", None)
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _variant(
    source: Mapping[str, Any], want: VariantCount, target: Target, catalogue: Catalogue, notes: list[str]
) -> dict[str, Any]:
    body = {k: v for k, v in source.items() if k in CARRIED_OF_VARIANT and v is not None}
    resized = want.instance_type != source.get("InstanceType", "") or want.count != source.get("InitialInstanceCount")
    if "InitialInstanceCount" in body or not source.get("ManagedInstanceScaling"):
        body["InitialInstanceCount"] = want.count
    body["InitialVariantWeight"] = want.weight
    types: tuple[str, ...] = (want.instance_type,)
    if target.pools and resized:
        types = target.pools
        body.pop("InstanceType", None)
        body["InstancePools"] = [{"InstanceType": t, "Priority": i} for i, t in enumerate(target.pools, start=1)]
    elif "InstanceType" in body or (resized and want.instance_type):
        body.pop("InstancePools", None)  # one type replaces them: SageMaker takes one of the two only
        body["InstanceType"] = want.instance_type
    if target.routing and (resized or body.get("RoutingConfig", {}).get("RoutingStrategy") != target.routing):
        body["RoutingConfig"] = {**body.get("RoutingConfig", {}), "RoutingStrategy": target.routing}
    if target.scale_in is not None and target.scale_in.variant == want.name:
        scaling = body["ManagedInstanceScaling"]  # `refusals` looked for it
        policy = {**(scaling.get("ScaleInPolicy") or {}), **target.scale_in.policy}
        body["ManagedInstanceScaling"] = {**scaling, "ScaleInPolicy": policy}
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
