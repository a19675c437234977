"""Alarms that start scaling policies: which policy each action means, while the policies are deleted and made again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rightsizer.domain.endpoint import ScalableTarget
from rightsizer.domain.step import POLICY_PLACEHOLDER, Step

ACTIONS = ("AlarmActions", "OKActions", "InsufficientDataActions")


def placed(alarm: Mapping[str, Any], snapshot: Iterable[ScalableTarget]) -> dict[str, Any]:
    """The body of an alarm in which each policy of the snapshot is named by its place, not by an ARN that will go."""
    places = {arn: place for place, arn in _arns(snapshot).items()}
    return {k: [places.get(a, a) for a in v] if k in ACTIONS else v for k, v in alarm.items()}


def wired(step: Step, scaling: Sequence[ScalableTarget], live: Mapping[str, Any] | None) -> Step:
    """The step that puts an alarm as it is asked for now: with the live ARN of each policy that it starts.

    An alarm of the customer's keeps the body that it has now, since its owner may have edited it meanwhile: only its
    actions are put right. Those that start policies come from the snapshot, since deleting a policy took them out of
    the alarm (Application Auto Scaling); the others are the live ones. `live` is None where the alarm is gone.
    """
    arns = _arns(scaling)
    params = {k: [arns.get(a, a) for a in v] if k in ACTIONS else v for k, v in step.params.items()}
    if live is None or "Tags" in params:  # DescribeAlarms shows no tags, so what has some is ours
        return replace(step, params=params)
    gone = _gone(step, arns)
    body = {**live, **{k: _actions(params.get(k, ()), live.get(k, ()), gone) for k in ACTIONS}}
    return replace(step, params={k: v for k, v in body.items() if k not in ACTIONS or v or k in params})


def _arns(targets: Iterable[ScalableTarget]) -> dict[str, str]:
    """The ARN of each policy by its place."""
    return {
        f"{POLICY_PLACEHOLDER}{t.resource_id}|{t.dimension}|{p['PolicyName']}": p["PolicyARN"]
        for t in targets
        for p in t.policies
        if "PolicyARN" in p
    }


def _gone(step: Step, arns: Mapping[str, str]) -> tuple[str, ...]:
    """Parts of ARNs by which policies of the same targets are known that an alarm may still name."""
    places = (a for k in ACTIONS for a in step.params.get(k, ()) if a.startswith(POLICY_PLACEHOLDER))
    resources = {place.removeprefix(POLICY_PLACEHOLDER).split("|")[0] for place in (*places, *arns)}
    return tuple(f":resource/sagemaker/{resource}:" for resource in sorted(resources))


def _actions(wanted: Sequence[str], live: Sequence[str], gone: tuple[str, ...]) -> list[str]:
    """Policies as wanted, everything else as it is live, in the wanted order first."""
    theirs = [a for a in live if not any(part in a for part in gone)]
    kept = [a for a in wanted if a in theirs or a.startswith(POLICY_PLACEHOLDER) or any(part in a for part in gone)]
    return [*kept, *(a for a in theirs if a not in kept)]
