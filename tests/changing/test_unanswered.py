"""An update of the endpoint whose answer was lost counts as made for as long as AWS may still show it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError, ReadTimeoutError

from rightsizer.changes.reconcile.steps import may_show_until
from rightsizer.domain.change import Change, ChangeState, StepResult
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding
from tests.changing.test_expired import updates
from tests.changing.test_lost import ticks
from tests.changing.test_overruled import judged
from tests.changing.world import World, world

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


@pytest.mark.parametrize("judge", [True, False])
def test_within_its_hour_a_lost_update_that_aws_shows_goes_on(judge: bool) -> None:
    with world(limits=LIMITS) as w:
        asked(w, reached=True)
        if judge:
            under_provisioned(w)
        ticks(w, timedelta(hours=12))
        assert (w.change.state, updates(w)) == (ChangeState.PROVEN, 1), w.change.outcome


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
