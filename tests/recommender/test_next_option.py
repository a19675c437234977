"""What an evaluation keeps ready for a lack of capacity, and how a lack of yesterday moves the choice of today."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.domain.endpoint import Mode
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate, Recommendation
from rightsizer.recommender.gate import cooldown_reason
from tests.recommender import kit
from tests.recommender.kit import judge


def judged(mode: Mode = Mode.AUTO, *past: PastChange) -> Recommendation:
    window = kit.window(kit.steady())
    runs = kit.endpoint(mode=mode)
    return judge(runs, [window], kit.prices(), kit.catalogue(), {}, History(past), Policy(), kit.NOW)


def lacked(to: str, days: float) -> PastChange:
    return PastChange(
        kit.NOW - timedelta(days=days), "ml.g6e.xlarge", to, 1, 1, PastEnd.UPDATE_FAILED, failure="capacity"
    )


def types(found: Recommendation) -> list[str]:
    return [o.target.instance_type for o in found.options]


def test_automatic_mode_keeps_a_second_option_that_passed_the_same_gate() -> None:
    found = judged()
    assert found.gate is Gate.APPLY
    second = found.options[1]
    assert second.target.instance_type != found.options[0].target.instance_type
    assert second.by_itself
    assert second.usd_per_month >= found.options[0].usd_per_month


def test_no_option_is_marked_where_a_person_decides() -> None:
    assert not any(option.by_itself for option in judged(Mode.PROPOSE).options)


@pytest.mark.parametrize("days", [0.5, 2.0, 6.0])
def test_a_type_that_lacked_capacity_lately_yields_to_the_next_one(days: float) -> None:
    first = judged().options[0].target.instance_type
    found = judged(Mode.AUTO, lacked(first, days))
    assert types(found)[0] != first
    assert first in types(found)[1:], "it is no fault of the type: it stays an option"
    assert found.gate is Gate.APPLY, found.gate_reason.sentence


def test_the_type_that_lacked_capacity_itself_rests_as_after_any_change() -> None:
    every = [lacked(name, 1) for name in types(judged())]
    found = judged(Mode.AUTO, *every, *(lacked(name, 1) for name in kit.TYPES))
    assert (found.gate, found.gate_reason.code) == (Gate.SILENT, Code.COOLDOWN)


def test_a_lack_of_last_month_is_forgotten() -> None:
    assert types(judged(Mode.AUTO, lacked(types(judged())[0], 30)))[0] == types(judged())[0]


def test_a_change_that_was_served_still_rests_before_another_type() -> None:
    served = replace(lacked(types(judged())[0], 1), ended=PastEnd.ROLLED_BACK, failure="alarm")
    assert judged(Mode.AUTO, served).gate is not Gate.APPLY


def test_a_type_that_stands_in_is_not_ruled_out_as_well() -> None:
    """The same GPU on a smaller host is dearer than what is chosen, and serves where that has no capacity."""
    known = ("ml.g6e.2xlarge", "ml.g5.2xlarge", "ml.g6e.xlarge")
    prices = kit.prices(without=[name for name in kit.TYPES if name not in known])
    runs = kit.endpoint("ml.g6e.2xlarge", 1, mode=Mode.AUTO)
    found = judge(runs, [kit.window(kit.steady())], prices, kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert types(found)[:2] == ["ml.g5.2xlarge", "ml.g6e.xlarge"]
    assert "ml.g6e.xlarge" not in {out.instance_type for out in found.excluded}
    asked = judge(
        replace(runs, mode=Mode.PROPOSE),
        [kit.window(kit.steady())],
        prices,
        kit.catalogue(),
        {},
        History(),
        Policy(),
        kit.NOW,
    )
    (dearer,) = (out.reason for out in asked.excluded if out.instance_type == "ml.g6e.xlarge")
    assert (dearer.code, types(asked)[0]) == (Code.DEARER_THAN_OFFERED, "ml.g5.2xlarge")


@pytest.mark.parametrize(
    ("ended", "days", "to", "waits"),
    [
        (PastEnd.PROVEN, 1.0, "ml.g5.xlarge", False),
        (PastEnd.PROVEN, 0.9, "ml.g5.xlarge", True),
        (PastEnd.PROVEN, 1.0, "ml.g6.xlarge", True),
        (PastEnd.PROVEN, 3.0, "ml.g6.xlarge", False),
        (PastEnd.ROLLED_BACK, 1.0, "ml.g5.xlarge", True),
    ],
)
def test_a_step_on_the_type_that_the_last_change_brought_rests_for_one_day(
    ended: PastEnd, days: float, to: str, waits: bool
) -> None:
    """Another type waits for three days, and so does a type that was brought and taken back."""
    moved = replace(lacked("ml.g5.xlarge", days), ended=ended, failure="alarm" if ended.value == "rolled-back" else "")
    assert (cooldown_reason(History((moved,)), Policy(), kit.NOW, to, "ml.g5.xlarge") is not None) == waits


@pytest.mark.parametrize(
    ("moved", "step", "to", "until"),
    [
        (2.0, 1.0, "ml.g6.xlarge", "72 h after that, on Sat 21 Nov 2026, 00:00 UTC"),
        (2.9, 0.5, "ml.g6.xlarge", "24 h after that, on Fri 20 Nov 2026, 12:00 UTC"),
        (3.0, 1.0, "ml.g6.xlarge", None),
        (2.0, 1.0, "ml.g5.xlarge", None),
    ],
)
def test_a_step_on_a_new_type_does_not_shorten_the_wait_of_another_type(
    moved: float, step: float, to: str, until: str | None
) -> None:
    at = kit.NOW - timedelta(days=step)
    pasts = (
        replace(lacked("ml.g5.xlarge", moved), ended=PastEnd.PROVEN),
        PastChange(at, "ml.g5.xlarge", "ml.g5.xlarge", 4, 3, PastEnd.PROVEN),
    )
    tested = replace(lacked("ml.g6.xlarge", 0.1), ended=PastEnd.TESTED, failure="")
    found = cooldown_reason(History((*pasts, tested)), Policy(), kit.NOW, to, "ml.g5.xlarge")
    assert (found and found.sentence.partition("can come ")[2]) == until


def test_a_change_of_type_that_went_back_or_was_undone_by_hand_holds_no_later_step_back() -> None:
    step = PastChange(kit.NOW - timedelta(days=1), "ml.g5.xlarge", "ml.g5.xlarge", 4, 3, PastEnd.PROVEN)
    back = replace(lacked("ml.g6.xlarge", 2.0), ended=PastEnd.ROLLED_BACK, failure="alarm")
    moved = replace(lacked("ml.g6.xlarge", 2.0), ended=PastEnd.PROVEN)
    for past in (back, moved):
        assert cooldown_reason(History((past, step)), Policy(), kit.NOW, "ml.g5.xlarge", "ml.g5.xlarge") is None
    assert cooldown_reason(History((back, step)), Policy(), kit.NOW, "ml.g6.xlarge", "ml.g5.xlarge") is None
