"""The gate: what nobody is asked about."""

from dataclasses import replace
from decimal import Decimal

import pytest

from rightsizer.domain.endpoint import Mode
from rightsizer.domain.history import History
from rightsizer.domain.option import OptionKind, Risk
from rightsizer.domain.policy import Policy
from rightsizer.domain.price import Commitment, Price
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate
from rightsizer.recommender import stages
from rightsizer.recommender.gate import GateCase, decide_gate
from tests.recommender import kit
from tests.recommender.kit import judge


def one_case(monkeypatch: pytest.MonkeyPatch) -> GateCase:
    """The gate's first case of a steady load, opted in and sure."""
    cases: list[GateCase] = []

    def seen(case: GateCase, *rest: object) -> object:
        cases.append(case)
        return decide_gate(case, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(stages, "decide_gate", seen)
    policy = Policy(confidence_smaller=1.0)
    judge(kit.endpoint(), [kit.window(kit.steady())], kit.prices(), kit.catalogue(), {}, History(), policy, kit.NOW)
    return cases[0]


def test_an_option_that_is_too_likely_to_harm_is_not_even_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Policy(confidence_smaller=1.0)
    case = one_case(monkeypatch)
    for risk, wanted in ((Risk.HIGH, Gate.PROPOSE), (Risk.VERY_HIGH, Gate.SILENT)):
        risky = replace(case, option=replace(case.option, risk=risk))
        verdict, why = decide_gate(risky, History(), policy, kit.NOW)
        assert verdict is wanted
        assert why.code is Code.RISK_TOO_HIGH


@pytest.mark.parametrize(
    ("others", "wanted"),
    [((2,) * 23, Gate.APPLY), ((2,) * 15 + (1,) * 8, Gate.PROPOSE), ((1,) * 23, Gate.PROPOSE)],
    ids=["half", "a little less than half", "a quarter"],
)
def test_hours_that_halve_the_fleet_on_average_ask_a_person(
    others: tuple[int, ...], wanted: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four in one hour are as many as today; two in all others are half, and fewer make less than half of all hours."""
    cases: list[GateCase] = []

    def seen(case: GateCase, *rest: object) -> object:
        cases.append(case)
        return decide_gate(case, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(stages, "decide_gate", seen)
    policy = Policy(by_itself=frozenset(OptionKind))
    history, load = History(), [kit.window(kit.steady())]
    judge(kit.endpoint(count=4), load, kit.prices(), kit.catalogue(), {}, history, policy, kit.NOW)
    case = cases[0]
    hours = replace(case.option.target, instance_type=case.instance_type, hourly_counts=(4, *others))
    option = replace(case.option, kind=OptionKind.SCHEDULE, target=hours, risk=Risk.LOW, risks={})
    verdict, why = decide_gate(replace(case, option=option), History(), policy, kit.NOW)
    assert verdict is wanted
    assert ("more than half" in why.sentence) is (wanted is Gate.PROPOSE)


def test_an_endpoint_whose_tags_could_not_be_read_is_not_said_to_be_tagged_report() -> None:
    unread = Reason(Code.THROTTLED, "reading the tags of chat: AWS throttles sagemaker:ListTags")
    blind = replace(kit.endpoint(mode=Mode.REPORT), tags_unread=unread)
    load = [kit.window(kit.steady())]
    found = judge(blind, load, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert (found.gate, found.gate_reason.code) == (Gate.SILENT, Code.THROTTLED)
    assert "says report" not in found.gate_reason.sentence
    assert unread.sentence in found.gate_reason.sentence
    assert any(unread.sentence in line for line in found.not_checked)


def test_a_saving_is_said_to_depend_on_plans_that_cannot_be_seen() -> None:
    unknown = Commitment(Decimal(0), known=False)
    load = [kit.window(kit.steady())]
    found = judge(
        kit.endpoint(), load, kit.prices(commitment=unknown), kit.catalogue(), {}, History(), Policy(), kit.NOW
    )
    assert any("payer account" in line for line in found.not_checked)
    found = judge(kit.endpoint(), load, kit.prices(), kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert not any("payer account" in line for line in found.not_checked)


def test_a_type_that_no_price_list_sells_is_no_candidate_but_may_go_on_running() -> None:
    load = [kit.window(kit.steady())]
    table = kit.prices()
    first = judge(kit.endpoint(), load, table, kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert first.chosen_option is not None
    chosen = first.chosen_option.target.instance_type
    for name in (chosen, "ml.g6e.xlarge"):
        price = table.prices[name]
        assert isinstance(price, Price)
        table = replace(table, prices={**table.prices, name: replace(price, listed=False)})
    found = judge(kit.endpoint(), load, table, kit.catalogue(), {}, History(), Policy(), kit.NOW)
    assert all(option.target.instance_type != chosen for option in found.options)
    assert {e.instance_type for e in found.excluded if e.reason.code is Code.NOT_SOLD} == {chosen}


@pytest.mark.parametrize(
    ("usd", "share", "sentence"),
    [
        ("78", 0.07, "the saving of 7 % of its cost (USD 78 per month) is below the least of 10 %"),
        (
            "49.99",
            0.5,
            "the saving of USD 49.99 per month (50 % of its cost) is below the least of USD 50 per month",
        ),
        (
            "12",
            0.02,
            "the saving of USD 12 per month is below the least of USD 50 per month, and 2 % of its cost is below the"
            " least of 10 %",
        ),
        (
            "500",
            0.0999,
            "the saving of 9.99 % of its cost (USD 500 per month) is below the least of 10 %",
        ),
    ],
)
def test_a_saving_that_is_too_small_is_said_against_the_limit_that_it_misses(
    usd: str, share: float, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = one_case(monkeypatch)
    small = replace(case, option=replace(case.option, saving_usd_per_month=Decimal(usd)), share=share)
    verdict, why = decide_gate(small, History(), Policy(), kit.NOW)
    assert (verdict, why) == (Gate.SILENT, Reason(Code.SAVING_TOO_SMALL, f"not worth a change: {sentence}"))


@pytest.mark.parametrize(
    ("once", "days", "said"),
    [
        ("0", 0.0, "nothing to pay back"),
        ("0.01", 0.0, "paid back in less than an hour"),
        ("3", 0.04, "paid back in less than an hour"),
        ("3", 0.05, "paid back in 1 hour"),
        ("3", 0.25, "paid back in 6 hours"),
        ("9", 1.5, "paid back in 1.5 days"),
    ],
)
def test_the_payback_is_never_said_to_be_nought_days(
    once: str, days: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = one_case(monkeypatch)
    option = replace(
        case.option, switch_usd=Decimal(once), payback_days=days, test_usd=Decimal(0), risk=Risk.VERY_LOW, risks={}
    )
    demand = replace(case.demand, confidence=99.0)
    verdict, why = decide_gate(replace(case, option=option, demand=demand), History(), Policy(), kit.NOW)
    assert verdict is Gate.APPLY
    assert why.sentence.endswith(f"days' worth of evidence, {said}")


@pytest.mark.parametrize("kind", [OptionKind.SCHEDULE, OptionKind.AUTOSCALING])
def test_what_gives_back_instances_that_are_hard_to_get_again_asks_a_person(
    kind: OptionKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = one_case(monkeypatch)
    hourly = replace(case.option, kind=kind)
    scarce = replace(hourly, target=replace(hourly.target, instance_type="ml.p5.4xlarge"))
    policy = Policy(confidence_smaller=1.0)
    verdict, why = decide_gate(replace(case, option=hourly), History(), policy, kit.NOW)
    assert verdict is Gate.APPLY, why.sentence
    verdict, why = decide_gate(replace(case, option=scarce, instance_type="ml.p5.4xlarge"), History(), policy, kit.NOW)
    assert verdict is Gate.PROPOSE
    assert why.sentence == (
        "needs your approval: ml.p5.4xlarge is hard to get on demand (AWS sells its capacity ahead):"
        " an instance that is given back may not come again"
    )
