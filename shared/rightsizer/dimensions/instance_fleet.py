"""Other instances: another type, another count, both, or a type with fewer GPUs of the same kind."""

from rightsizer.changes.dimension import Approved, PlannedChange
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.option import Option, OptionKind, fleet
from rightsizer.domain.reason import Reason, count


class InstanceFleet(Dimension):
    """The smallest fleet that carries the load; `recommender/options.py` searches for it."""

    kinds = (OptionKind.INSTANCE_TYPE, OptionKind.INSTANCE_COUNT, OptionKind.TYPE_AND_COUNT, OptionKind.FEWER_GPUS)
    replays = True
    deploys = (OptionKind.INSTANCE_TYPE, OptionKind.TYPE_AND_COUNT, OptionKind.FEWER_GPUS)
    """Another type is another configuration; a count alone is none."""

    def describe(self, option: Option) -> str:
        """``run on 2 x ml.g6.xlarge``."""
        target = option.target
        if option.kind is OptionKind.INSTANCE_COUNT:
            return f"run on {count(target.instance_count, 'instance')} of {target.instance_type}"
        fewer = ", which has fewer GPUs of the same kind" if option.kind is OptionKind.FEWER_GPUS else ""
        others = "".join(f", variant {v.name} on {v.instance_count} × {v.instance_type}" for v in target.others)
        return f"run on {fleet(target)}{fewer}{others}"

    def undo(self, option: Option) -> str:
        """A count alone deploys nothing."""
        if option.kind is OptionKind.INSTANCE_COUNT:
            return "puts back the old count or autoscaling"
        return self.back

    def plan(self, approved: Approved) -> PlannedChange | tuple[Reason, ...]:
        """Another configuration for another type; for a count alone another count, or other bounds around it."""
        from rightsizer.autoscaling import policies
        from rightsizer.changes import plan as config
        from rightsizer.changes.plan import capacity

        if approved.inputs.option.kind in self.deploys:
            return config.plan_new_config(approved)
        mine = capacity.scaled(approved)
        if not mine:
            return capacity.plan_count(approved)
        if all(policies.has_only_hourly_counts(target) for target in mine):
            return capacity.in_place_of_hours(approved)
        return capacity.plan_bounds(approved)
