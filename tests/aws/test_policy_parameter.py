"""The policy document in Parameter Store: read once a minute, and safe where it cannot be read."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rightsizer.aws.policy_parameter import KEPT, OUTAGE, PolicyParameter, fetch_policy, put_policy, tier_of
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.policy_document import PolicyDocument, Subject, effective_limits
from rightsizer.errors import ReadError
from sandbox.account import Sandbox

NAME = "/rightsizer/policy"
START = datetime(2026, 11, 2, 9, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


def reader(box: Sandbox, clock: Clock, name: str = NAME) -> PolicyParameter:
    return PolicyParameter(lambda: box.client("ssm"), name, clock)


def held(document: PolicyDocument) -> tuple[str, ...]:
    return effective_limits(ChangeLimits(), document, Subject()).misread


def test_a_document_is_read_once_a_minute_and_a_change_of_it_counts_then(box: Sandbox) -> None:
    clock = Clock()
    put_policy(box.client("ssm"), NAME, '{"defaults":{"changes_per_day":3}}')
    policy = reader(box, clock)
    first = policy.document()
    assert first.defaults.values == {"changes_per_day": 3}
    assert put_policy(box.client("ssm"), NAME, '{"defaults":{"changes_per_day":4}}') == 2
    assert policy.document() is first
    clock.now += KEPT
    assert policy.document().defaults.values == {"changes_per_day": 4}
    clock.now += KEPT
    assert policy.document() is policy.document()
    assert box.gate.calls.counts()["ssm:GetParameter"] == 3


def test_a_stack_without_a_document_asks_nothing(box: Sandbox) -> None:
    assert reader(box, Clock(), "").document() == PolicyDocument()
    assert box.gate.calls.counts()["ssm:GetParameter"] == 0


def test_a_parameter_that_is_named_and_missing_holds_everything_and_says_how_to_go_on(box: Sandbox) -> None:
    clock = Clock()
    policy = reader(box, clock)
    (sentence,) = held(policy.document())
    assert "does not exist; put it back with `rightsizer policy put FILE --region eu-west-1`" in sentence
    put_policy(box.client("ssm"), NAME, "{}")
    clock.now += KEPT
    assert held(policy.document()) == ()


def test_a_read_that_fails_is_bridged_for_a_quarter_of_an_hour(box: Sandbox) -> None:
    clock = Clock()
    put_policy(box.client("ssm"), NAME, '{"defaults":{"cooldown_hours":48}}')
    policy = reader(box, clock)
    known = policy.document()
    box.gate.fail("ssm", "GetParameter", "InternalServerError", times=math.inf)
    clock.now += KEPT
    assert policy.document() is known
    clock.now += OUTAGE
    assert held(policy.document())
    box.gate.heal()
    clock.now += KEPT
    assert policy.document() == known


def test_a_right_that_was_taken_away_holds_at_once(box: Sandbox) -> None:
    clock = Clock()
    put_policy(box.client("ssm"), NAME, "{}")
    policy = reader(box, clock)
    policy.document()
    box.gate.deny("ssm:GetParameter")
    clock.now += KEPT
    assert "ssm:GetParameter" in held(policy.document())[0]


def test_what_is_stored_comes_back_as_it_is(box: Sandbox) -> None:
    text = '{"owners":{"Zoë":{"window":"daily 00:00-00:00"}}}'
    put_policy(box.client("ssm"), NAME, text)
    found = fetch_policy(box.client("ssm"), NAME)
    assert found is not None
    assert (found.text, found.version) == (text, 1)
    assert fetch_policy(box.client("ssm"), "/other") is None


@pytest.mark.parametrize(("size", "tier"), [(4096, "Standard"), (4097, "Advanced"), (8192, "Advanced")])
def test_the_tier_follows_the_size(size: int, tier: str, box: Any) -> None:
    assert tier_of("x" * size) == tier


def test_a_document_that_no_tier_holds_is_refused() -> None:
    with pytest.raises(ReadError, match="8,193 bytes"):
        tier_of("x" * 8193)


def test_the_minute_is_shorter_than_the_outage() -> None:
    assert timedelta(0) < KEPT < OUTAGE
