"""Figures of a recommendation and of a change carry words that a first reader knows, in every view."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from unittest.mock import patch

import pytest

from rightsizer.changes import reconcile
from rightsizer.changes.proof import proof_verdict
from rightsizer.domain.next_action import Steer
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.proposal import Proposal
from rightsizer.domain.recommendation import Gate
from rightsizer.render import sentences
from tests.changes import test_proof as proven
from tests.changing.world import NAME, OLD_TYPE, an_option, steady, world
from tests.render.test_replay_shown import VIEWS
from tests.samples import option, proposal, recommendation

INSIDE = re.compile(r"signal ladder|\bL[0-5]\b|test hours|\bas it was\b|next tick|geometric|0\.0 days|0:00:00")


def asked(gate: Gate, **about: object) -> Proposal:
    one = option(facts={"test hours": "2", "objective": "0.50 s (tag)"}, **about)
    return proposal(recommendation=recommendation(gate=gate, options=(one,)))


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("gate", [Gate.PROPOSE, Gate.TEST], ids=str)
def test_no_view_says_an_inside_word(view: Callable[[Proposal], str], gate: Gate) -> None:
    said = view(asked(gate, payback_days=0.01))
    assert INSIDE.findall(said) == []


def test_the_length_of_a_test_is_said_only_where_a_test_comes_first() -> None:
    terminal = VIEWS["terminal"]
    assert "length of the test" not in terminal(asked(Gate.PROPOSE))
    tested = " ".join(terminal(asked(Gate.TEST, test_usd=Decimal("4.5"))).split())
    assert "length of the test 2 h" in tested


def test_each_rung_of_a_stored_judgement_has_words() -> None:
    for rung in ("L0", "L1", "L2", "L3", "L4", "L5"):
        assert sentences.signals(rung) != rung
    found = asked(Gate.PROPOSE)
    assert found.recommendation.evidence is not None
    seen = replace(found.recommendation.evidence, rung="L1")
    shown = replace(found, recommendation=replace(found.recommendation, evidence=seen))
    assert "the endpoint's own metrics" in VIEWS["details page"](shown)


def test_a_change_that_is_watched_says_for_how_many_hours() -> None:
    limits = replace(proven.LIMITS, probation=timedelta(days=1))
    busy = proven.window(requests=[20.0] * 12)
    found = proof_verdict(proven.change(), [busy], proven.START + timedelta(hours=3), limits)
    assert found.judgement == "not-yet"
    assert found.reason.sentence.endswith("; it is watched for 24 h")


def test_an_endpoint_that_is_marked_for_deletion_is_not_said_to_run_something_new() -> None:
    delete = an_option(kind=OptionKind.DELETE, target=Target(OLD_TYPE, 0), in_place=False)
    limits = ChangeLimits(grace=timedelta(days=3), rewire_alarms=True)
    still = steady(requests=0)
    with world(delete, limits=limits, load=still) as w, patch.object(reconcile, "Steer", wraps=Steer) as steered:
        w.start()
        w.run(1)
    said = [str(call.args[0].sentence) for call in steered.call_args_list]
    assert f"{NAME} is marked for deletion; nothing else was changed, and any request ends it" in said
    assert [one for one in said if "runs what was asked" in one] == []
