"""A finished plan, before anything is written."""

from dataclasses import dataclass

from rightsizer.model.option import OptionKind
from rightsizer.model.plan import Before, Plan

CONFIG_KINDS = frozenset(
    {
        OptionKind.INSTANCE_TYPE,
        OptionKind.TYPE_AND_COUNT,
        OptionKind.FEWER_GPUS,
        OptionKind.INSTANCE_POOLS,
        OptionKind.ROUTING,
        OptionKind.SCALE_IN,
    }
)
"""Options that need a new configuration."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What a change stores before its first write."""

    before: Before
    plan: Plan
    notes: tuple[str, ...] = ()
