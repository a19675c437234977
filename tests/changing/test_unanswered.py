"""An update of the endpoint whose answer was lost counts as made for as long as AWS may still show it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError, ReadTimeoutError

from rightsizer.changes.reconcile.steps import SHOWS, may_show_until
from rightsizer.domain.change import Change, ChangeState, StepResult
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding
from rightsizer.flows.orders import Orders
from tests.changing import scenarios
from tests.changing.test_expired import updates
from tests.changing.test_lost import ticks
from tests.changing.test_overruled import judged
from tests.changing.world import NAME, World, world

MINUTE = timedelta(minutes=1)
CALL: Any = vars(BaseClient)["_make_api_call"]
LIMITS = ChangeLimits(probation=timedelta(hours=2), rewire_alarms=True)


@contextmanager
def answer_lost(*, reached: bool) -> Iterator[None]:
    """The connection breaks before the answer of each update comes; `reached`: AWS got the request and acts on it."""

    def lossy(self: Any, operation: str, params: Any) -> Any:
        if operation != "UpdateEndpoint":
            return CALL(self, operation, params)
        if reached:
            CALL(self, operation, params)
        raise ReadTimeoutError(endpoint_url="https://api.sagemaker.eu-west-1.amazonaws.com/")

    with patch.object(BaseClient, "_make_api_call", lossy):
        yield


def asked(w: World, *, reached: bool = False) -> Change:
    """The change asked for its update once, and the answer was lost."""
    w.start()
    with answer_lost(reached=reached):
        for _ in range(200):
            if any(entry.detail.startswith("again:unanswered:") for entry in w.change.journal):
                return w.change
            w.run(0.02)
    raise AssertionError("no update was asked")


def under_provisioned(w: World) -> None:
    judged(w, finding=Finding.UNDER_PROVISIONED, reason=Reason(Code.UNDER_PROVISIONED, "requests wait"))


def assert_withdrawn(w: World, ending: ChangeState) -> None:
    """Nothing was deployed, and a person was told the reason."""
    change, shown = w.change, w.shown()
    assert (change.state, updates(w), w.box.config_name(NAME)) == (ending, 0, f"{NAME}-config")
    assert change.reason is not None
    assert change.reason.code is Code.NEWER_JUDGEMENT
    assert "under-provisioned" in shown.outcome
    assert shown.state in (ProposalState.WITHDRAWN, ProposalState.ROLLED_BACK)
    assert any("under-provisioned" in text for _, text in w.told)
    assert w.journal.held_by(NAME) == ""


def test_after_a_freeze_a_lost_update_is_not_asked_again_against_a_newer_judgement() -> None:
    with world(limits=LIMITS) as w:
        asked(w)
        Orders(w.journal).freeze("U1", w.now)
        under_provisioned(w)
        ticks(w, SHOWS + 10 * MINUTE)
        Orders(w.journal).thaw("U1", w.now)
        ticks(w, timedelta(hours=1))
        assert_withdrawn(w, ChangeState.REFUSED)


@pytest.mark.parametrize("judge", [True, False])
def test_within_its_hour_a_lost_update_that_aws_shows_goes_on(judge: bool) -> None:
    with world(limits=LIMITS) as w:
        asked(w, reached=True)
        if judge:
            under_provisioned(w)
        ticks(w, timedelta(hours=12))
        assert (w.change.state, updates(w)) == (ChangeState.PROVEN, 1), w.change.outcome


def test_within_its_hour_a_lost_update_that_aws_does_not_show_is_neither_given_up_nor_asked_again() -> None:
    with world(limits=LIMITS) as w:
        at = asked(w).journal[-1].at
        under_provisioned(w)
        ticks(w, at + SHOWS - w.now - 6 * MINUTE)
        assert (w.change.closed, updates(w)) == (False, 0)
        assert f"may still show until {at + SHOWS:%H:%M} UTC, and is not asked again" in w.change.outcome
        ticks(w, 15 * MINUTE)
        assert_withdrawn(w, ChangeState.REFUSED)


def test_within_its_hour_a_lost_update_that_every_judgement_allows_is_asked_again() -> None:
    with world(limits=LIMITS) as w:
        asked(w)
        ticks(w, timedelta(hours=12))
        assert (w.change.state, updates(w)) == (ChangeState.PROVEN, 1), w.change.outcome


def test_autoscaling_that_was_taken_away_is_not_kept_away_for_the_hour_of_a_lost_update() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, limits=LIMITS, **scenario.endpoint) as w:
        asked(w)
        under_provisioned(w)
        ticks(w, 20 * MINUTE)
        assert_withdrawn(w, ChangeState.ROLLED_BACK)
        (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
        assert (target.minimum, target.maximum) == (1, 4)


def test_after_its_hour_the_ground_is_compared_again_before_a_lost_update_is_asked_again() -> None:
    with world(limits=LIMITS) as w:
        asked(w)
        Orders(w.journal).freeze("U1", w.now)
        ticks(w, SHOWS + 10 * MINUTE)
        w.scale(3)
        w.box.clock.advance(timedelta(minutes=15))
        Orders(w.journal).thaw("U1", w.now)
        ticks(w, 30 * MINUTE)
        assert (w.change.state, updates(w)) == (ChangeState.REFUSED, 0)
        assert "the fleet moved since the plan" in w.change.outcome


class Unwell:
    """AWS answers each update with an error of its own, which leaves open whether it acts on it."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __call__(self, client: Any, operation: str, params: Any) -> Any:
        if operation == "UpdateEndpoint":
            raise ClientError({"Error": {"Code": self.code, "Message": "We hit a snag"}}, operation)
        return CALL(client, operation, params)


@pytest.mark.parametrize("code", ["InternalFailure", "ServiceUnavailable"])
def test_an_error_of_aws_itself_is_no_refusal_of_the_update(code: str) -> None:
    with world(limits=LIMITS) as w:
        w.start()
        unwell = Unwell(code)
        with patch.object(BaseClient, "_make_api_call", lambda *given: unwell(*given)):
            for _ in range(200):
                if failed := [entry for entry in w.change.journal if entry.status == "failed"]:
                    break
                w.run(0.02)
        assert [entry.result for entry in failed] == [StepResult.UNANSWERED]
        assert may_show_until(w.change, w.now) is not None
