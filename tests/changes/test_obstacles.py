"""Obstacles right before the first write that the endpoint feels."""

from datetime import timedelta

from rightsizer.changes.reconcile.obstacles import approval_age_reason, expiry_action
from rightsizer.changes.reconcile.steps import SHOWS
from rightsizer.domain.plan import StepKind
from rightsizer.domain.reason import Code
from tests.changes.memory import world


def test_an_approval_is_good_for_seven_days_and_then_tells_the_cause_of_the_wait() -> None:
    w = world()
    w.start()
    change = w.change
    assert approval_age_reason(change, change.expires_at - timedelta(seconds=1)) is None
    late = approval_age_reason(change, change.expires_at)
    assert late is not None
    assert late.code is Code.EXPIRED
    assert "waited 7 days" in late.sentence
    assert late.sentence.endswith(change.outcome)


def test_an_update_sent_a_moment_ago_is_not_taken_for_one_that_was_never_made() -> None:
    w = world()
    w.advance(timedelta(days=6, hours=23, minutes=40))
    w.start()
    change = w.upto(StepKind.UPDATE_ENDPOINT)
    sent = next(e for e in change.journal if e.detail == StepKind.UPDATE_ENDPOINT.value)
    assert expiry_action(change, change.expires_at + timedelta(minutes=1)) is None
    assert expiry_action(change, sent.at + SHOWS) is not None
