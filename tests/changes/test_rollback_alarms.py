"""Each roll-back alarm watches the variant that it was made for, whatever the variant is called."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.changes.guardrail import MOST, WatchedConfig, rollback_alarms

NAMES = st.lists(st.from_regex(r"\A[a-z]{1,6}(-(p95|5xx|model-errors)){0,3}\Z"), min_size=1, max_size=3, unique=True)


def watched(variants: list[str]) -> list[tuple[str, str]]:
    """The metric and the variant of each alarm."""
    steps = rollback_alarms("c-1", WatchedConfig("chat", "new", variants), "rightsizer-", 0.3, {})
    dimensions = [{d["Name"]: d["Value"] for d in step.params["Dimensions"]} for step in steps]
    assert all(d["EndpointName"] == "chat" and d["EndpointConfigName"] == "new" for d in dimensions)
    return [(s.params["MetricName"], d["VariantName"]) for s, d in zip(steps, dimensions, strict=True)]


@pytest.mark.parametrize("variant", ["canary-p95", "blue-5xx", "v-model-errors", "a-5xx-p95", "AllTraffic"])
def test_a_variant_named_like_an_alarm_is_watched_under_its_whole_name(variant: str) -> None:
    metrics = ["Invocation5XXErrors", "ModelLatency", "InvocationModelErrors"]
    assert watched([variant]) == [(metric, variant) for metric in metrics]


@given(NAMES)
def test_every_variant_has_its_alarms_under_names_of_their_own(variants: list[str]) -> None:
    steps = rollback_alarms("c-1", WatchedConfig("chat", "new", variants), "rightsizer-", 0.3, {})
    assert {variant for _, variant in watched(variants)} == set(variants)
    assert all(one != other for one, other in pairwise(sorted(step.subject for step in steps)))
    assert len(steps) <= MOST
