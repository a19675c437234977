"""Application Auto Scaling of endpoints, in bulk: targets, policies and schedules by walking the namespace.

Where a walk is longer than to ask by name, targets are asked for by fifty names and their rules one by one.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import batched
from typing import TYPE_CHECKING, Any, Literal, cast

from rightsizer.aws.errors import translate_read_errors
from rightsizer.domain.endpoint import ScalableTarget

if TYPE_CHECKING:
    from types_boto3_application_autoscaling import ApplicationAutoScalingClient

PAGE = 50
"""Targets in one answer of DescribeScalableTargets, and names in one request (API limits)."""
FEW = 2
"""Requests of the walk over targets: a hundred of them, as many as it takes to ask for a hundred endpoints by name."""
SHORT = 10
"""Requests of a walk that are always made: a process meets a batch of 250 endpoints in turns, the smallest first."""
KEEP_S = 300.0
"""How long a walk over targets, policies or schedules is believed. Evaluations alone read it; a change asks anew."""

type TargetKey = tuple[str, str]
type Record = Mapping[str, Any]
type RulesByTarget = dict[TargetKey, list[Record]]
type RuleOperation = Literal["describe_scaling_policies", "describe_scheduled_actions"]
RULES: Mapping[RuleOperation, tuple[str, str]] = {
    "describe_scaling_policies": ("application-autoscaling:DescribeScalingPolicies", "policies"),
    "describe_scheduled_actions": ("application-autoscaling:DescribeScheduledActions", "schedules"),
}


class ScalingReader:
    """Reads scalable targets of variants. Walks of the account serve many endpoints where what they list is little.

    A page has ten policies (API limit), and each process walks anew: in a large account each of forty would make
    a hundred requests for its 25 endpoints.
    """

    def __init__(self, client: "ApplicationAutoScalingClient", clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._targets_walked: tuple[float, dict[str, list[Any]] | None] | None = None
        """When the account's targets were walked, and what they are by resource; None where they are too many."""
        self._walked: dict[RuleOperation, tuple[float, RulesByTarget | None]] = {}
        """When the account's list was walked, and what it has; None where it is too long."""
        self._lock = threading.Lock()

    def read(self, resources: Iterable[str]) -> dict[str, tuple[ScalableTarget, ...]]:
        """Registrations by resource id (``endpoint/E/variant/V``); resources without one are absent."""
        targets = self._targets(list(resources))
        if not targets:
            return {}
        named = list(dict.fromkeys(target["ResourceId"] for target in targets))
        policies = self._rules("describe_scaling_policies", "ScalingPolicies", named)
        scheduled = self._rules("describe_scheduled_actions", "ScheduledActions", named)
        found: dict[str, list[ScalableTarget]] = defaultdict(list)
        for target in targets:
            key = (target["ResourceId"], target["ScalableDimension"])
            found[target["ResourceId"]].append(_target(target, policies.get(key, ()), scheduled.get(key, ())))
        return {resource: tuple(each) for resource, each in found.items()}

    def _targets(self, resources: Sequence[str]) -> list[Any]:
        """Targets of these resources: the account's where they are few, else by name."""
        with self._lock:
            if self._targets_walked is None or self._clock() - self._targets_walked[0] > KEEP_S:
                self._targets_walked = (self._clock(), self._walk_targets())
            known = self._targets_walked[1]
        if known is not None:
            return [target for resource in resources for target in known.get(resource, ())]
        pages = (self._target_pages(ResourceIds=list(some)) for some in batched(resources, PAGE))
        return [target for some in pages for page in some for target in page["ScalableTargets"]]

    def _walk_targets(self) -> dict[str, list[Any]] | None:
        """All of the account by resource; None where they take more than `FEW` requests."""
        found: dict[str, list[Any]] = defaultdict(list)
        for number, page in enumerate(self._target_pages(), start=1):
            for target in page["ScalableTargets"]:
                found[target["ResourceId"]].append(target)
            if number == FEW and page.get("NextToken"):
                return None
        return found

    def _target_pages(self, **more: Any) -> Iterator[Any]:
        with translate_read_errors(
            "application-autoscaling:DescribeScalableTargets", "reading the autoscaling of endpoints"
        ):
            call = self._client.get_paginator("describe_scalable_targets")
            yield from call.paginate(ServiceNamespace="sagemaker", **more)

    def _rules(self, operation: RuleOperation, member: str, named: Sequence[str]) -> RulesByTarget:
        """Policies or schedules of these resources: the account's where they are few, else one request a resource."""
        with self._lock:
            walked = self._walked.get(operation)
            if walked is None or self._clock() - walked[0] > KEEP_S:
                walked = (self._clock(), self._walk(operation, member, most=max(SHORT, len(named))))
                self._walked[operation] = walked
        if walked[1] is not None:
            return walked[1]
        return _by_key(
            record for one in named for page in self._pages(operation, ResourceId=one) for record in page[member]
        )

    def _walk(self, operation: RuleOperation, member: str, most: int) -> RulesByTarget | None:
        """All of the account; None where they take more than `most` requests: each process would make them all."""
        found: list[Any] = []
        for number, page in enumerate(self._pages(operation), start=1):
            found += page[member]
            if number == most and page.get("NextToken"):
                return None
        return _by_key(found)

    def _pages(self, operation: RuleOperation, **more: str) -> Iterator[Any]:
        action, what = RULES[operation]
        with translate_read_errors(action, f"reading the scaling {what} of endpoints"):
            call: Any = self._client.get_paginator(operation)
            yield from call.paginate(ServiceNamespace="sagemaker", **more)


def _by_key(records: Iterable[Any]) -> dict[TargetKey, list[Record]]:
    found: dict[TargetKey, list[Record]] = defaultdict(list)
    for record in records:
        found[(record["ResourceId"], record["ScalableDimension"])].append(cast("Record", _plain(record)))
    return dict(found)


def _target(target: Mapping[str, Any], policies: Iterable[Record], scheduled: Iterable[Record]) -> ScalableTarget:
    return ScalableTarget(
        resource_id=target["ResourceId"],
        dimension=target["ScalableDimension"],
        minimum=target["MinCapacity"],
        maximum=target["MaxCapacity"],
        suspended=dict(target.get("SuspendedState") or {}),
        policies=tuple(policies),
        scheduled=tuple(scheduled),
    )


def _plain(value: Any) -> Any:
    """Times as ISO 8601 text: the record travels as JSON."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
