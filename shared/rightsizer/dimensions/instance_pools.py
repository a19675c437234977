"""Today's type behind the new one, for the case that the new one has no capacity."""

from rightsizer.changes.dimension import Approved, Planned
from rightsizer.dimensions.dimension import Dimension
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.reason import Reason


class InstancePools(Dimension):
    """Types in order of priority, in one variant."""

    kinds = (OptionKind.INSTANCE_POOLS,)
    deploys = kinds
    """Pools are a part of the configuration."""

    def describe(self, option: Option) -> str:
        """``use the instance pools ml.g6.xlarge then ml.g5.xlarge``."""
        return f"use the instance pools {' then '.join(option.target.pools) or option.target.instance_type}"

    def plan(self, given: Approved) -> Planned | tuple[Reason, ...]:
        """A clone of the configuration."""
        from rightsizer.changes.plan.config import new_config

        return new_config(given)
