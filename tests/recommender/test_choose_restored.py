"""What comes back after a change of ours went wrong, how a fleet of ours grows, and why an endpoint is kept."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.demand import ReplayResult
from rightsizer.domain.endpoint import MAY_GROW_TAG, Mode
from rightsizer.domain.option import Excluded, Option, OptionKind, Target
from rightsizer.domain.price import Commitment
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.domain.slowdown import Promise
from rightsizer.recommender import choose
from rightsizer.recommender.choose import (
    growth_reason,
    recommend_higher_minimum,
    recommend_previous_configuration,
    replay_option,
)
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.pricing import monthly_cost
from rightsizer.recommender.scale_to_zero import Silence, SilentFleet
from tests.recommender import kit, plain
from tests.recommender.plain_context import HOURS, OTHER, SCALED, TYPE, context, ours, running, serve, stub
from tests.recommender.test_choose import BASE, LATER, SMALL, WHY, option, options, trial


def in_mode(seen: EvaluationContext, mode: Mode) -> EvaluationContext:
    return replace(seen, endpoint=replace(seen.endpoint, mode=mode))


def usd(instances: float, name: str = TYPE) -> Decimal:
    price = kit.prices().find(name)
    assert price is not None
    return monthly_cost(price, instances)


# the configuration before


def test_the_fleet_before_comes_back_at_its_cost() -> None:
    found = recommend_previous_configuration(BASE, context(HOURS, past=(ours(),), instances=1.0), WHY)
    (back,) = found.options
    assert (found.finding, found.reason, found.gate, found.gate_reason) == (
        Finding.UNDER_PROVISIONED,
        WHY,
        Gate.APPLY,
        WHY,
    )
    assert back.restores
    assert (back.kind, back.target) == (OptionKind.SCHEDULE, Target(TYPE, 3, HOURS))
    assert (back.usd_per_month, back.saving_usd_per_month) == (usd(2), usd(1) - usd(2))
    assert back.switch_usd == 0, "counts of the same type start no second fleet"
    assert back.confidence == context().demand.confidence
    assert back.price == kit.prices().find(TYPE)
    asked = recommend_previous_configuration(BASE, in_mode(context(past=(ours(),)), Mode.PROPOSE), WHY)
    assert (asked.gate, asked.gate_reason) == (Gate.PROPOSE, WHY)


def test_what_a_plan_keeps_of_the_saving_is_kept_of_what_comes_back_too() -> None:
    seen = running(context((1.0,) * 24, past=(ours(),), instances=4.0), TYPE)
    plan = kit.prices(commitment=Commitment(Decimal("4.0"), known=True))
    (back,) = recommend_previous_configuration(
        BASE, replace(seen, inputs=replace(seen.inputs, prices=plan)), WHY
    ).options
    (free,) = recommend_previous_configuration(BASE, seen, WHY).options
    assert back.saving_usd_per_month < free.saving_usd_per_month


def test_another_type_comes_back_beside_the_one_that_runs() -> None:
    found = recommend_previous_configuration(BASE, running(context(past=(ours(),)), OTHER), WHY)
    (back,) = found.options
    assert back.switch_usd > 0
    assert back.restart_needed
    assert back.usd_per_month == usd(4)


def test_a_type_without_a_price_brings_nothing_back_and_says_why() -> None:
    seen = context(past=(ours(),))
    unpriced = replace(seen, inputs=replace(seen.inputs, prices=kit.prices(without=(TYPE,))))
    found = recommend_previous_configuration(BASE, unpriced, WHY)
    assert (found.options, found.finding, found.reason, found.gate_reason) == ((), Finding.UNDER_PROVISIONED, WHY, WHY)
    assert found.gate is BASE.gate


def test_a_minimum_that_is_back_already_is_a_question_for_its_owner() -> None:
    scaled = context(scaling=(replace(SCALED, minimum=4),), past=(ours(),))
    found = recommend_previous_configuration(BASE, scaled, WHY)
    assert (found.options, found.gate, found.finding, found.reason) == (
        (),
        Gate.PROPOSE,
        Finding.UNDER_PROVISIONED,
        WHY,
    )
    assert found.gate_reason.code is Code.AUTOSCALED
    low = recommend_previous_configuration(BASE, context(scaling=(SCALED,), past=(ours(),)), WHY)
    assert low.options[0].target.minimum == 4


def test_the_mean_of_a_scaled_fleet_of_another_type_is_what_was_seen() -> None:
    seen = context(HOURS)
    days = [
        replace(seen.base[0], instances=(2.0, None, 0.0, *(3.0,) * 21)),
        replace(seen.base[1], instances=(None,) * 24),
    ]
    varied = replace(seen, base=days)
    assert choose._instances_before(varied, Target(TYPE, 3, per_instance=1.0)) == pytest.approx(65 / 22)
    assert choose._instances_before(seen, Target(TYPE, 3)) == 2.0
    silent = replace(seen, base=[days[1]])
    assert choose._instances_before(silent, Target(TYPE, 3, per_instance=1.0)) == 1.0


# a fleet of ours grows


def test_why_a_fleet_of_ours_grows() -> None:
    assert growth_reason(context(is_strained=True, late_budget_used=2.0)) is choose.TIGHT
    assert growth_reason(context()) is choose.TIGHT
    said = growth_reason(context(late_budget_used=2.0))
    assert said.code is Code.UNDER_PROVISIONED
    assert said.sentence.startswith("since our first change 2.00 times as many requests")
    assert said.sentence.endswith(": the fleet we set gets larger")


def larger(count: int = 3, **more: Any) -> Option:
    made = option(TYPE, target=Target(TYPE, count), kind=OptionKind.INSTANCE_COUNT, usd_per_month=usd(count))
    return replace(made, saving_usd_per_month=usd(2) - usd(count), **more)


def grown(seen: EvaluationContext, best: Option) -> Recommendation:
    return choose._grow_our_fleet(BASE, seen, best)


def ours_of_two(tags: dict[str, str] | None = None, **more: Any) -> EvaluationContext:
    seen = context(past=(ours(),), is_strained=True, instances=2.0, **more)
    return replace(seen, endpoint=replace(seen.endpoint, tags=tags or {}))


def test_up_to_the_owners_fleet_it_grows_by_itself() -> None:
    for count in (3, 4):
        found = grown(ours_of_two(), larger(count))
        assert (found.gate, found.finding, found.reason) == (Gate.APPLY, Finding.UNDER_PROVISIONED, choose.TIGHT)
        assert found.options == (larger(count, restores=True),)
        assert found.gate_reason == choose.TIGHT


def test_beyond_it_the_owners_comes_back_first_and_a_person_is_asked_about_the_rest() -> None:
    found = grown(ours_of_two(), larger(5))
    first, rest = found.options
    assert (first.target, first.restores, found.gate) == (Target(TYPE, 4), True, Gate.APPLY)
    assert first.notes[-1].startswith(
        "a first step: the load needs 5 × ml.g6.xlarge; needs your approval: it costs USD"
    )
    assert (rest.restores, rest.growth_usd) == (False, usd(5) - usd(4))
    allowed = grown(ours_of_two({MAY_GROW_TAG: "5000"}), larger(5))
    assert (allowed.gate, allowed.options) == (Gate.APPLY, (larger(5, restores=True),))


def test_where_as_much_as_the_owners_runs_a_person_is_asked_about_more() -> None:
    seen = replace(ours_of_two(), instances=4.0)
    found = grown(seen, larger(5))
    assert (found.gate, found.gate_reason.code) == (Gate.PROPOSE, Code.NEEDS_APPROVAL)
    assert found.options == (larger(5, growth_usd=usd(5) - usd(4)),)
    asked = grown(in_mode(seen, Mode.PROPOSE), larger(5))
    assert asked.options == (larger(5, restores=True),), "a person decides, whatever it costs"


def test_bounds_that_raise_no_minimum_are_no_growth() -> None:
    seen = ours_of_two(scaling=(SCALED,))
    stays = larger(3, kind=OptionKind.AUTOSCALING)
    stays = replace(stays, target=Target(TYPE, 3, minimum=2, maximum=8))
    found = grown(seen, stays)
    assert (found.options, found.gate, found.gate_reason.code) == ((), Gate.PROPOSE, Code.AUTOSCALED)


@pytest.mark.parametrize("option_there", [True, False])
def test_the_minimum_goes_up_before_anything_else_is_asked(monkeypatch: pytest.MonkeyPatch, option_there: bool) -> None:
    seen = ours_of_two(scaling=(SCALED,))
    raised = replace(larger(3, kind=OptionKind.AUTOSCALING), target=Target(TYPE, 3, minimum=3, maximum=8))
    sure = (option(), raised) if option_there else (option(),)
    found = recommend_higher_minimum(BASE, seen, sure)
    assert found is not None
    assert found.options[0].target.minimum == (3 if option_there else 4)
    assert recommend_higher_minimum(BASE, context(scaling=(SCALED,), past=(ours(),)), sure) is None
    for_late = replace(seen, is_strained=False, late_budget_used=2.0)
    kept = recommend_higher_minimum(BASE, for_late, sure)
    assert (kept is not None) is option_there, "a fleet that carries its load keeps its minimum"
    monkeypatch.setattr(choose, "recommend_previous_configuration", lambda base, *_: base)
    assert (recommend_higher_minimum(BASE, seen, (option(),)) is None) is True
    assert recommend_higher_minimum(BASE, seen, ()) == BASE


# nobody calls


def silent(answer: Option | Reason) -> SilentFleet:
    return SilentFleet(context(), Silence(10.0, 2.0), answer)


def test_while_nobody_calls_fewer_instances_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, choose, "replay_option", lambda *_: None)
    stub(monkeypatch, choose, "put_allowed_first", lambda _, sure: tuple(sure))
    verdict = [Gate.APPLY, LATER]
    stub(monkeypatch, choose, "gate_of", lambda *_: tuple(verdict))
    found = choose._while_silent(BASE, silent(larger(1)))
    assert (found.finding, found.gate, found.gate_reason) == (Finding.OVER_PROVISIONED, Gate.APPLY, LATER)
    assert found.reason == Reason(
        Code.CHEAPER_OPTION,
        "its traffic has stopped (no request for 10 h, and the longest pause before was 2 h): 1 × ml.g6.xlarge is"
        " enough until it comes back, for $822.49 a month; today it costs $3,289.96",
    )
    assert found.options[0].not_checked == (choose.UNTIL_BACK,)
    verdict[:] = [Gate.SILENT, SMALL]
    found = choose._while_silent(BASE, silent(larger(1)))
    assert (found.finding, found.reason, found.gate_reason) == (Finding.OPTIMIZED, SMALL, SMALL)
    kept = choose._while_silent(BASE, silent(WHY))
    assert (kept.reason, kept.gate_reason, kept.options) == (WHY, WHY, ())


# the replay of what is recommended


def test_an_option_is_replayed_at_the_speed_that_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = serve(monkeypatch, lambda _: ReplayResult(2000, 30, 1.5, p95_s=1.0))
    seen = context()
    seen = replace(seen, demand=replace(seen.demand, memory=plain.NEED))
    vars(seen)["service_times"] = ((1.0, 0.75), (3.0, 0.25))
    faster = option(TYPE, target=Target(TYPE, 2), promise=Promise(0.5, 1.0, latency_ratio=0.5))
    found = replay_option(seen, faster)
    assert found is not None
    assert asked[0].slower == 0.5
    assert (found.requests_over_objective, found.worst_p95_s, found.memory_margin_gib) == (30, 1.5, 22.0 - 10.0)
    assert found.hourly_load[0] == pytest.approx(240 * 1.5 * 0.5 / 3600 / 2, abs=1e-4)
    unknown = replace(seen, demand=replace(seen.demand, memory=replace(plain.NEED, need_gib=None)))
    blind = replay_option(unknown, faster)
    assert blind is not None
    assert blind.memory_margin_gib is None


@pytest.mark.parametrize(
    "none",
    [
        option(TYPE, kind=OptionKind.SCALE_TO_ZERO),
        option(TYPE, kind=OptionKind.DELETE),
        option("ml.unknown"),
    ],
    ids=["asleep", "deleted", "unknown"],
)
def test_what_is_no_fleet_is_not_replayed(none: Option) -> None:
    assert replay_option(context(), none) is None


# why it is kept


def test_what_a_savings_plan_pays_for_is_already_right() -> None:
    seen = context()
    plan = kit.prices(commitment=Commitment(Decimal(100), known=True))
    paid = replace(seen, inputs=replace(seen.inputs, prices=plan))
    said = choose._keep_reason(options(unsure=(trial(),)), paid)
    assert said.code is Code.COMMITTED
    assert said.sentence.startswith("already right: a Savings Plan pays for all that it costs")
    assert said.sentence.endswith("; until the plan ends less would save nothing")
    assert choose._keep_reason(options(), replace(paid, instances=0.0)).code is Code.ALREADY_RIGHT
    assert choose._keep_reason(options(), replace(paid, instances=0.001)).code is Code.COMMITTED


@pytest.mark.parametrize(
    ("chance", "text"),
    [
        (0.01, "no cheaper type fits: ml.g5.xlarge, which comes closest, is 1 % likely to be fast and large enough"),
        (
            0.009,
            "no cheaper type fits: ml.g5.xlarge, which comes closest, is less than 1 % likely to be fast and large"
            " enough",
        ),
        (0.25, "ml.g5.xlarge would be cheaper, and is 25 % likely to be fast and large enough; "),
    ],
)
def test_the_type_that_comes_closest_is_named_with_its_chance(chance: float, text: str) -> None:
    seen = context(policy={"test_chance": 0.25})
    said = choose._keep_reason(options(unsure=(trial(TYPE, 1.0, 0.001), trial(chance=chance))), seen)
    assert said.code is Code.RISK_TOO_HIGH
    assert said.sentence.startswith(text)
    assert (said.sentence == text) is (chance < 0.25)


def test_the_next_type_by_its_price_an_hour_is_named_with_its_reason() -> None:
    seen = context()
    out = tuple(Excluded(name, Reason(Code.TOO_BUSY, name)) for name in ("ml.g4dn.xlarge", OTHER, TYPE, "ml.unknown"))
    said = choose._keep_reason(options(excluded=out), seen)
    assert said == Reason(
        Code.ALREADY_RIGHT,
        "already right: no cheaper type serves this load. The next type that costs less an hour: ml.g4dn.xlarge",
    )
    two = (Excluded("ml.g4dn.2xlarge", Reason(Code.TOO_BUSY, "last")),)
    assert choose._keep_reason(options(excluded=(out[0], *two)), seen).sentence.endswith("an hour: last")
    plain_text = "already right: no cheaper type serves this load"
    assert choose._keep_reason(options(excluded=out[1:]), seen).sentence == plain_text
    quiet = replace(seen, days=[replace(one, requests=(0.0,) * 288) for one in seen.days])
    assert (
        "; no request came in 100 % of its hours, which cost $3,290 a month"
        in choose._keep_reason(options(), quiet).sentence
    )
