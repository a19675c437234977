"""Application Auto Scaling of endpoints, in bulk: targets by name, policies and schedules by walking the namespace."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rightsizer.aws.errors import translate_read_errors
from rightsizer.domain.endpoint import ScalableTarget

if TYPE_CHECKING:
    from types_boto3_application_autoscaling import ApplicationAutoScalingClient

PAGE = 50
"""Resource ids in one DescribeScalableTargets request (API limit)."""
KEEP_S = 300.0
"""How long the walk over policies and schedules is believed. Only evaluations read it; a change reads its own."""

type TargetKey = tuple[str, str]
type Record = Mapping[str, Any]


class ScalingReader:
    """Reads scalable targets of variants. Two walks of the account's policies serve many endpoints."""

    def __init__(self, client: "ApplicationAutoScalingClient", clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._walked: tuple[float, dict[TargetKey, list[Record]], dict[TargetKey, list[Record]]] | None = None
        self._lock = threading.Lock()

    def read(self, resources: Iterable[str]) -> dict[str, tuple[ScalableTarget, ...]]:
        """Registrations by resource id (``endpoint/E/variant/V``); resources without one are absent."""
        targets = list(self._targets(list(resources)))
        if not targets:
            return {}
        policies, scheduled = self._rules()
        found: dict[str, list[ScalableTarget]] = defaultdict(list)
        for target in targets:
            key = (target["ResourceId"], target["ScalableDimension"])
            found[target["ResourceId"]].append(_target(target, policies.get(key, ()), scheduled.get(key, ())))
        return {resource: tuple(each) for resource, each in found.items()}

    def _targets(self, resources: Sequence[str]) -> Iterator[Any]:
        call = self._client.get_paginator("describe_scalable_targets")
        for start in range(0, len(resources), PAGE):
            with translate_read_errors(
                "application-autoscaling:DescribeScalableTargets", "reading the autoscaling of endpoints"
            ):
                pages = call.paginate(ServiceNamespace="sagemaker", ResourceIds=resources[start : start + PAGE])
                yield from (target for page in pages for target in page["ScalableTargets"])

    def _rules(self) -> tuple[dict[TargetKey, list[Record]], dict[TargetKey, list[Record]]]:
        with self._lock:
            if self._walked is None or self._clock() - self._walked[0] > KEEP_S:
                self._walked = (self._clock(), self._policies(), self._scheduled_actions())
            return self._walked[1:]

    def _policies(self) -> dict[TargetKey, list[Record]]:
        with translate_read_errors(
            "application-autoscaling:DescribeScalingPolicies", "reading the scaling policies of endpoints"
        ):
            pages = self._client.get_paginator("describe_scaling_policies").paginate(ServiceNamespace="sagemaker")
            return _by_key(record for page in pages for record in page["ScalingPolicies"])

    def _scheduled_actions(self) -> dict[TargetKey, list[Record]]:
        with translate_read_errors(
            "application-autoscaling:DescribeScheduledActions", "reading the scaling schedules of endpoints"
        ):
            pages = self._client.get_paginator("describe_scheduled_actions").paginate(ServiceNamespace="sagemaker")
            return _by_key(record for page in pages for record in page["ScheduledActions"])


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
