"""What growth costs its owner in all, who decides it, and which option that saves ends the shortage too."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.endpoint import MAY_GROW_TAG, Mode
from rightsizer.domain.history import PastEnd
from rightsizer.domain.option import Excluded, Option, OptionKind, Risk, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate
from rightsizer.recommender import growth
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.growth_fleets import GrowthNeed, GrowthOffer, NeedKind
from tests import samples
from tests.recommender import kit, plain
from tests.recommender.plain_context import OTHER, SCALED, TYPE, context

USD = Decimal("1.1267") * 730
"""A month of one instance."""


def tagged(seen: EvaluationContext, usd: str | None = "500", mode: Mode = Mode.AUTO) -> EvaluationContext:
    tags = {} if usd is None else {MAY_GROW_TAG: usd}
    return replace(seen, endpoint=replace(seen.endpoint, tags=tags, mode=mode))


def more(count: int = 5, **changes: Any) -> Option:
    """Five instances in place of four."""
    usd = (count * USD).quantize(Decimal("0.01"))
    made = plain.option(
        kind=OptionKind.INSTANCE_COUNT, target=Target(TYPE, count), usd_per_month=usd, restart_needed=False,
        growth_usd=usd - (4 * USD).quantize(Decimal("0.01")), risk=Risk.VERY_LOW,
    )  # fmt: skip
    return replace(made, **changes)


def need(kind: NeedKind = NeedKind.MINIMUM, least: int = 2) -> GrowthNeed:
    return GrowthNeed(kind, Reason(Code.UNDER_PROVISIONED, "it is short"), least)


@pytest.mark.parametrize(
    ("changes", "kind", "mends"),
    [
        ({}, NeedKind.MINIMUM, True),
        ({}, NeedKind.QUEUE, False),
        ({"saving_usd_per_month": Decimal(0)}, NeedKind.MINIMUM, False),
        ({"saving_usd_per_month": Decimal("0.01")}, NeedKind.MINIMUM, True),
        ({"target": Target(TYPE, 1)}, NeedKind.MINIMUM, False),
        ({"target": Target(TYPE, 4, minimum=1, maximum=4)}, NeedKind.MINIMUM, False),
        ({"target": Target(TYPE, 1, minimum=2, maximum=4)}, NeedKind.MINIMUM, True),
        ({"target": Target(TYPE, 4, (4,) * 23 + (1,))}, NeedKind.MINIMUM, False),
        ({"target": Target(TYPE, 4, (4,) * 23 + (2,))}, NeedKind.MINIMUM, True),
        ({"p95_s": 4.0}, NeedKind.LATE, True),
        ({"p95_s": 4.1}, NeedKind.LATE, False),
        ({"p95_s": None}, NeedKind.LATE, False),
    ],
)
def test_an_option_that_saves_ends_the_need_with_as_many_instances_and_in_time(
    changes: dict[str, Any], kind: NeedKind, mends: bool
) -> None:
    option = replace(plain.option(target=Target(TYPE, 2)), **changes)
    assert growth._does_mend(context(), option, need(kind)) is mends


def test_what_is_sure_comes_first_then_the_cheaper_then_what_starts_nothing_anew() -> None:
    cheap, dear = more(5), more(6)
    restarted = replace(cheap, restart_needed=True)
    named = replace(cheap, target=Target("ml.z", 5))
    offers = [
        GrowthOffer(cheap, True),
        GrowthOffer(dear, False),
        GrowthOffer(restarted, False),
        GrowthOffer(named, False),
    ]
    ranked = sorted([*offers, GrowthOffer(cheap, False)], key=growth._growth_order)
    assert ranked == [GrowthOffer(cheap, False), offers[3], offers[2], offers[1], offers[0]]


def test_four_ways_are_shown_each_with_what_it_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [GrowthOffer(more(count), is_guess=False) for count in (9, 8, 7, 6, 5)]
    monkeypatch.setattr(growth, "growth_need", lambda _: need())
    monkeypatch.setattr(growth, "growth_offers", lambda *_: iter(made))
    monkeypatch.setattr(growth, "_does_mend", lambda _, option, __: option.target.instance_count == 1)
    seen = tagged(context(), "5000")
    shown = growth.recommend_growth(samples.recommendation(), seen, None)
    assert shown is not None
    assert [option.target.instance_count for option in shown.options] == [5, 6, 7, 8]
    assert [option.growth_usd for option in shown.options] == [
        option.usd_per_month - seen.usd_per_month for option in shown.options
    ]
    assert shown.gate is Gate.APPLY
    assert growth.recommend_growth(samples.recommendation(), seen, more(1)) is None, "what saves mends it too"
    assert growth.recommend_growth(samples.recommendation(), seen, more(2)) is not None
    monkeypatch.setattr(growth, "growth_need", lambda _: None)
    assert growth.recommend_growth(samples.recommendation(), seen, None) is None


def test_what_was_ruled_out_before_stays_but_for_what_growth_looked_at_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    why = Reason(Code.TOO_BUSY, "too busy")
    before = (
        Excluded(TYPE, why),
        Excluded(TYPE, why, OptionKind.SCHEDULE),
        Excluded("ml.a", why),
        Excluded("ml.b", why),
    )
    anew = Excluded("ml.a", Reason(Code.TOO_SLOW, "too slow"))
    monkeypatch.setattr(growth, "growth_need", lambda _: need())
    monkeypatch.setattr(growth, "growth_offers", lambda *_: iter((GrowthOffer(more(), is_guess=False), anew)))
    shown = growth.recommend_growth(samples.recommendation(excluded=before), context(), None)
    assert shown is not None
    assert shown.excluded == (before[1], before[3], anew)


def test_where_no_way_is_left_a_person_reads_the_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "growth_need", lambda _: need())
    monkeypatch.setattr(growth, "growth_offers", lambda *_: iter(()))
    shown = growth.recommend_growth(samples.recommendation(), context(), None)
    assert shown is not None
    assert (shown.options, shown.gate, shown.gate_reason) == ((), Gate.PROPOSE, need().reason)


@pytest.mark.parametrize(
    ("mode", "usd", "option", "gate", "code"),
    [
        (Mode.AUTO, "822.50", more(), Gate.APPLY, Code.SAFE_TO_APPLY),
        (Mode.AUTO, "822.49", more(), Gate.PROPOSE, Code.NEEDS_APPROVAL),
        (Mode.AUTO, None, more(), Gate.PROPOSE, Code.NEEDS_APPROVAL),
        (Mode.AUTO, "much", more(), Gate.PROPOSE, Code.BAD_TAG),
        (Mode.PROPOSE, "5000", more(), Gate.PROPOSE, Code.NOT_OPTED_IN),
        (Mode.OFF, "5000", more(), Gate.SILENT, Code.MODE_OFF),
        (Mode.REPORT, "5000", more(), Gate.SILENT, Code.MODE_REPORT),
        (Mode.AUTO, "5000", more(risk=Risk.HIGH), Gate.PROPOSE, Code.RISK_TOO_HIGH),
    ],
)
def test_growth_is_applied_by_itself_within_the_owners_tag_alone(
    mode: Mode, usd: str | None, option: Option, gate: Gate, code: Code
) -> None:
    verdict, why = growth.decide_growth(tagged(context(), usd, mode), option)
    assert (verdict, why.code) == (gate, code)


def test_what_is_allowed_is_said_beside_what_is_added() -> None:
    _, why = growth.decide_growth(tagged(context(), "1000"), more())
    assert why.sentence == (
        "grows by itself: USD 822.50 a month more, and the tag rightsizer:may-grow allows USD 1,000.00"
    )


def test_failures_of_lately_are_no_reason_to_ask_since_growth_mends_them() -> None:
    seen = tagged(context(), "1000")
    failing = replace(seen, demand=replace(seen.demand, error_share=0.5, failed_lately=0.5))
    assert growth.decide_growth(failing, more())[0] is Gate.APPLY


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        (Target(TYPE, 8), False),
        (Target(TYPE, 9), True),
        (Target(TYPE, 3, minimum=3, maximum=8), False),
        (Target(TYPE, 3, minimum=3, maximum=9), True),
    ],
)
def test_only_a_person_goes_beyond_the_owners_maximum(target: Target, asked: bool) -> None:
    seen = context(scaling=(replace(SCALED, maximum=7), SCALED))
    assert (growth._beyond_maximum(seen, more(target=target)) is not None) is asked
    assert growth._beyond_maximum(context(), more(target=target)) is None
    if asked and target.maximum:
        said = growth._beyond_maximum(seen, more(target=target))
        assert said is not None
        assert (said.code, said.sentence) == (
            Code.AUTOSCALED, "needs your approval: up to 9 instances, and the maximum of its autoscaling is 8"
        )  # fmt: skip


def grown(**changes: Any) -> Any:
    """Two instances that became four by an earlier growth."""
    return replace(plain.past(TYPE, from_type=TYPE, counts=(2, 4), grows=True), **changes)


def test_earlier_growth_in_force_counts_in_what_is_added_and_an_unknown_price_is_asked_about() -> None:
    once = context()
    assert growth.added_usd(once, more()) == more().usd_per_month - once.usd_per_month
    again = context(past=(grown(), grown(from_count=4)))
    two = (2 * USD).quantize(Decimal("0.01"))
    assert growth.added_usd(again, more()) == more().usd_per_month - two
    unknown = context(past=(grown(from_type="ml.unknown"),))
    assert growth.added_usd(unknown, more()) is None
    why = growth.decide_growth(tagged(unknown, "5000"), more())
    assert why == (
        Gate.PROPOSE,
        Reason(Code.NO_PRICE, "needs your approval: what ran before it grew has no price to compare with"),
    )
    assert growth._told_usd(unknown, more()) == more().usd_per_month - unknown.usd_per_month
    assert growth._told_usd(again, more()) == more().usd_per_month - two
    assert growth._told_usd(once, more(1)) == 0


@pytest.mark.parametrize(
    ("count", "usd", "code"),
    [(4, None, None), (5, None, Code.NEEDS_APPROVAL), (5, "822.50", None), (5, "822.49", Code.NEEDS_APPROVAL)],
)
def test_beyond_the_owners_fleet_their_tag_decides(count: int, usd: str | None, code: Code | None) -> None:
    seen = tagged(context(past=(plain.past(TYPE, from_type=TYPE, counts=(4, 2)),)), usd)
    assert growth.owner_usd(seen) == (4 * USD).quantize(Decimal("0.01"))
    why = growth.beyond_owner_reason(seen, more(count))
    assert (why.code if why else None) == code
    assert why is None or why.sentence.startswith("needs your approval: it costs USD 822.50 a month more")


def test_all_growth_since_the_first_counts_against_the_tag() -> None:
    usd = more().usd_per_month - (2 * USD).quantize(Decimal("0.01"))
    for allowed, code in ((usd, None), (usd - Decimal("0.01"), Code.NEEDS_APPROVAL)):
        why = growth.beyond_owner_reason(tagged(context(past=(grown(),)), str(allowed)), more())
        assert (why.code if why else None) == code
    unknown = tagged(context(past=(grown(from_type="ml.unknown"),)), "822.50")
    assert growth.beyond_owner_reason(unknown, more()) is None, "what is known is added to the owner's fleet"


def test_a_minimum_above_the_owners_is_paid_at_every_hour() -> None:
    option = more(target=Target(TYPE, 4, minimum=4, maximum=8), price=plain.PRICE)
    owners = (plain.past(TYPE, from_type=TYPE, counts=(9, 2), from_minimum=2),)
    adds = f"{2 * Decimal('1.408') * 730:.2f}"
    assert growth.minimum_beyond_owner((), option, {}) is None
    assert growth.minimum_beyond_owner(owners, replace(option, target=Target(TYPE, 4, minimum=2)), {}) is None
    asleep = (replace(owners[0], from_minimum=0),)
    assert growth.minimum_beyond_owner(asleep, replace(option, target=Target(TYPE, 4)), {}) is None
    assert growth.minimum_beyond_owner(owners, option, {MAY_GROW_TAG: adds}) is None
    why = growth.minimum_beyond_owner(owners, option, {MAY_GROW_TAG: "5"})
    assert why is not None
    assert why.code is Code.NEEDS_APPROVAL
    assert why.sentence == (
        "a minimum of 4, and it was 2 before our changes: it costs USD 2,055.68 a month more, and the tag"
        " rightsizer:may-grow allows USD 5.00 in all"
    )
    said = growth.beyond_owner_reason(tagged(context(past=owners), "5"), option)
    assert said == Reason(why.code, f"needs your approval: {why.sentence}")


def test_an_owners_fleet_without_a_price_costs_nothing_that_is_known() -> None:
    seen = context()
    unpriced = replace(seen, inputs=replace(seen.inputs, prices=kit.prices(without=(TYPE,))))
    assert growth.owner_usd(unpriced) == 0


@pytest.mark.parametrize(
    ("changes", "calm"),
    [({}, True), ({"ended": PastEnd.ROLLED_BACK, "failure": "errors", "to_type": TYPE}, False)],
)
def test_no_cooldown_holds_growth_back_and_what_went_back_for_how_it_served_does(
    changes: dict[str, Any], calm: bool
) -> None:
    past = replace(plain.past(OTHER, days_ago=0.01, from_type=OTHER, counts=(1, 1)), **changes)
    past = replace(past, from_type=TYPE, from_count=4, to_count=5) if changes else past
    asked = growth._gate_as_if_it_saved(tagged(context(past=(past,))), more())
    assert (asked is None) is calm


def test_a_model_that_would_be_split_over_fewer_gpus_is_asked_about() -> None:
    eight = kit.catalogue({"ml.g6.48xlarge": (192, 768, 8, "16.69")}).types["ml.g6.48xlarge"]
    seen = tagged(replace(context(), runs=eight, reference=eight))
    asked = growth._gate_as_if_it_saved(seen, more(target=Target(OTHER, 5)))
    assert asked is not None
    assert "1 in place of 8 GPUs" in asked.sentence
    assert growth._gate_as_if_it_saved(seen, more(target=Target("ml.g6.48xlarge", 5))) is None, (
        "it is not in the catalogue"
    )
