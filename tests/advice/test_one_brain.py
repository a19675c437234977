"""The optimiser and the advice beside each other: fifty running endpoints of the labelled cases, described."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rightsizer.advice.advise import advise
from rightsizer.advice.answer import Action
from rightsizer.domain.option import OptionKind
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Recommendation
from tests.labelled import judged, read

HERE = Path(__file__).parent
CASES = [HERE.parent / "cases" / f"{name}.yaml" for name in (HERE / "one_brain.txt").read_text().split()]
"""Named in a file, so that a new case elsewhere changes nothing here."""
PEAK, P95 = re.compile(r"peak ([\d.]+) GiB"), re.compile(r"p95 ([\d.]+) s")
KNOWS_MORE: Mapping[str, str] = {
    "gpus-skewed-tested": "one of four GPUs may have held all of the memory; the description gives the mean",
    "kv-cache-crowded": "the use of the KV cache tells how much a server that reserves its memory needs",
    "memory-leak": "the memory rises from day to day",
    "objective-low-gpu-share": "a tenth of the latency is GPU work, so a slower GPU hardly shows",
    "serverless-dearer": "a fiftieth of the latency is GPU work",
    "framework-vllm-h100": "what a test is worth: it tests a smaller card although a safe move is there",
    "history-test-did-not-fit": "a test ran out of memory on such a card",
    "kv-cache-full": "the KV cache is in use, so no smaller card holds it beside the model",
    "memory-after-kill": "an earlier change ended for lack of memory, so a fifth is added",
    "memory-leak-steep": "the memory rises from day to day",
    "serverless-cold-start-not-allowed": "a fiftieth of the latency is GPU work",
    "trap-l4-is-slower-than-a10g": "little of the latency is GPU work",
    "world-small-model-on-an-h100": "what a test is worth: it tests a smaller card although a safe move is there",
}
"""Cases whose answers differ, and what the optimiser knows of the endpoint that no description tells.

All 363 cases whose memory and latency are known were compared on 2026-11-23: these 13 differed.
"""


def described(case: Mapping[str, Any], found: Recommendation) -> dict[str, Any] | None:
    """The endpoint of the case as a person would describe it; None where its memory or latency is not known."""
    figures = found.evidence.figures if found.evidence else {}
    peak, p95 = PEAK.search(figures.get("GPU memory", "")), P95.search(figures.get("model latency", ""))
    if peak is None or p95 is None:
        return None
    endpoint = case.get("endpoint", {})
    running = {
        "instance_type": endpoint.get("type", "ml.g6e.xlarge"),
        "count": endpoint.get("count", 1),
        "p95_ms": 1000 * float(p95[1]),
        "gpu_memory_max_gib": float(peak[1]),
        "gpu_memory_days": 14,
        "gpu_memory_reserved": figures["GPU memory"].startswith("pre-allocated"),
    }
    objectives = {"p95_ms": 1000 * endpoint["p95_s"]} if "p95_s" in endpoint else {}
    model = {"kind": "deep-learning", **({"memory_gib": endpoint["model_gib"]} if "model_gib" in endpoint else {})}
    return {"task": "real-time", "model": model, "running": running, "objectives": objectives}


def differences(found: Recommendation, workload: Mapping[str, Any]) -> list[str]:
    """Types that one chooses and the other refuses."""
    answer = advise(workload)
    refused = {each.subject for each in answer.refused}
    moved_to = {each.instance_type for each in answer.options if each.action is not Action.KEEP}
    chosen = found.chosen_option
    told = []
    if chosen and chosen.kind is OptionKind.INSTANCE_TYPE and chosen.target.instance_type in refused:
        told.append(f"{chosen.target.instance_type} is chosen there and refused here")
    small = {each.instance_type for each in found.excluded if each.reason.code is Code.MEMORY_TOO_SMALL}
    return told + [f"{name} is too small there and advised here" for name in sorted(small & moved_to)]


@pytest.mark.slow
def test_the_optimiser_and_the_advice_hold_together() -> None:
    looked_at, found_apart = 0, {}
    for path in CASES:
        case = read(path)
        found = judged(case)
        workload = described(case, found)
        if workload is None:
            continue
        looked_at += 1
        apart = differences(found, workload)
        if apart:
            found_apart[path.stem] = apart
    assert looked_at >= 50
    assert found_apart.keys() == KNOWS_MORE.keys() & {path.stem for path in CASES}, found_apart
