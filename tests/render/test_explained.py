"""What `rightsizer explain` prints, read as by somebody new: nothing twice, and nothing that contradicts itself."""

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest

from rightsizer.domain.reason import seconds_text
from rightsizer.domain.recommendation import Replay
from rightsizer.recommender.evidence import QUIET_DAYS, silence_text
from rightsizer.render import sentences
from rightsizer.terminal.tables import Screen, explanation
from tests.labelled import judged, read
from tests.recommender.plain import demand

CASES = Path(__file__).parents[1] / "cases"


def explained(case: str) -> str:
    """The explanation of a labelled endpoint, each run of blanks as one."""
    screen = Screen(file=io.StringIO(), width=1000)
    screen.print(explanation(judged(read(CASES / f"{case}.yaml")), width=100))
    assert isinstance(screen.file, io.StringIO)
    return "\n".join(" ".join(line.split()) for line in screen.file.getvalue().splitlines())


def test_a_reason_that_also_says_why_nobody_is_asked_is_told_once() -> None:
    said = explained("tracking-even-load")
    assert said.count("already right: no cheaper type serves this load") == 1
    assert "nobody is asked for the reason at the top" in said


def test_a_way_that_saves_elsewhere_is_not_called_already_right() -> None:
    said = explained("serverless-gpu-unused")
    assert "serverless 2 GB would save $536.52 a month, but on another endpoint, so its owner decides." in said
    assert "On this endpoint: no cheaper type serves this load" in said
    assert "already right" not in said


def test_ways_with_one_reason_share_a_line_without_the_type_that_runs() -> None:
    said = explained("serverless-gpu-unused")
    assert "autoscaling, routing, schedule: of use only where two instances or more run" in said
    assert "(ml.g4dn.xlarge):" not in said
    assert "other-architecture (ml.inf2.xlarge): would save" in explained("neuron-waits-for-a-test")


def test_types_that_share_a_line_are_not_given_the_figure_of_the_first() -> None:
    said = explained("serverless-gpu-unused")
    assert "ml.g4dn.2xlarge would cost at least $686 a month; ruled out for the same kind of reason: ml.g5" in said


def test_an_option_says_what_it_saves_and_costs_and_each_figure_once() -> None:
    said = explained("idle-asynchronous")
    assert "saves USD 1,698.71 per month; it then costs USD 0.00" in said
    assert "autoscaling a minimum of 0 instances" in said
    assert said.count("15 minutes without a request") == 1
    assert "idle timeout" not in said
    assert "risk low (1 of 4)\nrisk by resource availability 1" in said


def test_only_what_an_approval_can_begin_is_asked() -> None:
    assert "\nnow needs your approval" in explained("idle-fortnight")
    assert "\nnow its owner has to do this" in explained("cold-tolerated")


def test_a_card_that_is_too_small_for_the_need_has_no_negative_room() -> None:
    room = Replay(14, 0.0, 0.0, None, -4.3, 0)
    shown = dict(sentences.replay_figures(replace(judged(read(CASES / "plain-oversized-declared.yaml")), replay=room)))
    assert shown["GPU memory left"] == "none: the need with its margin is 4.3 GiB above what the card has"


def test_a_promise_of_milliseconds_is_not_rounded_to_hundredths_of_a_second() -> None:
    assert [seconds_text(value) for value in (0.005, 0.0394, 0.1, 1.5)] == ["5 ms", "39.4 ms", "0.10 s", "1.50 s"]


def test_days_without_a_call_are_said_with_the_recommendation() -> None:
    quiet = demand(silent_days=11)
    assert silence_text(quiet) == "; nobody has called for 11 days"
    assert silence_text(demand(silent_days=QUIET_DAYS - 1)) == ""


def test_a_commitment_is_named_only_where_it_keeps_something() -> None:
    assert "still billed by the Savings Plan USD 675.79 per month" in explained("world-plan-covers-half")
    assert "still billed by" not in explained("plain-oversized-declared")


def test_a_reason_neither_names_a_commitment_of_nothing_nor_rounds_a_need_to_what_there_is() -> None:
    said = explained("plain-oversized-declared") + explained("serverless-gpu-unused")
    assert "(committed: $0" not in said
    assert re.search(r"needs up to (\d+) GiB, \S+ has \1 GiB", said) is None


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("plain-oversized-declared", "\nnow safe to apply by itself: performance risk"),
        ("ask-mode-report", "\nnobody is asked the tag rightsizer:mode says report"),
        ("ask-owned-by-stack", "\ntells its owner it is owned by"),
    ],
)
def test_what_follows_doubles_no_word_of_its_reason(case: str, said: str) -> None:
    assert said in explained(case)
