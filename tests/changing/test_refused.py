"""A refusal is the end of one change only: the same proposal may be asked and approved again."""

from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.recommendation import Gate
from tests.changing.scenarios import BY_TAG
from tests.changing.world import NAME, World, world
from tests.table import decide


def asked_again(w: World) -> None:
    """The next evaluation asks with the same id, and somebody approves."""
    fresh = replace(
        w.proposal,
        state=ProposalState.PENDING,
        decision=None,
        created_at=w.now,
        expires_at=w.now + timedelta(days=14),
    )
    assert w.store.save(replace(w.proposal.recommendation, evaluated_at=w.now), fresh)
    decide(w.store, fresh.id, Decision(ProposalState.APPROVED, "slack:U1", w.now), w.now)


def set_mode(w: World, mode: str) -> None:
    w.box.world.tags.put(w.box.world.fleet.arn("endpoint", NAME), {"rightsizer:mode": mode})


def test_a_proposal_that_was_refused_and_is_approved_again_is_carried_out_once() -> None:
    with world(tags={"rightsizer:mode": "off"}) as w:
        first = w.start()
        assert first.state is ChangeState.REFUSED
        set_mode(w, "propose")
        w.box.clock.advance(timedelta(hours=30))
        asked_again(w)
        second = w.start()
        assert (second.state, second.id != first.id) == (ChangeState.RUNNING, True), second.outcome
        assert w.start().id == second.id
        assert len(list(w.journal.open_changes())) == 1
        shown = w.shown()
    assert (shown.state, shown.change_id) == (ProposalState.APPLYING, second.id)


def test_a_second_refusal_withdraws_the_proposal_again_and_is_told_again() -> None:
    with world(tags={"rightsizer:mode": "off"}) as w:
        w.start()
        told = len(w.told)
        w.box.clock.advance(timedelta(hours=30))
        asked_again(w)
        assert w.start().state is ChangeState.REFUSED
        assert (w.shown().state, len(w.told)) == (ProposalState.WITHDRAWN, told + 1)


@pytest.mark.parametrize("code", ["Throttling", "ServiceUnavailable"])
@pytest.mark.parametrize(
    ("service", "operation"), [("iam", "SimulatePrincipalPolicy"), ("ecr", "BatchGetImage"), ("ec2", "Describe*")]
)
def test_a_question_of_preflight_that_is_throttled_is_asked_again(service: str, operation: str, code: str) -> None:
    """Automatic mode, which takes no risk of a tag that nobody could compare."""
    judged, latest = {"gate": Gate.APPLY}, BY_TAG.rpartition(":")[0] + ":latest"
    with world(judged=judged, by="policy", tags={"rightsizer:mode": "auto"}, image=latest) as w:
        w.box.gate.fail(service, operation, code, times=2)
        assert not w.start().is_closed, w.change.outcome
        assert w.run(12).state is ChangeState.PROVEN, w.change.outcome


def test_a_region_that_refuses_the_switch_for_metrics_gets_a_configuration_without_it() -> None:
    with world() as w:
        w.box.world.fleet.takes_metrics_config = False
        w.start()
        change = w.run(12)
        made = w.box.world.fleet.config(w.box.config_name(NAME)).request
    assert change.state is ChangeState.PROVEN, change.outcome
    assert "MetricsConfig" not in made
    assert any("MetricsConfig is refused here, so it is left out" in entry.detail for entry in change.journal)


def test_a_refused_proposal_is_not_asked_again_within_a_day() -> None:
    with world(tags={"rightsizer:mode": "off"}) as w:
        w.start()
        fresh = replace(w.proposal, state=ProposalState.PENDING, decision=None, created_at=w.now)
        w.box.clock.advance(timedelta(hours=23))
        assert not w.store.save(replace(w.proposal.recommendation, evaluated_at=w.now), fresh)
        w.box.clock.advance(timedelta(hours=2))
        assert w.store.save(replace(w.proposal.recommendation, evaluated_at=w.now), fresh)
