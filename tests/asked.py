"""Labelled endpoints of tests/cases/asked: filled into simulated accounts, asked through `scan --json`, and scored.

    PYTHONPATH=shared:. .venv/bin/python -m tests.asked [NAME ...]

prints what was asked, what is wrong and what would be harmful. The words of a label are in tests/cases/README.md.
"""

import contextlib
import io
import json
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from zlib import crc32

import yaml

from rightsizer import bootstrap
from rightsizer.terminal.run import run
from sandbox.account import Sandbox
from sandbox.cloudwatch.store import Block
from sandbox.sagemaker.load import INVOCATIONS
from sandbox.template import QUICK
from tests.asked_traffic import NOW, PERIOD, Past, Words

FOLDER = Path(__file__).parent / "cases" / "asked"
IMAGES = {
    "pytorch": "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-inference@sha256:" + "c1" * 32,
    "vllm": "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference-vllm@sha256:" + "d2" * 32,
    "tgi": "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference@sha256:" + "e3" * 32,
    "djl": "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference@sha256:" + "f4" * 32,
    "triton": "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver@sha256:" + "a5" * 32,
    "tensorflow": "763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-inference@sha256:" + "b6" * 32,
}
STEP = {"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}
TRACKED: dict[str, dict[str, Any]] = {
    "only_out": {
        "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"},
        "DisableScaleIn": True,
    },
    "backlog": {
        "CustomizedMetricSpecification": {
            "MetricName": "ApproximateBacklogSizePerInstance",
            "Namespace": "AWS/SageMaker",
            "Statistic": "Average",
        }
    },
}
"""Policies that track beside the usual one: that may not scale in, and by what waits in a queue."""

OF_ADAPTERS = frozenset(f"{what}UtilizationNormalized" for what in ("GPU", "GPUMemory", "CPU", "Memory"))
"""What an adapter does not publish: it runs in the copies of its base."""


def accounts(folder: Path = FOLDER) -> Iterator[tuple[Words, list[Words]]]:
    """Each account with its endpoints; files that say nothing of an account share the first one."""
    shared: list[Words] = []
    for path in sorted(folder.glob("*.yaml")):
        found = yaml.load(path.read_text(), QUICK)
        if isinstance(found, list):
            shared += found
        else:
            yield found["account"], found["endpoints"]
    yield {}, shared


def asked(account: Words, endpoints: Sequence[Words]) -> dict[str, dict[str, Any]]:
    """What `scan --json` says of each endpoint of an account that has them all, by name."""
    with Sandbox(now=NOW, region=account.get("region", "us-east-1")) as box:
        bootstrap.set_clock(lambda: box.clock.now)
        enough = {one["type"]: 1000 for one in endpoints if "type" in one}
        for kind, most in (enough | account.get("quota", {})).items():
            box.set_quota(kind, most)
        if "plan_usd_per_hour" in account:
            box.world.plans.buy(account["plan_usd_per_hour"])
        for one in endpoints:
            fill(box, one, one.get("seed", crc32(one["name"].encode()) % 10_000))
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            run(["scan", "--json"])
        bootstrap.reset()
    found = json.loads(said.getvalue())
    return {one["endpoint"]: one for one in found["endpoints"]} | {
        one["endpoint"]: {"finding": "NotEnoughData", "gate": "silent", "recommended": None, **one}
        for one in found["unobserved"]
    }


def fill(box: Sandbox, one: Words, seed: int) -> None:
    """An endpoint with its tags, its autoscaling and its past."""
    kind = one.get("type", "none")
    setup: dict[str, Any] = {key: one[key] for key in ("asynchronous", "serverless", "pools", "model") if key in one}
    extra: dict[str, Any] = dict(one.get("config", {}))
    if one.get("gpus", {}).get("each"):
        extra["MetricsConfig"] = {"EnableEnhancedMetrics": True, "EnableDetailedObservability": False}
    if "shadow" in one:
        extra["ShadowProductionVariants"] = [_variant(f"{one['name']}-model", "shadow", one["shadow"])]
    variant: dict[str, Any] = {"InitialVariantWeight": one.get("weight", 1.0), **one.get("variant", {})}
    if one.get("routing") != "none" and "serverless" not in one and "asynchronous" not in one:
        variant["RoutingConfig"] = {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    parts = one.get("components")
    if parts:
        low, high = parts["managed"]
        variant["ManagedInstanceScaling"] = {"Status": "ENABLED", "MinInstanceCount": low, "MaxInstanceCount": high}
    days = float(one.get("days", 14))
    setup["observability"] = "kv_cache" in one
    box.add_endpoint(
        one["name"], None if kind == "none" else kind, max(1, one.get("count", 1)),
        image=IMAGES[one.get("image", "pytorch")], tags=one.get("tags", {}),
        created=NOW - timedelta(days=60 if days >= 14 else days), variant_extra=variant,
        config_extra=extra, inference_components=bool(parts),
        more_variants=[_variant(f"{one['name']}-model", "B", **_hardware(one["beside"]))] if "beside" in one else (),
        **setup,
    )  # fmt: skip
    for part in parts["each"] if parts else ():
        _add_component(box, one["name"], part)
    _autoscale(box, one)
    _deploy(box, one)
    if "kv_cache" in one:
        values = [one["kv_cache"] / 100] * (14 * 288)
        box.world.telemetry.put(
            "vllm:kv_cache_usage_perc", one["name"], "AllTraffic", NOW - timedelta(days=14), PERIOD, values
        )
    if one.get("omit") != "all":
        past = Past(one, seed)
        past.write(box)
        if "beside" in one:
            other = {"load": {"rpm": one["beside"]["rpm"]}, **one["beside"]}
            Past({**{key: value for key, value in one.items() if key != "beside"}, **other}, seed + 500).write(box, "B")


def _add_component(box: Sandbox, endpoint: str, part: Words) -> None:
    """A component with its use; an adapter of a `base` reserves nothing and publishes no use of its own."""
    if "base" in part:
        box.add_component(part["name"], endpoint, base=part["base"])
        box.use_component(part["name"], requests=part["requests"], without=OF_ADAPTERS)
        return
    needs = {"NumberOfAcceleratorDevicesRequired": part["gpus"], "MinMemoryRequiredInMb": 4096}
    box.add_component(part["name"], endpoint, copies=part["copies"], needs=needs)
    box.use_component(
        part["name"], part["gpu"], part.get("at_once", 0.4), part["requests"],
        hours=range(*part.get("hours", (0, 24))), latency_s=part.get("latency_s", 0.3),
    )  # fmt: skip


def _deploy(box: Sandbox, one: Words) -> None:
    """Deployments of the owner: one that is under way, and one that gave the endpoint the type it has now."""
    endpoint = box.world.fleet.endpoint(one["name"])
    endpoint.status = one.get("status", "InService")
    if one.get("count") == 0:  # scaled in to none: no configuration may begin so
        asleep = endpoint.variants["AllTraffic"]
        asleep.count = asleep.desired_count = 0
    if "resized" in one:
        before, hours = one["resized"], 24 * one["resized"]["days_ago"]
        endpoint.modified = NOW - timedelta(hours=hours)
        box.world.fleet.configs[endpoint.config_name].created = endpoint.modified
        Past({**one, **before, "gap": [hours, -1]}, 700).write(box)


def _hardware(beside: Words) -> dict[str, Any]:
    return {"kind": beside["type"], "count": beside.get("count", 1), "weight": beside.get("weight", 1.0)}


def _variant(model: str, name: str, kind: str, count: int = 1, weight: float = 1.0) -> dict[str, Any]:
    return {
        "VariantName": name, "ModelName": model, "InstanceType": kind, "InitialInstanceCount": count,
        "InitialVariantWeight": weight,
    }  # fmt: skip


def _autoscale(box: Sandbox, one: Words) -> None:
    for part in one.get("components", {}).get("each", ()):
        if "scaled" in part:
            _autoscale_copies(box, part)
    if "autoscale" not in one:
        return
    given = one["autoscale"]
    steps = {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": [STEP]}
    policies = [{"PolicyName": "steps", "PolicyType": "StepScaling", "StepScalingPolicyConfiguration": steps}]
    if not given.get("step"):
        policies = [
            {"PolicyName": f"by-{word}", "PolicyType": "TargetTrackingScaling",
             "TargetTrackingScalingPolicyConfiguration": {"TargetValue": given[word], **TRACKED[word]}}
            for word in TRACKED if word in given
        ]  # fmt: skip
    cron = {"ScheduledActionName": "morning", "Schedule": "cron(0 7 * * ? *)",
            "ScalableTargetAction": {"MinCapacity": given["minimum"], "MaxCapacity": given["maximum"]}}  # fmt: skip
    box.autoscale(
        one["name"], given["minimum"], given["maximum"], invocations_per_instance=given.get("target"),
        policies=policies, scheduled=[cron] if given.get("scheduled") else (),
    )  # fmt: skip
    if given.get("suspended"):
        box.client("application-autoscaling").register_scalable_target(
            ServiceNamespace="sagemaker", ResourceId=f"endpoint/{one['name']}/variant/AllTraffic",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
            SuspendedState={f"DynamicScaling{'Out' if given['suspended'] == 'out' else 'In'}Suspended": True},
        )  # fmt: skip


def _autoscale_copies(box: Sandbox, part: Words) -> None:
    """Target tracking of a component by the calls of each copy, which CloudWatch shows where it is called."""
    client, (low, high) = box.client("application-autoscaling"), part["scaled"]
    who = {
        "ServiceNamespace": "sagemaker", "ResourceId": f"inference-component/{part['name']}",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
    }  # fmt: skip
    client.register_scalable_target(**who, MinCapacity=low, MaxCapacity=high)
    metric = {"PredefinedMetricType": "SageMakerInferenceComponentInvocationsPerCopy"}
    client.put_scaling_policy(
        **who, PolicyName=f"{part['name']}-calls", PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={"TargetValue": 100.0, "PredefinedMetricSpecification": metric},
    )  # fmt: skip
    size, calls = 14 * 288, part["requests"] / max(part["copies"], 1)
    start = int((NOW - timedelta(days=14)).timestamp() // PERIOD * PERIOD)
    block = Block(start, PERIOD, array("d", [calls]) * size, 1.0)
    box.world.metrics.put(INVOCATIONS, "InvocationsPerCopy", {"InferenceComponentName": part["name"]}, block)


def _words(wanted: Any) -> list[Any]:
    return wanted if isinstance(wanted, list) else [wanted]


def said(answer: Words) -> dict[str, Any]:
    """What a label may ask for, of one endpoint of `scan --json`."""
    chosen = answer.get("recommended") or {}
    target = chosen.get("target") or {}
    hours = [count for counts in (chosen.get("hourly_counts") or {}).values() for count in counts]
    least = [n for n in (target.get("minimum"), target.get("instance_count"), *hours) if n is not None]
    return {
        "finding": answer["finding"],
        "gate": answer["gate"],
        "kind": chosen.get("kind", "none"),
        "to": chosen.get("instance_type") or "none",
        "count": target.get("instance_count"),
        "lowest": min(least, default=None),
        "saves": float(chosen.get("saving_usd_per_month") or 0),
    }


def holds(word: str, wanted: Any, found: Words, answer: Words) -> bool:
    """Whether one word of a label, or of a harm, is true of the answer."""
    if word in ("count", "lowest", "saves"):
        return found[word] is not None and wanted[0] <= found[word] <= wanted[1]
    if word == "said":
        return all(text in json.dumps(answer, ensure_ascii=False) for text in wanted)
    if word == "to":
        return any(fnmatch(found["to"], pattern) for pattern in _words(wanted))
    return found[word] in _words(wanted)


def wrong(one: Words, answers: Mapping[str, Words]) -> list[str]:
    """What of the right answer is not so."""
    answer = answers[one["name"]]
    found = said(answer)
    lacking = [
        f"{word} is {found.get(word, 'not said')}, not {wanted}"
        for word, wanted in one["right"].items()
        if word != "same_as" and not holds(word, wanted, found, answer)
    ]
    if "same_as" in one["right"]:
        other = said(answers[one["right"]["same_as"]])
        lacking += [f"{w} is {found[w]}, its twin's {other[w]}" for w in found if w != "saves" and found[w] != other[w]]
    return lacking


def harmful(one: Words, answers: Mapping[str, Words]) -> list[Words]:
    """Which of the harms that the label names are so."""
    answer = answers[one["name"]]
    found = said(answer)
    return [harm for harm in one["harm"] if all(holds(w, wanted, found, answer) for w, wanted in harm.items())]


def tell(line: str) -> None:
    """One line on standard output."""
    sys.stdout.write(line + "\n")


def main(names: Sequence[str]) -> None:
    """Ask all labelled endpoints, or those that are named, and print the score."""
    right = asked_so_far = 0
    for account, endpoints in accounts():
        chosen = [one for one in endpoints if not names or one["name"] in names]
        if not chosen:
            continue
        answers = asked(account, chosen)
        for one in chosen:
            lacking, harms = wrong(one, answers), harmful(one, answers)
            asked_so_far += 1
            right += not lacking
            if lacking or harms or names:
                found, answer = said(answers[one["name"]]), answers[one["name"]]
                tell(f"{'HARMFUL ' if harms else ''}{one['name']}: {'; '.join(lacking) or 'right'}\n    {found}")
                tell(f"    {answer['reason']['sentence']} | {(answer.get('gate_reason') or {}).get('sentence')}")
    tell(f"{right} of {asked_so_far} right")


if __name__ == "__main__":
    main(sys.argv[1:])
