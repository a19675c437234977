"""The policy document at the moment a change begins: the endpoint's own limits, list and window, by its tags then."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Gate
from rightsizer.errors import ReadError
from rightsizer.policy_reader import lost_document, read_policy
from tests.changes.account import Load
from tests.changes.memory import World, world
from tests.policies import document

PROPOSE = {"rightsizer:mode": "propose"}
AUTO = {"rightsizer:mode": "auto"}
CLOSED = "sat 03:00-03:10"


def under(said: dict[str, Any], **given: Any) -> World:
    """The world with a policy document."""
    found = world(**{"tags": PROPOSE, **given})
    return replace(found, apply=replace(found.apply, policy=document(said)))


@pytest.mark.parametrize(
    ("tags", "state"),
    [
        ({"env": "prod"}, ChangeState.PLANNED),
        ({}, ChangeState.PLANNED),
        ({"env": "dev"}, ChangeState.RUNNING),
        ({"env": "prod", "owner": "Search"}, ChangeState.RUNNING),
    ],
)
def test_the_window_of_the_endpoints_environment_or_owner_counts(tags: dict[str, str], state: ChangeState) -> None:
    said = {
        "environments": {"production": {"window": CLOSED}},
        "owners": {"search": {"window": "daily 00:00-00:00"}},
    }
    assert under(said, tags=PROPOSE | tags).start().state is state


def test_the_list_of_the_owner_is_asked_again_right_before_a_change_begins() -> None:
    said = {"owners": {"search": {"approvers": ["U0SEARCH"]}}}
    w = under(said, tags=PROPOSE | {"owner": "search"}, by="slack:U1")
    change = w.start()
    assert (change.state, change.reason and change.reason.code) == (ChangeState.REFUSED, Code.NOT_APPROVER)
    assert "owners.search.approvers of the policy document" in w.shown().outcome
    assert under(said, by="slack:U1").start().state is ChangeState.RUNNING


def test_four_eyes_hold_who_owns_the_endpoint() -> None:
    said = {
        "environments": {"production": {"four_eyes": True}},
        "owners": {"search": {"people": ["U1"], "approvers": ["U1", "U2"]}},
    }
    tags = PROPOSE | {"owner": "search"}
    assert "four eyes: U1 owns" in under(said, tags=tags, by="slack:U1").start().outcome
    assert under(said, tags=tags, by="slack:U2").start().state is ChangeState.RUNNING
    assert under(said, tags=tags | {"env": "dev"}, by="slack:U1").start().state is ChangeState.RUNNING


def test_four_eyes_hold_who_ordered_it() -> None:
    said = {"defaults": {"four_eyes": True}}
    ordered = {"ordered_by": "slack:U1"}
    assert "four eyes: U1 asked for this" in under(said, by="slack:U1", proposed=ordered).start().outcome
    assert under(said, by="slack:U2", proposed=ordered).start().state is ChangeState.RUNNING


def test_a_document_that_cannot_be_read_holds_an_approval_and_withdraws_none() -> None:
    w = world(tags=PROPOSE)
    w = replace(w, apply=replace(w.apply, policy=lost_document("policy document: gone")))
    change = w.start()
    assert change.state is ChangeState.PLANNED
    assert "policy document: gone" in change.outcome
    assert w.shown().state is not ProposalState.WITHDRAWN
    w = replace(w, apply=replace(w.apply, policy=document({})))
    w.advance(timedelta(hours=1))
    assert w.apply.tick(w.now)[0].state is ChangeState.RUNNING


def test_a_broken_value_holds_the_changes_that_it_is_about_and_no_other() -> None:
    broken = read_policy('{"environments": {"production": {"window": "noon"}}}')
    held, free = world(tags=PROPOSE), world(tags=PROPOSE | {"env": "dev"})
    waits = replace(held, apply=replace(held.apply, policy=broken)).start()
    assert (waits.state, "environments.production.window" in waits.outcome) == (ChangeState.PLANNED, True)
    assert replace(free, apply=replace(free.apply, policy=broken)).start().state is ChangeState.RUNNING


def test_automatic_mode_begins_nothing_where_the_document_says_no_by_then() -> None:
    said = {"environments": {"production": {"automatic": False}}}
    w = under(said, by="policy", tags=AUTO, gate=Gate.APPLY)
    assert w.start().state is ChangeState.REFUSED
    assert "the policy document lets nothing of this endpoint change by itself" in w.shown().outcome
    assert under(said, by="policy", tags=AUTO | {"env": "dev"}, gate=Gate.APPLY).start().state is ChangeState.RUNNING
    assert under(said).start().state is ChangeState.RUNNING


def test_the_latency_of_the_document_is_what_a_change_is_held_to() -> None:
    said = {"defaults": {"objective": 300}}
    assert under(said).start().objective_p95_s == 0.3
    assert under(said, tags=PROPOSE | {"rightsizer:p95-ms": "120"}).start().objective_p95_s == 0.12
    assert under({"defaults": {"objective": "as-today"}}).start().objective_p95_s is None


@pytest.mark.parametrize(("overhead_s", "left_s"), [(0.01, 0.3), (0.1, 0.2), (0.2, None), (0.3, None)])
def test_a_change_is_held_to_what_is_left_for_the_model_of_what_callers_were_promised(
    overhead_s: float, left_s: float | None
) -> None:
    begun = under({"defaults": {"objective": 300}}, load=Load(overhead_s=overhead_s)).start()
    assert begun.objective_p95_s == (left_s if left_s is None else pytest.approx(left_s))


def test_a_change_is_held_to_a_minute_of_a_longer_promise_as_the_decision_is() -> None:
    tags = PROPOSE | {"rightsizer:p95-ms": "300000"}
    assert under({}, tags=tags, load=Load(overhead_s=5.0)).start().objective_p95_s == pytest.approx(55.0)


def test_a_change_does_not_begin_while_its_tags_cannot_be_read_and_goes_on_once_it_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = {"environments": {"development": {"cooldown_hours": 1}}}
    w = under(said)
    begun = w.start()
    assert begun.state is ChangeState.RUNNING

    def unread(ref: object) -> dict[str, str]:
        raise ReadError("reading the tags: no answer")

    limits = w.apply.limits_of(begun)
    changer = w.apply.changer
    monkeypatch.setattr(type(changer), "tags", lambda self, ref: unread(ref))
    assert w.apply.limits_of(begun) == limits
    with pytest.raises(ReadError):
        w.apply.limits_of(replace(begun, before=None))
