"""A labelled case of tests/cases/components as the engine's inputs, and its answer in the words of the case."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from rightsizer.domain.component import Component, UnreadComponent
from rightsizer.domain.endpoint import Endpoint, EndpointKind, Mode, Objective, ScalableTarget
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from sandbox.template import QUICK
from tests.recommender import component_kit, kit

WORDS = {
    "": "why source endpoint components expect",
    "source": "url fact",
    "endpoint": "type count least consolidates p95_s mode tags min_instances",
    "component": "copies gpus cores memory_mb gpu at_once requests days p95_s failed"
    " scaled most_copies policy scheduled per_copy adapter_of unread silent",
    "expect": "findings needed packing copies least_copies instances gate saves said",
}
"""What a case may say, by section."""


def read(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = yaml.load(path.read_text(), QUICK)
    return case


def unread(case: Mapping[str, Any]) -> list[str]:
    """Words of the case that nothing reads."""
    parts = [("", case), *((name, case[name]) for name in WORDS if name in case)]
    parts += [("component", one) for one in case["components"].values()]
    return [f"{name}.{word}" for name, part in parts for word in part if word not in WORDS[name].split()]


def judged(case: Mapping[str, Any]) -> Recommendation:
    components = [_component(name, given) for name, given in case["components"].items()]
    return component_kit.judged(components, _endpoint(case.get("endpoint", {})))


def said(found: Recommendation) -> dict[str, Any]:
    option, packed = found.chosen_option, found.packing
    return {
        "findings": {one.name: one.finding.value for one in found.components},
        "needed": {one.name: one.needed for one in found.components if one.needed is not None},
        "packing": [packed.least, packed.most] if packed is not None else None,
        "copies": dict(option.target.copies) if option is not None else {},
        "least_copies": dict(option.target.least_copies) if option is not None else {},
        "instances": option.target.instance_count if option is not None else None,
        "gate": found.gate.value,
    }


def told(found: Recommendation) -> str:
    """Every sentence that the answer says."""
    each = [text for one in found.components for text in (one.reason.sentence, one.advice, one.withheld)]
    out = [excluded.reason.sentence for excluded in found.excluded]
    notes = [text for option in found.options for text in option.notes]
    return "\n".join((*each, *out, *notes, found.gate_reason.sentence))


def _endpoint(given: Mapping[str, Any]) -> Endpoint:
    count = given.get("count", 4)
    made = kit.endpoint(
        given.get("type", "ml.g5.xlarge"),
        count,
        Mode(given.get("mode", "propose")),
        kind=EndpointKind.INFERENCE_COMPONENTS,
    )
    variant = replace(
        made.variants[0], least_instances=given.get("least"), consolidates=given.get("consolidates", False)
    )
    objective = Objective(given.get("p95_s"), min_instances=given.get("min_instances"))
    return replace(made, variants=(variant,), objective=objective, tags=given.get("tags", {}))


def _component(name: str, given: Mapping[str, Any]) -> Component | UnreadComponent:
    if "unread" in given:
        return UnreadComponent(name, Reason(Code.PERMISSION_MISSING, given["unread"]))
    needs = {
        "NumberOfCpuCoresRequired": given.get("cores", 0),
        "NumberOfAcceleratorDevicesRequired": given.get("gpus", 0),
        "MinMemoryRequiredInMb": given.get("memory_mb", 1024),
    }
    more: dict[str, Any] = {"needs": needs}
    if "adapter_of" in given:
        more = {"specification": {"BaseInferenceComponentName": given["adapter_of"]}}
    used = component_kit.load(
        gpu=given.get("gpu", 20) / 100,
        concurrency=given.get("at_once", 0.4),
        requests=float(given.get("requests", 9000)),
        days=float(given.get("days", 14)),
        p95_s=given.get("p95_s", 0.3),
        without_capacity=float(given.get("failed", 0)),
    )
    silent = Reason(Code.NO_DATAPOINTS, "CloudWatch has no utilisation of it; that is unknown, not idle")
    if "scaled" in given:
        used = replace(used, most_copies=given.get("most_copies"), requests_per_copy=float(given.get("per_copy", 5.0)))
    scaling = _scaling(name, given) if "scaled" in given else None
    return component_kit.component(
        name, given.get("copies", 1), silent if given.get("silent") else used, scaling, **more
    )


def _scaling(name: str, given: Mapping[str, Any]) -> ScalableTarget:
    rows = [component_kit.calls_of_a_copy(**given["policy"])] if "policy" in given else []
    scheduled = tuple({"ScheduledActionName": text} for text in given.get("scheduled", []))
    return component_kit.scaled(name, *given["scaled"], *rows, scheduled=scheduled)
