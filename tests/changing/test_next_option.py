"""A lack of capacity for the chosen type: automatic mode goes on with the next option that passed the same gate."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from rightsizer.domain.change import ChangeState, FailureClass
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.policy import Switch
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.recommendation import Gate
from tests.changing.world import NAME, NEW_TYPE, OLD_TYPE, World, an_option, world

OTHER = "ml.g5.2xlarge"
FIRST = an_option()
SECOND = an_option(target=Target(OTHER, 1), saving_usd_per_month=Decimal(321), by_itself=True)


def offered(*options: Any, by: str = "policy") -> Any:
    judged = {"gate": Gate.APPLY, "options": options}
    return world(options[0], by=by, judged=judged, tags={"rightsizer:mode": "auto"})


def lacking(w: World, times: int) -> None:
    w.box.script_deployment(NAME, *["capacity"] * times)


def test_automatic_mode_goes_on_with_the_next_option_an_hour_later() -> None:
    with offered(FIRST, SECOND) as w:
        lacking(w, 1)
        began = w.now
        w.start()
        w.run(1)
        waiting = w.change
        change = w.run(12)
        past = {p.to_type: (p.ended, p.failure) for p in w.store.history(NAME).endpoint}
        (variant,) = w.live()["ProductionVariants"]
    assert waiting.state is ChangeState.PLANNED
    assert waiting.next_due is not None
    assert waiting.next_due - began < timedelta(hours=3)
    assert OTHER in waiting.outcome
    assert (change.state, change.option.target.instance_type) == (ChangeState.PROVEN, OTHER)
    assert change.saving_usd_per_month == 321
    assert past == {NEW_TYPE: ("update-failed", "capacity"), OTHER: ("proven", "")}
    assert variant["CurrentInstanceCount"] == 1


def test_an_option_that_automatic_mode_may_not_apply_is_left_to_a_person_and_the_pools_are_tried() -> None:
    with offered(FIRST, replace(SECOND, by_itself=False)) as w:
        lacking(w, 1)
        w.start()
        change = w.run(24)
    assert (change.state, change.option.kind) == (ChangeState.PROVEN, OptionKind.INSTANCE_POOLS), change.outcome
    assert change.option.target.pools == (NEW_TYPE, OLD_TYPE)


def test_a_model_that_does_not_start_is_remembered_by_its_name() -> None:
    with offered(FIRST) as w:
        w.box.script_deployment(NAME, "health_check")
        w.start()
        w.run(24)
        (past,) = w.store.history(NAME).endpoint
    assert (past.no_start, past.models) == (True, (f"{NAME}-model",))


def test_what_a_person_approved_is_what_is_done() -> None:
    with offered(FIRST, SECOND, by="slack:U1") as w:
        lacking(w, 1)
        w.start()
        change = w.run(24)
    assert change.option.target.pools == (NEW_TYPE, OLD_TYPE), "the next option was not what they approved"


def test_where_the_next_option_has_no_quota_the_chosen_type_is_tried_again_later() -> None:
    with offered(FIRST, SECOND) as w:
        lacking(w, 1)
        w.box.world.quotas.set(OTHER, 0)
        w.start()
        w.run(3)
        waiting, asked = w.change, w.shown()
        change = w.run(24)
    assert (asked.state, asked.outcome) == (ProposalState.APPLYING, waiting.outcome)
    assert waiting.state is ChangeState.PLANNED, waiting.outcome
    assert "is 0" in waiting.outcome
    assert waiting.option.target.instance_type == NEW_TYPE
    assert (change.state, change.option.target.instance_type) == (ChangeState.PROVEN, NEW_TYPE), change.outcome
    assert change.saving_usd_per_month == FIRST.saving_usd_per_month


def test_where_the_next_option_lacks_too_its_pools_are_the_last_try() -> None:
    with offered(FIRST, SECOND) as w:
        lacking(w, 3)
        w.start()
        change = w.run(60)
        updates = w.box.calls.of("sagemaker", "UpdateEndpoint")
        past = sorted((p.to_type, p.failure) for p in w.store.history(NAME).endpoint)
    assert (change.state, change.failure) == (ChangeState.ROLLED_BACK, FailureClass.CAPACITY)
    assert change.option.target.pools == (OTHER, OLD_TYPE)
    assert len(updates) == 3
    assert past == sorted([(NEW_TYPE, "capacity"), (OTHER, "capacity")])


def test_the_proposal_says_why_a_further_try_waits() -> None:
    with offered(FIRST, SECOND) as w:
        lacking(w, 1)
        w.start()
        w.run(1)
        w.journal.set_switch(Switch(frozen=True, by="slack:U9", at=w.now))
        w.run(3)
        waiting, asked = w.change, w.shown()
        w.journal.set_switch(Switch())
        change = w.run(24)
        ended = w.shown()
    assert "frozen by slack:U9" in waiting.outcome
    assert (asked.state, asked.outcome) == (ProposalState.APPLYING, waiting.outcome)
    assert (change.state, ended.state) == (ChangeState.PROVEN, ProposalState.PROVEN)
