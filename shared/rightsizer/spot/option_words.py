"""What is said about the options of a group."""

from collections.abc import Sequence

from rightsizer.domain.hardware import InstanceType
from rightsizer.domain.option import Excluded
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.scaling_group import GpuNeed, Group, Outlook
from rightsizer.spot.group_options import slower


def unchecked(need: GpuNeed) -> tuple[str, ...]:
    """What the need of the group does not rest on."""
    if need.measured:
        return () if need.gpu_share is not None else ("how busy the GPUs are: the agent does not collect it",)
    return (
        "the measured need: no week of the CloudWatch agent's NVIDIA metrics, the present type's own size stands in",
    )


def speeds(need: GpuNeed, present: InstanceType, slow: Sequence[InstanceType]) -> tuple[str, ...]:
    """Which types may be too slow, where nothing was measured."""
    if need.gpu_share is not None or not slow:
        return ()
    named = ", ".join(f"{kind.ec2_name} (up to {slower(present, kind):.1f} times slower)" for kind in slow)
    return (f"whether the work is fast enough on {named}",)


def as_good(group: Group, names: Sequence[str], before: Outlook, after: Outlook) -> Excluded:
    """Why nothing is proposed."""
    sentence = (
        f"{group.name} has {len(group.purchase.instance_types)} types in {len(group.zones)} zones; {len(names)} types "
        f"would cost {after.usd_per_month:.0f} USD a month instead of {before.usd_per_month:.0f} and lose "
        f"{after.lost_hours_per_month:.1f} instance hours instead of {before.lost_hours_per_month:.1f}"
    )
    return Excluded(group.name, Reason(Code.ALREADY_RIGHT, sentence))


def why(group: Group, names: Sequence[str], before: Outlook, after: Outlook) -> Reason:
    """What the option is worth, with the numbers."""
    return Reason(
        Code.MORE_POOLS,
        f"{group.name}: {len(names)} types in {len(group.zones)} zones instead of "
        f"{len(group.purchase.instance_types)} cost {after.usd_per_month:.0f} USD a month instead of "
        f"{before.usd_per_month:.0f}, with {after.interruptions_per_month:.0f} interrupted instances instead of "
        f"{before.interruptions_per_month:.0f} expected",
    )
