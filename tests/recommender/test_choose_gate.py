"""What is said and done about the best option: grown, silent for late requests, asked, or marked to stand in."""

from dataclasses import replace
from typing import Any

import pytest

from rightsizer.domain.option import Excluded, Option, OptionKind, Target
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from rightsizer.recommender import choose
from rightsizer.recommender.choose import late_budget_refusal
from rightsizer.recommender.context import EvaluationContext
from tests import samples
from tests.recommender import plain
from tests.recommender.plain_context import OTHER, TYPE, context, running, stub
from tests.recommender.test_choose import BASE, LATER, SMALL, option, options, trial

# the gate


def gated(
    monkeypatch: pytest.MonkeyPatch, gate: Gate, why: Reason, seen: EvaluationContext, *sure: Option, **more: Any
) -> Recommendation:
    stub(monkeypatch, choose, "gate_of", lambda *_: (gate, why))
    stub(monkeypatch, choose, "replay_option", lambda *_: None)
    stub(monkeypatch, choose, "_mark_stand_ins", lambda _, all_of, __: [replace(o, by_itself=True) for o in all_of])
    stub(monkeypatch, choose, "_grow_our_fleet", lambda base, *_: replace(base, fingerprint="grown"))
    return choose._apply_gate(BASE, seen, sure, options(*sure, **more))


def test_a_cheaper_fleet_is_said_with_both_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    unsure = tuple(trial(f"ml.{letter}") for letter in "abcd")
    found = gated(monkeypatch, Gate.PROPOSE, LATER, context(), option(), unsure=unsure)
    assert (found.finding, found.gate, found.gate_reason) == (Finding.OVER_PROVISIONED, Gate.PROPOSE, LATER)
    assert found.reason == Reason(
        Code.CHEAPER_OPTION,
        "1 × ml.g5.xlarge can serve the same load for $3,189.96 a month; today it costs $3,289.96",
    )
    assert [o.target.instance_type for o in found.options] == [OTHER, "ml.a", "ml.b", "ml.c"]
    assert not found.options[0].by_itself
    assert gated(monkeypatch, Gate.APPLY, LATER, context(), option()).options[0].by_itself


def test_a_saving_that_is_too_small_is_the_reason_and_no_waste(monkeypatch: pytest.MonkeyPatch) -> None:
    found = gated(monkeypatch, Gate.SILENT, SMALL, context(), option())
    assert (found.finding, found.reason, found.gate_reason) == (Finding.OPTIMIZED, SMALL, SMALL)
    for saving, finding in ((10.0, Finding.OVER_PROVISIONED), (499.0, Finding.OPTIMIZED)):
        promising = gated(monkeypatch, Gate.SILENT, SMALL, context(), option(saving=saving), unsure=(trial(),))
        assert promising.finding is finding


@pytest.mark.parametrize(
    ("best", "more", "grows"),
    [
        (option(saving=0.0), {"is_strained": True}, True),
        (option(saving=0.01), {"is_strained": True}, False),
        (option(saving=-9.0), {}, False),
    ],
)
def test_a_fleet_of_ours_that_is_too_small_grows(
    monkeypatch: pytest.MonkeyPatch, best: Option, more: dict[str, Any], grows: bool
) -> None:
    assert (gated(monkeypatch, Gate.PROPOSE, LATER, context(**more), best).fingerprint == "grown") is grows


@pytest.mark.parametrize("instances", [1.0, 2.0])
def test_for_late_requests_alone_only_a_larger_fleet_grows(monkeypatch: pytest.MonkeyPatch, instances: float) -> None:
    seen = context(past=(plain.past(TYPE, from_type=TYPE, counts=(4, 1)),), late_budget_used=1.5, instances=instances)
    best = option(TYPE, saving=-1.0, target=Target(TYPE, 2), mean_instances=2.0)
    assert seen.is_fleet_too_small
    assert (gated(monkeypatch, Gate.PROPOSE, LATER, seen, best).fingerprint == "grown") is (instances < 2.0)


def test_nothing_gets_smaller_while_more_requests_are_late_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = context(late_budget_used=1.25)
    until = late_budget_refusal(seen)
    assert until is not None
    assert (until.code, late_budget_refusal(context())) == (Code.LATE_BUDGET_SPENT, None)
    assert "1.25 times as many requests" in until.sentence
    assert until.sentence.endswith("; nothing gets smaller until it is at most 1 times")
    found = gated(monkeypatch, Gate.APPLY, LATER, seen, option())
    assert (found.gate, found.gate_reason) == (Gate.SILENT, until)
    assert found.reason.code is Code.CHEAPER_OPTION
    dearer = gated(monkeypatch, Gate.APPLY, LATER, seen, option(saving=0.0))
    assert (dearer.options, dearer.reason, dearer.gate, dearer.gate_reason) == ((), until, Gate.SILENT, until)
    asleep = gated(monkeypatch, Gate.APPLY, LATER, seen, option(kind=OptionKind.SCALE_TO_ZERO))
    assert (asleep.gate, asleep.gate_reason) == (Gate.APPLY, LATER), "asleep it serves nobody worse"


def test_what_is_offered_to_stand_in_is_not_ruled_out_as_dearer() -> None:
    dearer, busy = Reason(Code.DEARER_THAN_OFFERED, "dearer"), Reason(Code.TOO_BUSY, "busy")
    out = (Excluded(OTHER, dearer), Excluded(OTHER, busy), Excluded(TYPE, dearer))
    assert choose._without_offered(out, [option()]) == out[1:]


def test_options_behind_the_chosen_one_are_marked_where_they_may_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = {OTHER, "ml.spare", "ml.last"}
    stub(monkeypatch, choose, "may_apply", lambda _, o: o.target.instance_type in allowed)
    spares = [option("ml.no"), option("ml.spare"), option("ml.last")]
    stub(monkeypatch, choose, "stand_ins", lambda *_: iter(spares))

    def marked(*sure: Option) -> list[tuple[str, bool]]:
        found = choose._mark_stand_ins(context(), sure, options(*sure))
        return [(o.target.instance_type, o.by_itself) for o in found]

    assert marked(option("ml.no"), option(OTHER)) == [("ml.no", False), (OTHER, True)]
    more = [("ml.no", False), (TYPE, False), ("ml.spare", True)]
    assert marked(option("ml.no"), option(TYPE)) == more
    assert marked(option(), option()) == [(OTHER, False), (OTHER, True), ("ml.spare", True)], "of the same type none"
    allowed.add(TYPE)
    three = [(OTHER, False), (TYPE, True), (OTHER, True)]
    assert marked(option(), option(TYPE), option()) == three
    assert marked(option(), option(TYPE), option("ml.no"))[1:] == [(TYPE, True), ("ml.no", False)]


def test_the_unused_gpus_are_said_of_the_type_that_they_were_counted_on() -> None:
    seen = context()
    counted = replace(seen, demand=replace(seen.demand, gpus_used=1))
    assert choose._unused_gpus(seen) == ""
    assert choose._unused_gpus(counted) == "; it uses at most 1 of the 1 GPUs of ml.g6.xlarge"
    assert choose._unused_gpus(running(counted, OTHER)) == ""


def test_a_recommendation_is_replayed_with_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    replay = samples.recommendation().replay
    stub(monkeypatch, choose, "replay_option", lambda _, o: replay if o == option() else None)
    assert choose._with_replay(BASE, context()) is BASE
    assert choose._with_replay(replace(BASE, options=(option(), option(TYPE))), context()).replay == replay


def test_the_question_about_late_requests_is_never_done_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = replace(context(), within_objective=True)
    stub(monkeypatch, choose, "within_objective", lambda _: wide)
    stub(monkeypatch, choose, "options_for", lambda _: options(option(), option(TYPE)))
    stub(monkeypatch, choose, "within_p95", lambda _, o: o if o.target.instance_type == OTHER else None)
    stub(monkeypatch, choose, "with_open_question", lambda _, __, sure: sure)
    gate = [Gate.APPLY, LATER]
    stub(
        monkeypatch, choose, "_apply_gate",
        lambda base, seen, sure, __: replace(
            base, options=tuple(replace(o, by_itself=True) for o in sure), gate=gate[0], gate_reason=gate[1],
            notes=() if seen is wide else (LATER,),
        ),
    )  # fmt: skip
    found = choose._ask_within_objective(BASE, context())
    assert found is not None
    assert (found.gate, found.gate_reason, found.notes) == (Gate.PROPOSE, choose.LESS_ROOM, ())
    assert [(o.target.instance_type, o.by_itself) for o in found.options] == [(OTHER, False)]
    gate[:] = [Gate.PROPOSE, LATER]
    asked = choose._ask_within_objective(BASE, context())
    assert asked is not None
    assert (asked.gate_reason, asked.options[0].by_itself) == (LATER, True)
    gate[:] = [Gate.SILENT, SMALL]
    assert choose._ask_within_objective(BASE, context()) is None
    gate[:] = [Gate.PROPOSE, LATER]
    assert choose._ask_within_objective(BASE, context(is_strained=True)) is None
    stub(monkeypatch, choose, "within_p95", lambda *_: None)
    assert choose._ask_within_objective(BASE, context()) is None
    stub(monkeypatch, choose, "within_objective", lambda _: None)
    assert choose._ask_within_objective(BASE, context()) is None
