"""The gate: what nobody is asked about."""

from dataclasses import replace

import pytest

from rightsizer.flows import choose
from rightsizer.flows.judge import judge
from rightsizer.model.history import History
from rightsizer.model.option import OptionKind, Risk
from rightsizer.model.policy import Policy
from rightsizer.model.reason import Code
from rightsizer.model.recommendation import Gate
from rightsizer.rules.gate import Case, gate
from tests.rules import kit


def test_an_option_that_is_too_likely_to_harm_is_not_even_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[Case] = []

    def seen(case: Case, *rest: object) -> object:
        cases.append(case)
        return gate(case, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(choose, "gate", seen)
    policy = Policy(confidence_smaller=1.0)
    judge(kit.endpoint(), [kit.window(kit.steady())], kit.prices(), kit.catalogue(), {}, History(), policy, kit.NOW)
    case = cases[0]
    for risk, wanted in ((Risk.HIGH, Gate.PROPOSE), (Risk.VERY_HIGH, Gate.SILENT)):
        risky = replace(case, option=replace(case.option, risk=risk))
        verdict, why = gate(risky, History(), policy, kit.NOW)
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
    cases: list[Case] = []

    def seen(case: Case, *rest: object) -> object:
        cases.append(case)
        return gate(case, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(choose, "gate", seen)
    policy = Policy(by_itself=frozenset(OptionKind))
    history, load = History(), [kit.window(kit.steady())]
    judge(kit.endpoint(count=4), load, kit.prices(), kit.catalogue(), {}, history, policy, kit.NOW)
    case = cases[0]
    hours = replace(case.option.target, instance_type=case.instance_type, hourly_counts=(4, *others))
    option = replace(case.option, kind=OptionKind.SCHEDULE, target=hours, risk=Risk.LOW, risks={})
    verdict, why = gate(replace(case, option=option), History(), policy, kit.NOW)
    assert verdict is wanted
    assert ("more than half" in why.sentence) is (wanted is Gate.PROPOSE)
