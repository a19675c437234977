"""Decisions of which an event is lost: a fixed sample of `make faults`, and each law shown to catch what breaks it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.aws.capacity_changes import CapacityChangeCalls
from rightsizer.aws.proposals import Proposals
from rightsizer.aws.recommendations import Recommendations
from rightsizer.changes import stages
from rightsizer.changes.overruled import overruling_reason
from rightsizer.changes.reconcile.steps import accepted_entry
from rightsizer.changes.stages import LOOK_AGAIN
from rightsizer.domain.capacity_change import CapacityChange, Ended, GroupPolicy, GroupSight, Send
from rightsizer.domain.change import Change
from rightsizer.domain.option import Option, Risk
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.errors import UnreadableError
from rightsizer.flows import apply_orders, change_capacity, read_state
from rightsizer.flows.begin_change import ChangeStarter
from rightsizer.ports.evaluation import RecommendationStore
from rightsizer.spot import capacity_change
from tests.faults import lost as lost_runs
from tests.faults.lost import PLACES, Case, cases, lost
from tests.faults.lost_places import OFF_AND_RESTORED
from tests.faults.lost_run import AGAINST, ALLOWS, START, UNREAD

SAMPLE = cases(len(PLACES))


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: f"{case.place}-{case.seed}")
def test_a_lost_decision_ends_as_the_laws_say(case: Case) -> None:
    assert lost(case) == []


def test_the_sample_has_every_place() -> None:
    assert {case.place for case in SAMPLE} == set(PLACES)


def found(place: str, words: str, first: int = 0, tries: int = 12) -> bool:
    """Whether one of a few runs breaks the law that says these words; `first` is a seed that does, as things stand."""
    return any(words in said for seed in dict.fromkeys((first, *range(tries))) for said in lost(Case(place, seed)))


def nothing(*_: Any, **__: Any) -> list[str]:
    return []


def test_a_tick_that_looks_for_no_approval_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_orders, "start_lost_approvals", nothing)
    assert found("the stream gives up", "no change answers it", first=6)


def test_an_approval_that_expires_without_a_word_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_orders, "catch_send_errors", lambda tell: lambda subject, text: True)
    assert found("apply is off for eight days", "nobody was told", first=7)


def test_a_tick_that_looks_for_no_order_to_go_back_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_orders, "start_lost_rollbacks", nothing)
    assert found("the stream gives up", "and nobody took it")


def test_a_change_that_asks_no_newer_judgement_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "overruling_reason", lambda *_, **__: None)
    assert found("apply is off for a day", "forbids it: under-provisioned", first=4)


@pytest.mark.parametrize("judged", ["risk too high", "late budget spent", "test first"])
def test_a_change_that_goes_by_what_is_listed_alone_is_caught(judged: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(option: Option, decided: Recommendation, newest: Recommendation | None, **_: Any) -> Reason | None:
        if newest is None or newest.finding is Finding.UNDER_PROVISIONED:
            return overruling_reason(option, decided, newest)
        known = replace(newest, gate=Gate.APPLY, options=tuple(_harmless(o) for o in newest.options))
        return overruling_reason(option, decided, known)

    monkeypatch.setattr(lost_runs, "JUDGED", (judged,))
    monkeypatch.setattr(stages, "overruling_reason", listed)
    assert found("apply is off for a day", f"forbids it: {judged}")


def _harmless(option: Option) -> Option:
    return replace(option, risk=Risk.VERY_LOW, test_usd=Decimal(0))


def test_a_change_that_takes_an_unreadable_judgement_for_a_yes_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Recommendations.recommendation

    def absent(self: Recommendations, endpoint: str) -> Recommendation | None:
        try:
            return read(self, endpoint)
        except UnreadableError:
            return None

    monkeypatch.setattr(lost_runs, "JUDGED", (UNREAD,))
    monkeypatch.setattr(Recommendations, "recommendation", absent)
    assert found("apply is off for a day", "nobody could read the newest judgement")


def test_a_change_that_takes_the_judgement_of_a_backup_for_the_newest_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lost_runs, "JUDGED", tuple(AGAINST))
    monkeypatch.setitem(lost_runs.PLACES, "apply is off, and the table is restored", OFF_AND_RESTORED)
    assert not found("apply is off, and the table is restored", "", first=1, tries=2)
    monkeypatch.setattr(Recommendations, "created_at", lambda self: START)
    assert found("apply is off, and the table is restored", "forbids it", first=1)


def test_a_change_that_never_hears_of_the_next_judgement_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_runs, "JUDGED", ("",))
    monkeypatch.setattr(Recommendations, "created_at", lambda self: START + timedelta(days=365))
    assert found("the table is restored", "the change still waits")


def test_a_change_that_waits_for_ever_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def deferred(self: ChangeStarter, change: Change, now: datetime, *_: Any) -> Change:
        return self._defer(change, now + LOOK_AGAIN, "busy", now)

    monkeypatch.setattr(lost_runs, "JUDGED", ("", ALLOWS))
    monkeypatch.setattr(ChangeStarter, "begin", deferred)
    said = lost(Case("the stream gives up", seed=6))  # of a person who does not go back
    assert said == ["nothing holds the change back, and it is planned without a plan: busy"]


def test_a_message_that_is_never_sent_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Proposals, "tell_again", lambda *_, **__: 0)
    assert found("propose is off for three days", "its message shows", first=1)


def test_a_change_that_gives_no_lock_back_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from rightsizer.aws.journal import TableJournal

    release = TableJournal._release

    def kept(self: TableJournal, kind: str, name: str, change_id: str) -> Any:
        return release(self, kind, f"{name}-not", change_id)

    monkeypatch.setattr(TableJournal, "_release", kept)
    assert found("MayChange is narrowed to nothing", "which is not open", first=2)


@pytest.mark.parametrize(
    ("place", "counts"),
    [
        ("the update's answer is lost", lambda change: accepted_entry(change, change.plan.turn)),
        ("the update is refused", lambda change: change.plan.turn and change.last_entry(change.plan.turn, "failed")),
    ],
)
def test_a_change_whose_update_counts_as_made_though_aws_shows_none_is_caught(
    place: str, counts: Callable[[Change], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    against = read_state._reason_against

    def made(store: RecommendationStore, change: Change) -> Reason | None:
        return None if counts(change) else against(store, change)

    monkeypatch.setattr(lost_runs, "JUDGED", tuple(AGAINST))
    monkeypatch.setattr(read_state, "_reason_against", made)
    assert found(place, "forbids it", first=1)


def test_an_errand_of_a_backup_that_is_carried_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_capacity, "restored_table_end", nothing)
    assert found("an errand, and the table is restored", "approved before the table was restored", first=7)


def test_a_tick_that_looks_for_no_errand_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_capacity.CapacityChanges, "tick", nothing)
    assert found("an errand, and the stream gives up", "nobody carries it out", first=5)


def test_an_errand_that_expires_without_a_word_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_capacity, "catch_send_errors", lambda tell: lambda subject, text: True)
    assert found("an errand, and apply is off for eight days", "nobody was told")


def test_an_errand_whose_write_counts_as_made_though_nothing_was_sent_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = capacity_change._group_policy_action

    def believed(capacity_change: CapacityChange, work: GroupPolicy, seen: GroupSight, *rest: Any) -> Any:
        sent = capacity_change.sent_at is not None and capacity_change.back is None
        return policy(capacity_change, work, replace(seen, policy=work.new) if sent else seen, *rest)

    monkeypatch.setattr(capacity_change, "_group_policy_action", believed)
    monkeypatch.setattr(CapacityChangeCalls, "perform", nothing)
    assert found("an errand, and the stream gives up", "has the old policy", first=2)


def test_an_errand_that_ends_as_rolled_back_before_it_went_back_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(capacity_change: CapacityChange, why: Reason, *_: Any) -> Ended:
        return Ended(ProposalState.ROLLED_BACK, why)

    monkeypatch.setattr(capacity_change, "_rollback_action", at_once)
    assert found("an errand, and the stream gives up", "and nobody took it")


def test_an_errand_that_is_withdrawn_without_a_word_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_capacity, "catch_send_errors", lambda tell: lambda subject, text: True)
    assert found("an errand, and MayChange is narrowed", "is withdrawn, and nobody was told", first=2)


def test_a_stack_that_goes_forward_although_it_may_change_nothing_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_capacity, "not_forward", lambda errand: Send())
    assert found("an errand, and MayChange is narrowed", "in a stack that may change nothing", first=2)


def test_a_role_that_may_not_write_the_old_policy_back_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    narrowed = "an errand, and MayChange is narrowed"
    read_only = replace(PLACES[narrowed], begins=lambda run: run.stack.redeploy(MayChange="read-only"))
    monkeypatch.setitem(lost_runs.PLACES, narrowed, read_only)
    assert found(narrowed, "and nobody took it", first=7)


def test_a_message_of_an_errand_that_is_never_sent_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Proposals, "tell_again", lambda *_, **__: 0)
    assert found("an errand, and propose is off", "its message shows")
