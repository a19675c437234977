"""The adapter to the referee acts only on what is done on the same endpoint, and by whom."""

from array import array
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from bench.adapter import SHARES, Memory, past_of_trial
from bench.policy import ShippedApproved, ShippedAuto, _installed, carried, day_of
from rightsizer.autoscaling.policies import has_only_hourly_counts
from rightsizer.domain.endpoint import LEAST, EndpointKind, Mode
from rightsizer.domain.history import History
from rightsizer.domain.option import OptionKind, Risk, RiskResource
from rightsizer.domain.policy import ChangeLimits, Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Gate, Recommendation
from tests.recommender import kit
from tests.recommender.kit import judge

QUICK_US, SLOW_US = 300_000.0, 900_000.0


def a_day(day: int, slow: range) -> SimpleNamespace:
    """A day of a request a minute, slow in some of its minutes."""
    latency = array("d", [SLOW_US if minute in slow else QUICK_US for minute in range(1440)])
    series = [(("ModelLatency", name, 60), latency) for name in SHARES]
    return SimpleNamespace(day=day, series=(*series, (("Invocations", "Sum", 60), array("d", [1.0] * 1440))))


DAYS = (a_day(0, range(0)), a_day(1, range(0)))
ACTIONS = SimpleNamespace(Deploy=lambda *_, **__: "deployed", ScaleToZeroWhenIdle=lambda _: "asleep")


@pytest.mark.parametrize("kind", [OptionKind.ASYNC, OptionKind.OTHER_ARCHITECTURE, OptionKind.PACKING])
def test_what_is_not_done_in_place_is_no_action_however_small_its_risk(kind: OptionKind) -> None:
    found = seen_by(ShippedAuto())
    assert found.chosen_option is not None
    assert carried(ACTIONS, found, found.chosen_option, view_of(found)) == "deployed"
    away = replace(found.chosen_option, kind=kind, in_place=False, risk=Risk.LOW)
    for verdict in (Gate.PROPOSE, Gate.APPLY):
        assert carried(ACTIONS, replace(found, gate=verdict), away, view_of(found)) is None


def test_a_shadow_of_a_single_instance_waited_in_a_queue_like_the_one_it_copies() -> None:
    """Alone, routing decides nothing: what both waited is taken out of both, or the shadow would look faster."""
    trial = SimpleNamespace(
        day=1,
        production_type="ml.g5.xlarge",
        instance_type="ml.g6.xlarge",
        hours=2,
        requests=1100,
        fits=True,
        latency_mean_ms=4000.0,
        production_latency_mean_ms=3400.0,
        gpu_busy_s_per_request=None,
        gpu_memory_max_gib=10.0,
    )
    alone = past_of_trial(trial, Memory(now=("ml.g5.xlarge", (1,) * 24), routing=LEAST))
    fleet = past_of_trial(trial, Memory(now=("ml.g5.xlarge", (2,) * 24), routing=LEAST))
    assert alone.latency_ratio is not None
    assert fleet.latency_ratio is not None
    assert fleet.latency_ratio < 1.0 < alone.latency_ratio < 4000 / 3400


def seen_by(policy: ShippedAuto, day: int = 0) -> Recommendation:
    """What the engine finds on an oversized endpoint, as the policy would see it on that day."""
    endpoint, window = kit.endpoint(mode=policy.mode), [kit.window(kit.steady())]
    found = judge(endpoint, window, kit.prices(), kit.catalogue(), {}, History(), policy.policy, kit.NOW)
    policy._now[endpoint.ref.name] = endpoint
    policy._catalogue = kit.catalogue()
    return replace(found, evaluated_at=found.evaluated_at + timedelta(days=day))


def view_of(found: Recommendation, hosting: str = "real-time") -> SimpleNamespace:
    return SimpleNamespace(
        endpoint_name=found.ref.name,
        variant_name="v",
        autoscale_max=None,
        hosting=hosting,
        days=DAYS,
        days_since_last_change=1,
        slo_p95_ms=None,
    )


@pytest.mark.parametrize("made", [ShippedAuto, ShippedApproved])
def test_what_ships_is_measured_with_default_settings(made: type[ShippedAuto]) -> None:
    assert (made.policy, made.limits) == (Policy(), ChangeLimits())


def test_automatic_mode_does_what_passes_the_gate_and_leaves_what_a_person_is_asked() -> None:
    policy = ShippedAuto()
    found = seen_by(policy)
    answer = policy._answer(ACTIONS, found, view_of(found))
    assert answer is not None
    assert answer[0] == "deployed"
    why = Reason(Code.NO_OBJECTIVE, "needs your approval: no tag rightsizer:p95-ms says which latency is too much")
    asked = replace(found, gate=Gate.PROPOSE, gate_reason=why)
    assert policy._answer(ACTIONS, asked, view_of(asked)) is None
    assert [cause for _, _, cause, _ in policy.causes] == ["done", "asked, nobody answers: propose: no-objective"]


def test_an_approval_comes_a_day_later() -> None:
    policy = ShippedApproved()
    first = seen_by(policy)
    assert first.gate is Gate.PROPOSE
    assert policy._answer(ACTIONS, first, view_of(first)) is None
    next_day = seen_by(policy, day=1)
    answer = policy._answer(ACTIONS, next_day, view_of(next_day))
    assert answer is not None
    assert answer[0] == "deployed"


def test_an_approval_is_held_against_the_newest_judgement() -> None:
    policy = ShippedApproved()
    first = seen_by(policy)
    policy._answer(ACTIONS, first, view_of(first))
    held = replace(seen_by(policy, day=1), gate=Gate.TEST)
    assert policy._answer(ACTIONS, held, view_of(held)) is None
    assert "overruled" in policy.causes[-1][2]


@pytest.mark.parametrize("objective_ms", [500, None])
@pytest.mark.parametrize(
    ("slow", "since", "guard"),
    [
        ((0, 0), 1, True),
        ((0, 20), 1, True),
        ((20, 20), 1, False),
        ((0, 20, 0, 0, 0, 20, 0), 6, False),
        ((0, 20, 0, 0, 0, 20, 0), 3, True),
        ((20, 0, 0, 0, 0, 0, 20, 0), 7, True),
    ],
)
def test_the_guard_stays_off_where_the_fleet_of_today_would_ring_it_on_two_days_of_its_week(
    slow: tuple[int, ...], since: int, guard: bool, objective_ms: int | None
) -> None:
    """There the product sets no alarm on the objective, and the referee has no other one."""
    found = seen_by(ShippedAuto())
    assert found.chosen_option is not None
    guards: list[bool] = []
    actions = SimpleNamespace(Deploy=lambda *_, guard, **__: guards.append(guard))
    days = tuple(a_day(number, range(600, 600 + minutes)) for number, minutes in enumerate(slow))
    view = SimpleNamespace(endpoint_name="e", variant_name="v", autoscale_max=None, hosting="real-time", days=days)
    view.days_since_last_change, view.slo_p95_ms = since, objective_ms
    carried(actions, found, found.chosen_option, view)
    assert guards == [guard]


def test_what_has_a_higher_risk_is_never_approved() -> None:
    policy = ShippedApproved()
    for day in (0, 1, 2):
        found = seen_by(policy, day=day)
        assert found.chosen_option is not None
        risky = rated(found, RiskResource.LATENCY)
        assert policy._answer(ACTIONS, risky, view_of(risky)) is None
    assert {cause for _, _, cause, _ in policy.causes} == {"asked at risk 2: latency"}


def rated(found: Recommendation, resource: RiskResource) -> Recommendation:
    """The recommendation with a medium risk of one resource."""
    option = found.options[0]
    worse = replace(option, risk=Risk.MEDIUM, risks={**option.risks, resource: Risk.MEDIUM})
    return replace(found, options=(worse,))


def test_one_instance_in_one_zone_is_approved_where_its_performance_risk_is_low() -> None:
    policy = ShippedApproved()
    alone = rated(seen_by(policy), RiskResource.AVAILABILITY)
    assert policy._answer(ACTIONS, alone, view_of(alone)) is None
    assert [cause for _, _, cause, _ in policy.causes] == ["asked, approved the next day"]


def test_a_day_has_room_for_ten_changes() -> None:
    policy = ShippedAuto()
    found = seen_by(policy)
    answers = [policy._answer(ACTIONS, found, view_of(found)) for _ in range(12)]
    assert [answer is not None for answer in answers] == [True] * 10 + [False] * 2


@pytest.mark.parametrize(
    ("hosting", "kind", "action"),
    [
        ("real-time", OptionKind.INSTANCE_TYPE, "deployed"),
        ("real-time", OptionKind.SCALE_TO_ZERO, None),
        ("inference-components", OptionKind.INSTANCE_TYPE, None),
        ("inference-components", OptionKind.SCALE_TO_ZERO, "asleep"),
        ("async", OptionKind.INSTANCE_TYPE, "deployed"),
        ("async", OptionKind.SCALE_TO_ZERO, "asleep"),
        ("async", OptionKind.DELETE, None),
    ],
)
def test_an_action_is_what_the_product_does_on_that_kind_of_endpoint(
    hosting: str, kind: OptionKind, action: str | None
) -> None:
    found = seen_by(ShippedAuto())
    assert found.chosen_option is not None
    option = replace(found.chosen_option, kind=kind, in_place=True)
    assert carried(ACTIONS, found, option, view_of(found, hosting)) == action


def test_a_fleet_under_its_owners_scaling_starts_from_the_minimum() -> None:
    found = seen_by(ShippedAuto())
    assert found.chosen_option is not None
    deployed: list[tuple[int, ...]] = []
    actions = SimpleNamespace(Deploy=lambda _, counts, **__: deployed.append(counts))
    view = SimpleNamespace(endpoint_name="e", variant_name="v", autoscale_max=8, hosting="real-time", days=DAYS)
    view.days_since_last_change, view.slo_p95_ms = 1, None
    target = replace(found.chosen_option.target, instance_count=5, minimum=2, maximum=8)
    carried(actions, found, replace(found.chosen_option, target=target), view)
    assert deployed == [(2,) * 24]


def owners_view(**more: Any) -> SimpleNamespace:
    known = {
        "endpoint_name": "e",
        "variant_name": "AllTraffic",
        "instance_type": "ml.g5.xlarge",
        "instance_counts": (2,) * 24,
        "autoscale_max": 4,
        "scale_to_zero_minutes": None,
        "routing": LEAST,
        "slo_p95_ms": None,
        "framework": "unknown",
        "tags": (("environment", "dev"), ("model-version", "v1")),
        "hosting": "async",
    }
    return SimpleNamespace(**known | more)


def test_what_owners_did_not_say_is_not_assumed() -> None:
    found = _installed(owners_view(), Memory(), Mode.PROPOSE)
    assert found.tags == {"environment": "dev"}
    assert (found.objective.p95_s, found.objective.min_instances) == (None, None)
    assert (found.kind, found.kinds, found.mode_declared) == (EndpointKind.ASYNC, (EndpointKind.ASYNC,), False)
    (target,) = found.scaling
    assert (target.variant_name, target.minimum, target.maximum, len(target.policies)) == ("AllTraffic", 2, 4, 1)


def test_counts_by_the_hour_of_ours_are_actions_that_the_product_can_read() -> None:
    """Else no further change has a button: an action that is not understood may be due while it runs."""
    found = seen_by(ShippedAuto())
    assert found.chosen_option is not None
    counts = (1,) * 8 + (3,) * 10 + (1,) * 6
    done = replace(found.chosen_option, target=replace(found.chosen_option.target, hourly_counts=counts))
    view = owners_view(instance_counts=counts, autoscale_max=None, hosting="real-time")
    (target,) = _installed(view, Memory(option=done), Mode.PROPOSE).scaling
    assert has_only_hourly_counts(target)
    schedules = [(action["Schedule"], action["ScalableTargetAction"]["MinCapacity"]) for action in target.scheduled]
    assert schedules == [("cron(45 7 * * ? *)", 3), ("cron(0 18 * * ? *)", 1)]


def plan_of(day: int) -> tuple[ShippedApproved, Recommendation]:
    """A policy whose plan's first stage began on day 1, and what is found on a later day."""
    policy = ShippedApproved()
    asked = seen_by(policy, day=1)
    stage = asked.chosen_option
    assert stage is not None
    asked = replace(asked, stages=(stage,))
    policy._plans[asked.ref.name] = (asked, day_of(asked))
    return policy, seen_by(policy, day=day)


def stands(found: Recommendation, *counts: int) -> SimpleNamespace:
    """The endpoint as the first stage left it."""
    assert found.chosen_option is not None
    view = view_of(found)
    view.instance_type, view.instance_counts = found.chosen_option.target.instance_type, counts or (1,) * 24
    return view


@pytest.mark.parametrize(("day", "begins"), [(2, False), (3, True), (4, True)])
def test_the_next_stage_of_a_plan_begins_once_the_one_before_is_proven_and_rested(day: int, begins: bool) -> None:
    policy, found = plan_of(day)
    answer = policy._next_stage(ACTIONS, found, stands(found))
    assert (answer is not None) == begins
    assert (found.ref.name in policy._plans) != begins, "a stage begins once"


def test_a_plan_ends_where_the_stage_before_does_not_stand() -> None:
    policy, found = plan_of(3)
    gone = stands(found)
    gone.instance_type = "ml.p5.48xlarge"
    assert policy._next_stage(ACTIONS, found, gone) is None
    assert policy.causes[-1][2] == "plan: the stage before does not stand"
    assert policy._next_stage(ACTIONS, found, stands(found)) is None, "it does not begin again"


@pytest.mark.parametrize(
    "more",
    [
        {"options": ()},
        {"gate": Gate.SILENT, "gate_reason": Reason(Code.LATE_BUDGET_SPENT, "too many late")},
    ],
)
def test_a_plan_ends_by_new_facts(more: dict[str, Any]) -> None:
    policy, found = plan_of(3)
    view = stands(found)
    assert policy._next_stage(ACTIONS, replace(found, **more), view) is None
    assert policy.causes[-1][2] == "plan: ended by new facts"
