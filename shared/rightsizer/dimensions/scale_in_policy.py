"""Another way in which managed instance scaling gives instances back; a person orders it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.reason import Code, Reason

if TYPE_CHECKING:
    from rightsizer.domain.preflight import PreflightInput


class ScaleInPolicy(Dimension):
    """One property of the configuration of an endpoint of inference components."""

    kinds = (OptionKind.SCALE_IN,)
    deploys = kinds
    """ManagedInstanceScaling is a part of the configuration."""
    applies_to = frozenset({EndpointKind.INFERENCE_COMPONENTS})

    def describe(self, option: Option) -> str:
        """The two strategies of ScaleInPolicy."""
        scale_in = option.target.scale_in
        consolidates = scale_in is not None and scale_in.strategy == "CONSOLIDATION"
        return "move copies together to empty instances" if consolidates else "give back empty instances only"

    def with_live_counts(self, inputs: PreflightInput) -> PreflightInput:
        """As many instances as run now: so many are started beside them."""
        option, name = inputs.option, inputs.proposal.recommendation.variant
        mine = [v for v in inputs.endpoint.variants if v.name == name]
        live = max((max(v.current_count, v.desired_count) for v in mine), default=0)
        return replace(inputs, option=replace(option, target=replace(option.target, instance_count=live)))

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """A clone with that one property, deployed as any other.

        SageMaker moves the instances of such a variant with the copies on it, so counts are nobody's here: both
        deployments keep the ones that are live, and autoscaling of the copies stays registered. Source:
        RetainAllVariantProperties of UpdateEndpoint.
        """
        from rightsizer.changes import clone
        from rightsizer.changes.plan import alarm_steps, choose_plan_guardrail, plan_keeping_counts

        change, inputs, config, variants = approved.change, approved.inputs, approved.config, approved.before.variants
        target, tags = Target("", 0, scale_in=change.option.target.scale_in), {clone.CHANGE_TAG: change.id}
        if target.scale_in is None:
            return (Reason(Code.NOT_APPLICABLE, f"no scale-in policy is asked for on {change.ref.name}"),)
        wanted = clone.Wanted(clone.written_counts(config), target)
        new = clone.clone_config(config, wanted, approved.catalogue, tags, inputs.endpoint.capture_stopped)
        if not isinstance(new, clone.ClonedConfig):
            return new
        if _instance_scaling(new.body) == _instance_scaling(config.body):
            return (Reason(Code.CHANGED_SINCE, f"{change.ref.name} has the scale-in policy that is asked for"),)
        watched = alarm_steps(change, new.name, variants, approved.limits)
        names = tuple(step.subject for step in watched)
        guard = choose_plan_guardrail(change, inputs, approved.before, variants, names, approved.limits)
        return PlannedChange(approved.before, plan_keeping_counts(approved, new, watched, guard), new.notes)


def _instance_scaling(body: Mapping[str, Any]) -> list[Any]:
    """Managed instance scaling of each variant."""
    return [v.get("ManagedInstanceScaling") for v in body["ProductionVariants"]]
