"""Effects of an option on the running endpoint, and its rollback, as people read them."""

from typing import assert_never

from rightsizer.dimensions import dimension_of
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Option, OptionKind, WayBack
from rightsizer.domain.policy import TYPE_AND_COUNT
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.domain.way_back import WAY_BACK
from rightsizer.recommender.dimension import Restart

TEST_DEPLOYS = "the fleet is deployed twice, to add and to remove the shadow"
"""What a shadow test does to what serves (`cost_of_test` prices it)."""
TEST_ENDS = "the shadow of the test is removed when it ends"


def restart_text(option: Option) -> str:
    """Whether the model starts again: ``the model starts on new instances``."""
    return dimension_of(option.kind).restart_of(option) if option.restart_needed else Restart.NOTHING


def callers_text(option: Option) -> str:
    """Duties of callers; of an option that sleeps also who waits or fails, and how long."""
    sleeps = option.kind is OptionKind.SCALE_TO_ZERO
    return "; ".join(part for part in (option.client_change, *(option.notes if sleeps else ())) if part)


def way_back(option: Option, ours: bool = True) -> WayBack:
    """Who brings back what was there before; `ours` as of `rollback_text`."""
    if not dimension_of(option.kind).keeps:
        return WayBack.NONE
    return WayBack.PROGRAM if option.in_place and ours else WayBack.OWNER


def rollback_text(option: Option, ours: bool = True) -> str:
    """How the option is undone: ``can be rolled back: rightsizer deploys the old configuration again``.

    `ours`: the program may change the endpoint; where it may not, who changes it also undoes it.
    """
    does = dimension_of(option.kind).undo(option)
    match way_back(option, ours):
        case WayBack.PROGRAM:
            return f"can be rolled back: rightsizer {does}"
        case WayBack.OWNER:
            return f"can be rolled back by its owner, who {does}"
        case WayBack.NONE:
            return f"cannot be rolled back: once it is deleted, its owner {does}"
        case unreachable:
            assert_never(unreachable)


def effect_note(option: Option, ours: bool = True) -> str:
    """Both, as a note beside the effort; of a shadow test before it too."""
    test = f"the test first: {TEST_DEPLOYS}; then: " if option.test_usd else ""
    return f"{test}{restart_text(option)}; {rollback_text(option, ours)}"


def restart_of(recommendation: Recommendation) -> str:
    """Restart that an approval causes; a shadow test redeploys all variants, though it changes none."""
    if recommendation.gate is Gate.TEST:
        return TEST_DEPLOYS
    return (
        restart_text(recommendation.chosen_option) if recommendation.chosen_option is not None else "nothing restarts"
    )


def way_back_of(recommendation: Recommendation, approvable: bool = True) -> str:
    """How what is recommended is undone; a shadow test changes nothing that would have to be."""
    if recommendation.gate is Gate.TEST:
        return TEST_ENDS
    ours = approvable and not recommendation.owned_by
    return (
        rollback_text(recommendation.chosen_option, ours)
        if recommendation.chosen_option is not None
        else "nothing is changed"
    )


def guard_sentence(recommendation: Recommendation) -> str:
    """Automatic steps after an approval, as a sentence; empty where nothing is changed."""
    option = recommendation.chosen_option
    if option is None:
        return ""
    if recommendation.gate is Gate.TEST:
        shadow = "A shadow gets copies of the requests, and is removed when the test ends or its alarms say so."
        return f"{shadow} For that {TEST_DEPLOYS}."
    if option.kind is OptionKind.DELETE:
        return "It is marked and watched; any request ends that, and its owner gets the command. Nothing is deleted."
    if option.grows and option.adds_only:
        return "It stays, also where requests are still slow; whoever approved it can roll it back."
    alarms = dimension_of(option.kind).is_watched(option.kind) or dimension_of(option.kind).is_deployed(option)
    watches = "its alarms or requests say" if alarms else "the requests that it serves say"
    return f"It goes back by itself when {watches} so. {approval_note(recommendation)}".strip()


def approval_note(found: Recommendation) -> str:
    """Sentence that an approval of a type or count permits the way back too; empty of other changes."""
    option = found.chosen_option
    if option is None or found.kind is not EndpointKind.REAL_TIME or option.kind not in TYPE_AND_COUNT:
        return ""
    if option.restores or option.grows or option.target.others or option.target.minimum is not None:
        return ""
    fleet = f"{found.instance_count} × {found.instance_type}"
    return (
        f"For {WAY_BACK.days} days this also permits the way back to {fleet}, if users suffer and nothing else changed."
    )
