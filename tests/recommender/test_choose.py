"""What is asked first, and what is done about it: each rule of the choice by itself."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.option import Excluded, Option, OptionKind, Risk, RiskResource, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender import choose
from rightsizer.recommender.choose import choose_option, choose_shadow_test
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.finding import LatencyDegradation
from rightsizer.recommender.options import Options
from rightsizer.recommender.scale_to_zero import Silence, SilentFleet
from rightsizer.recommender.shadow_test import ShadowTestCandidate
from tests import samples
from tests.recommender import plain
from tests.recommender.plain_context import OTHER, TYPE, context, running, stub

WHY = Reason(Code.UNDER_PROVISIONED, "because")
LATER = Reason(Code.NEEDS_APPROVAL, "needs your approval")
SMALL = Reason(Code.SAVING_TOO_SMALL, "too small")
BASE = samples.recommendation(options=(), excluded=(), replay=None)


def option(name: str = OTHER, saving: float = 100.0, **more: Any) -> Option:
    usd = Decimal("3289.96") - Decimal(str(saving))
    made = plain.option(target=Target(name, 1), saving_usd_per_month=Decimal(str(saving)), usd_per_month=usd)
    made = replace(made, risks={RiskResource.LATENCY: Risk.LOW})
    return replace(made, **more)


def trial(name: str = OTHER, saving: float = 500.0, chance: float = 0.9, cost: float = 1.0) -> ShadowTestCandidate:
    return ShadowTestCandidate(option(name, saving), chance, cost)


def options(*sure: Option, unsure: tuple[ShadowTestCandidate, ...] = (), **more: Any) -> Options:
    return Options(sure, unsure, **{"excluded": (), **more})


class Script(dict[str, Any]):
    """What each rule answers, and what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[str, list[tuple[Any, ...]]] = {}

    def play(self, name: str, *given: Any) -> Any:
        told = any(isinstance(one, EvaluationContext | SilentFleet) for one in given)
        assert told, f"{name} was not told the context"
        self.asked.setdefault(name, []).append(given)
        return self[name](*given) if callable(self[name]) else self[name]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """A quiet endpoint: nothing is wrong, nothing stopped, nothing grows; each test changes one answer."""
    made = Script()
    made.update(
        find_degradation=None, fleet_while_silent=None, has_load_jumped=False, can_still_carry=True, extra_margin=0.0,
        late_budget_used=None, options_for=options(option()), recommend_growth=None,
        recommend_higher_minimum=lambda _, __, ___: None,
        choose_shadow_test=None, growth_need=None, _ask_within_objective=None, ask_about_test=None,
        in_order=lambda _, sure: tuple(sure), with_open_question=lambda _, __, sure: sure,
        put_allowed_first=lambda _, sure: tuple(reversed(sure)), offer_test=lambda found, _: found,
        recommend_previous_configuration=lambda base, _, why: replace(base, reason=why, gate=Gate.APPLY),
        _recommend_test=lambda base, _, __, ___, ____: replace(base, gate=Gate.TEST),
        _apply_gate=lambda base, _, sure, __: replace(base, options=sure, gate=Gate.PROPOSE),
        _while_silent=lambda base, _: replace(base, reason=SMALL),
        replay_option=None,
    )  # fmt: skip
    for name in made:
        monkeypatch.setattr(choose, name, lambda *given, name=name: made.play(name, *given))
    return made


def chosen(seen: EvaluationContext | None = None, dimensions: tuple[Any, ...] = ()) -> Recommendation:
    return choose_option(BASE, seen or context(), dimensions)


# the order of the questions


def test_what_is_allowed_first_goes_to_the_gate(script: Script) -> None:
    script["options_for"] = options(option(), option(TYPE, 50.0))
    assert [o.target.instance_type for o in chosen().options] == [TYPE, OTHER]
    seen = script.asked["options_for"][0][0]
    assert (seen.extra_margin, seen.is_strained, seen.late_budget_used) == (0, False, None)


@pytest.mark.parametrize(
    ("severe", "moved", "back"), [(True, False, True), (False, True, True), (True, True, True), (False, False, False)]
)
def test_harm_brings_the_last_configuration_back_where_it_is_severe_or_of_another_type(
    script: Script, severe: bool, moved: bool, back: bool
) -> None:
    script["find_degradation"] = LatencyDegradation(WHY, severe)
    found = chosen(running(context(), OTHER) if moved else None)
    assert (found.reason == WHY) is back
    if not back:
        seen = script.asked["options_for"][0][0]
        assert (seen.extra_margin, seen.is_strained) == (1, True)


def test_silence_is_looked_at_where_nothing_harms(script: Script) -> None:
    script["fleet_while_silent"] = SilentFleet(context(), Silence(9.0, 1.0), SMALL)
    assert chosen().reason == SMALL
    script["find_degradation"] = LatencyDegradation(WHY, is_severe=True)
    assert chosen().reason == WHY


@pytest.mark.parametrize(
    ("jumped", "carries", "back"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_a_jump_that_our_fleet_does_not_carry_brings_the_old_one_back(
    script: Script, jumped: bool, carries: bool, back: bool
) -> None:
    script.update(has_load_jumped=jumped, can_still_carry=carries)
    assert (chosen().reason == choose.JUMPED) is back
    if not back:
        assert script.asked["options_for"][0][0].is_strained is not carries


def test_caution_of_the_past_adds_to_what_was_rolled_back(script: Script) -> None:
    script.update(extra_margin=0.5, late_budget_used=1.5)
    chosen(context(extra_margin=2))
    seen = script.asked["options_for"][0][0]
    assert (seen.extra_margin, seen.late_budget_used) == (2.5, 1.5)


def test_a_higher_minimum_goes_before_growth_and_growth_before_tests(script: Script) -> None:
    names = ["recommend_higher_minimum", "recommend_growth", "choose_shadow_test", "ask_about_test"]
    gates = [Gate.APPLY, Gate.SILENT, Gate.TEST, Gate.PROPOSE]
    for name, gate in zip(names, gates, strict=True):
        script[name] = (trial(), LATER) if name == "choose_shadow_test" else replace(BASE, gate=gate, fingerprint=name)
    for name, gate in zip(names, gates, strict=True):
        found = chosen()
        assert found.gate is gate
        assert name == "choose_shadow_test" or found.fingerprint == name
        script[name] = None
    assert chosen().options == (option(),)


@pytest.mark.parametrize(
    ("best", "harmed", "strained", "growing"),
    [
        (option(), True, False, True),
        (option(saving=0.0), False, True, True),
        (option(saving=0.01), False, True, False),
        (option(saving=-1.0), False, False, False),
        (None, True, True, False),
    ],
)
def test_users_who_wait_get_more_today_and_no_test_of_a_day(
    script: Script, best: Option | None, harmed: bool, strained: bool, growing: bool
) -> None:
    script["options_for"] = options(*([best] if best else []))
    script["choose_shadow_test"] = (trial(), LATER)
    script["find_degradation"] = LatencyDegradation(WHY, is_severe=False) if harmed else None
    script["can_still_carry"] = not strained
    assert (chosen().gate is not Gate.TEST) is growing


def test_where_a_shortage_ends_or_nothing_waits_the_order_of_steps_stays(script: Script) -> None:
    script["options_for"] = options(option(), option(TYPE, 50.0))
    script["growth_need"] = object()
    assert [o.target.instance_type for o in chosen().options] == [OTHER, TYPE]
    script["options_for"] = options()
    script["_keep_reason"] = None
    found = chosen()
    assert found.options == ()
    assert "put_allowed_first" not in script.asked


def test_nobody_is_asked_about_a_test_while_it_grows_or_its_budget_is_spent(script: Script) -> None:
    script["ask_about_test"] = replace(BASE, fingerprint="asked")
    assert chosen().fingerprint == "asked"
    script["late_budget_used"] = 1.5
    assert chosen().fingerprint != "asked"
    script.update(late_budget_used=None, find_degradation=LatencyDegradation(WHY, is_severe=False))
    assert chosen().fingerprint != "asked"


def test_what_the_objective_allows_is_asked_where_nothing_else_saves(script: Script) -> None:
    within = replace(BASE, options=(option(TYPE),), fingerprint="within")
    script["_ask_within_objective"] = within
    assert chosen().fingerprint != "within"
    script["options_for"] = options()
    assert chosen().fingerprint == "within"
    assert script.asked["ask_about_test"][-1][3] == within.options, "weighed against the test"
    script["ask_about_test"] = replace(BASE, fingerprint="asked")
    assert chosen().fingerprint == "asked"


def test_without_an_option_the_reason_to_keep_it_is_said(script: Script) -> None:
    script["options_for"] = options()
    found = chosen()
    assert found.reason.code is Code.ALREADY_RIGHT
    assert found.gate_reason == found.reason
    assert found.finding is Finding.OPTIMIZED
    script["options_for"] = options(unsure=(trial(),))
    assert chosen().finding is Finding.OVER_PROVISIONED, "a test that may not run hides no waste"


def test_dimensions_that_compete_stand_beside_types_and_counts(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Excluded(TYPE, SMALL, OptionKind.SCHEDULE)

    class Dimension:
        def __init__(self, competes: bool, *answers: Option | Excluded) -> None:
            self.competes, self.answers = competes, answers

    def offers(one: Dimension, *_: Any) -> Iterator[Option | Excluded]:
        yield from one.answers

    monkeypatch.setattr(choose, "collect_offers", offers)
    own = Excluded(OTHER, WHY)
    script["options_for"] = options(option(), excluded=(own,))
    dimensions = (Dimension(True, option("ml.z"), out), Dimension(False, option("ml.never")))
    found = chosen(dimensions=dimensions)
    assert [o.target.instance_type for o in found.options] == ["ml.z", OTHER]
    assert found.excluded == (own, out)


# tests


@pytest.mark.parametrize(
    ("best", "share", "tested"),
    [
        (None, 0.05, True),
        (option(saving=100.0), 0.05, True),
        (option(saving=200.0), 0.05, True),
        (option(saving=240.0), 0.05, False),
        (option(saving=-500.0), 0.05, True),
    ],
)
def test_a_test_goes_first_where_its_prize_is_worth_the_wait(best: Option | None, share: float, tested: bool) -> None:
    """0.9 x 500 = 450 against 1.9 times the sure saving, where that is enough for a change of its own."""
    seen = context(policy={"minimum_saving_share": share, "minimum_saving_usd": Decimal(1)})
    found = choose_shadow_test(seen, options(unsure=(trial(),)), best)
    assert (found is not None) is tested
    if found is not None:
        assert found[0] == trial()


def test_no_test_runs_where_its_owner_did_not_allow_that_requests_are_served_twice() -> None:
    seen = context()
    unasked = replace(seen, endpoint=replace(seen.endpoint, tags={}))
    assert choose_shadow_test(unasked, options(unsure=(trial(),)), None) is None


def test_the_finding_beside_no_change_is_waste_where_a_test_would_be_worth_it() -> None:
    seen = context()
    assert choose._finding(options(), seen, None) is Finding.OPTIMIZED
    assert choose._finding(options(unsure=(trial(),)), seen, None) is Finding.OVER_PROVISIONED
    assert choose._finding(options(unsure=(trial(),)), seen, option(saving=499.0)) is Finding.OPTIMIZED
    assert choose._finding(options(unsure=(trial(),)), seen, option(saving=-499.0)) is Finding.OVER_PROVISIONED


def test_a_test_is_recommended_with_what_it_would_save_and_the_sure_options_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stub(monkeypatch, choose, "replay_option", lambda *_: None)
    found = choose._recommend_test(BASE, trial(), LATER, (option(TYPE),), context())
    assert (found.finding, found.gate, found.gate_reason) == (Finding.OVER_PROVISIONED, Gate.TEST, LATER)
    assert found.reason == Reason(
        Code.CHEAPER_OPTION, "ml.g5.xlarge would save $500.00 a month if it is fast enough and the model fits"
    )
    assert [o.target.instance_type for o in found.options] == [OTHER, TYPE]
    assert found.options[0].test_usd == Decimal("1.0")
