"""`rightsizer history` has the journal of every change that a proposal led to: stages, shadow tests, approvals."""

from rightsizer.domain.change import ChangeState
from rightsizer.domain.proposal import ProposalState
from rightsizer.terminal.history import changes_of
from tests.changes.memory import World
from tests.changes.test_four_eyes_of_tests import decided_again, four_eyes, refused_after_the_test
from tests.changes.test_stages import LATER, on, ordered_back, planned, proven, second, seen
from tests.changes.test_test_first import asked, finished, follow_up, sure
from tests.changes.test_test_first import on as until_followed


def ids_of(w: World) -> list[str]:
    return [one.id for one in changes_of(w.kept.load, w.shown())]


def test_after_the_last_stage_the_first_one_is_still_told() -> None:
    w = planned()
    first = proven(w)
    seen(w, LATER)
    last = on(w, 48)
    assert w.shown().change_id == last.id
    assert ids_of(w) == [last.id, first.id]


def test_a_stage_that_went_back_is_told_beside_the_one_that_stands() -> None:
    w = planned()
    first = proven(w)
    seen(w, LATER)
    on(w, 48)
    ordered_back(w)
    assert on(w, 6).state is ChangeState.ROLLED_BACK
    assert w.shown().change_id == first.id
    assert ids_of(w) == [first.id, second(w).id]


def test_the_shadow_test_is_told_beside_the_change_that_followed_it() -> None:
    w = asked()
    test = finished(w)
    sure(w)
    w.start()
    change = until_followed(w, 8)
    assert ids_of(w) == [change.id, test.id]


def test_the_test_before_an_approval_by_somebody_else_is_told_too() -> None:
    w = refused_after_the_test(four_eyes())
    decided_again(w, "slack:U2")
    change = w.start()
    assert ids_of(w) == [change.id, w.change.id, follow_up(w).id]


def test_a_proposal_that_nobody_approved_has_no_journal() -> None:
    w = planned()
    assert w.shown().state is ProposalState.APPROVED
    assert ids_of(w) == []
