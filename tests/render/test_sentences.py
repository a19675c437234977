"""The one voice says amounts as people read them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.demand import Peak
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.recommendation import Gate
from rightsizer.render import sentences
from rightsizer.render.charts import BARS, sparkline
from tests.samples import NOW, option, proposal, recommendation


@pytest.mark.parametrize(
    ("usd", "said"),
    [
        ("0", "$0.00"),
        ("99.995", "$100.00"),
        ("41.5", "$41.50"),
        ("4140.50", "$4,141"),
        ("-12", "-$12.00"),
        ("1234567", "$1,234,567"),
        ("-0.001", "$0.00"),
    ],
)
def test_money_is_said_with_cents_only_where_they_matter(usd: str, said: str) -> None:
    assert sentences.money(Decimal(usd)) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, "0 %"),
        (0.0004, "< 0.1 %"),
        (0.042, "4.2 %"),
        (0.44, "44 %"),
        (0.9999, "99.9 %"),
        (1, "100 %"),
        (1.5, "150 %"),
    ],
)
def test_a_small_share_is_never_shown_as_nothing(share: float, said: str) -> None:
    assert sentences.percent(share) == said


def test_a_latency_below_a_second_is_said_in_milliseconds() -> None:
    assert [sentences.seconds(v) for v in (0.28, 1.44, 95)] == ["280 ms", "1.4 s", "95 s"]


def test_one_is_not_said_in_the_plural() -> None:
    assert [sentences.count(n, "request") for n in (1, 1240)] == ["1 request", "1,240 requests"]


def test_the_headline_names_endpoint_change_and_saving() -> None:
    assert sentences.headline(recommendation()) == "chat-7b can run on 1 × ml.g5.xlarge: saves $4,141 a month"


def test_a_dearer_option_does_not_claim_a_saving() -> None:
    dearer = recommendation(options=(option(saving_usd_per_month=Decimal(-300)),))
    assert sentences.headline(dearer) == "chat-7b can run on 1 × ml.g5.xlarge: costs $300 a month more"


@pytest.mark.parametrize("kind", OptionKind)
def test_every_kind_of_option_can_be_said(kind: OptionKind) -> None:
    target = Target("ml.g5.xlarge", 1, hourly_counts=(1, 3) * 12, minimum=1, maximum=3, pools=("ml.g5.xlarge",))
    said = sentences.change(option(kind=kind, target=target))
    assert said
    assert "None" not in said


@pytest.mark.parametrize("state", ProposalState)
def test_every_state_can_be_said_and_names_who_decided(state: ProposalState) -> None:
    decided = proposal(state=state, decision=Decision(state, "slack:U1", NOW, "go"), outcome="Proven on 812 requests.")
    said = sentences.standing_sentence(decided)
    assert said.endswith("Proven on 812 requests.")
    assert ("U1" in said) == (state in {"approved", "rejected", "snoozed", "applying", "expired"})


@given(st.lists(st.floats(), max_size=400), st.integers(1, 80))
def test_a_sparkline_has_a_sign_for_each_stretch_whatever_the_values_are(values: list[float], width: int) -> None:
    assert len(sparkline(values, width)) == min(len(values), width)


def test_a_sparkline_shows_the_peak_and_the_gap() -> None:
    assert sparkline([0, 4, float("nan"), 8]) == BARS[0] + BARS[3] + "·" + BARS[7]


def test_folding_hides_no_peak() -> None:
    values = [1.0] * 335 + [100.0]
    assert sparkline(values, 10)[-1] == BARS[-1]


def test_an_approved_test_says_which_hour_it_waits_for() -> None:
    judged = recommendation(gate=Gate.TEST, peak=Peak(9, (0, 1, 2, 3, 4)))
    said = sentences.standing_sentence(proposal(state=ProposalState.APPROVED, recommendation=judged))
    assert "The test starts within minutes, or waits for the busiest hour (09:00 UTC) in the change window." in said
    for what, other in (("test", recommendation(gate=Gate.TEST)), ("change", recommendation(peak=Peak(9, (0,))))):
        said = sentences.standing_sentence(proposal(state=ProposalState.APPROVED, recommendation=other))
        assert f"The {what} starts within minutes, or when the change window opens." in said
