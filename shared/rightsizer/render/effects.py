"""What carrying an option out does to what runs, and how it is undone, as people read it."""

from typing import assert_never

from rightsizer.domain.option import Option, OptionKind, WayBack, way_back
from rightsizer.domain.recommendation import Gate, Recommendation

NOTHING_DEPLOYED = frozenset(
    {
        OptionKind.INSTANCE_COUNT,
        OptionKind.AUTOSCALING,
        OptionKind.SCHEDULE,
        OptionKind.COPIES,
        OptionKind.SCALE_TO_ZERO,
    }
)
"""Kinds without a deployment, whose change no roll-back alarm watches: the requests that it serves are read."""


TEST_DEPLOYS = "the fleet is deployed twice, to add and to remove the shadow"
"""What a shadow test does to what serves (`cost_of_test` prices it)."""
TEST_ENDS = "the shadow of the test is removed when it ends"


def restart(option: Option) -> str:
    """Whether the model starts again: ``the model starts on new instances``."""
    if not option.restart_needed:
        return "nothing restarts"
    match option.kind:
        case OptionKind.PLACEMENT:
            return "the copies start again, some at a time"
        case OptionKind.ASYNC | OptionKind.SERVERLESS | OptionKind.PACKING | OptionKind.SCALE_TO_ZERO:
            return "a new endpoint starts beside this one"
        case _:
            return "the model starts on new instances"


def undone(option: Option, ours: bool = True) -> str:
    """Who can bring back what: ``can be rolled back: rightsizer deploys the old configuration again``.

    `ours`: the program may change the endpoint; where it may not, who changes it also undoes it.
    """
    back = way_back(option.kind, option.in_place and ours)
    match back:
        case WayBack.PROGRAM:
            return f"can be rolled back: rightsizer {_restores(option)}"
        case WayBack.OWNER:
            return f"can be rolled back by its owner, who {_restores(option)}"
        case WayBack.NONE:
            return f"cannot be rolled back: once it is deleted, its owner {_restores(option)}"
        case unreachable:
            assert_never(unreachable)


def asked(option: Option, ours: bool = True) -> str:
    """Both, as a note beside the effort; of a shadow test before it too."""
    test = f"the test first: {TEST_DEPLOYS}; then: " if option.test_usd else ""
    return f"{test}{restart(option)}; {undone(option, ours)}"


def restart_of(found: Recommendation) -> str:
    """What approving what is recommended restarts; a shadow test deploys all that serves, though it changes nothing."""
    if found.gate is Gate.TEST:
        return TEST_DEPLOYS
    return restart(found.chosen) if found.chosen is not None else "nothing restarts"


def way_back_of(found: Recommendation, approvable: bool = True) -> str:
    """How what is recommended is undone; a shadow test changes nothing that would have to be."""
    if found.gate is Gate.TEST:
        return TEST_ENDS
    ours = approvable and not found.owned_by
    return undone(found.chosen, ours) if found.chosen is not None else "nothing is changed"


def guarded(found: Recommendation) -> str:
    """What happens to an approved change without anybody asking, as a sentence; empty where nothing is changed."""
    option = found.chosen
    if option is None:
        return ""
    if found.gate is Gate.TEST:
        shadow = "A shadow gets copies of the requests, and is removed when the test ends or its alarms say so."
        return f"{shadow} For that {TEST_DEPLOYS}."
    if option.kind is OptionKind.DELETE:
        return "It is marked and watched; any request ends that, and its owner gets the command. Nothing is deleted."
    watches = "the requests that it serves say" if option.kind in NOTHING_DEPLOYED else "its alarms or requests say"
    return f"It goes back by itself when {watches} so."


def _restores(option: Option) -> str:  # noqa: C901  (one arm for each kind, so that none is missing)
    match option.kind:
        case (
            OptionKind.INSTANCE_TYPE
            | OptionKind.TYPE_AND_COUNT
            | OptionKind.FEWER_GPUS
            | OptionKind.ROUTING
            | OptionKind.INSTANCE_POOLS
            | OptionKind.SCALE_IN
            | OptionKind.OTHER_ARCHITECTURE
        ):
            return "deploys the old configuration again"
        case OptionKind.INSTANCE_COUNT:
            return "puts back the old count or autoscaling"
        case OptionKind.AUTOSCALING:
            return "registers the old bounds again"
        case OptionKind.SCHEDULE:
            return "removes the schedule and sets the old count"
        case OptionKind.COPIES:
            return "sets the old numbers of copies again"
        case OptionKind.PLACEMENT:
            return "gives the components their old placement again"
        case OptionKind.SCALE_TO_ZERO if option.in_place:
            return "puts back the old bounds and count"
        case OptionKind.SCALE_TO_ZERO if not option.restart_needed:
            return "puts back the old least copies of its components"
        case OptionKind.SCALE_TO_ZERO | OptionKind.ASYNC | OptionKind.SERVERLESS:
            return "sends the callers back to this endpoint, as long as it is kept"
        case OptionKind.PACKING:
            return "sends the callers back to the endpoints of before, as long as they are kept"
        case OptionKind.DELETE:
            return "creates it anew from its kept configuration"
        case unreachable:
            assert_never(unreachable)
