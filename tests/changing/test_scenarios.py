"""Every kind of change that is carried out in place, from its approval to its proof."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.domain.change import ChangeState
from rightsizer.domain.demand import Peak
from rightsizer.domain.proposal import ProposalState
from rightsizer.domain.recommendation import Gate
from rightsizer.domain.slowdown import Promise
from rightsizer.flows.orders import Orders
from sandbox.sagemaker.load import Served
from tests.changing import scenarios
from tests.changing.scenarios import Scenario
from tests.changing.world import NAME, OLD_TYPE, World, an_option, world

PEAK = Peak(14, (0, 1, 2, 3, 4))
WHO: dict[str, Any] = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/{NAME}/variant/AllTraffic"}


def carried_out(scenario: Scenario) -> Any:
    return world(scenario.option, seed=scenario.seed, kind=scenario.kind, judged=scenario.judged, **scenario.endpoint)


def proven(w: World) -> None:
    w.start()
    change = w.run(30)
    assert change.state is ChangeState.PROVEN, change.outcome


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [s for s in scenarios.ALL if s is not scenarios.SHADOW], ids=lambda s: s.name)
def test_it_is_proven_and_leaves_nothing_behind(scenario: Scenario) -> None:
    with carried_out(scenario) as w:
        proven(w)
        ours = [
            a["AlarmName"]
            for a in w.box.client("cloudwatch").describe_alarms(AlarmNamePrefix="rightsizer-")["MetricAlarms"]
        ]
        invocations = len(w.box.calls.of("dynamodb", "Query"))
    asleep = ("large", "small") if scenario is scenarios.COMPONENTS_ZERO else (NAME,)
    stays = [f"rightsizer-wake-{name}" for name in asleep] if scenario.option.target.minimum == 0 else []
    assert ours == stays, "what wakes a sleeping endpoint is part of what was asked"
    assert w.journal is not None
    assert invocations <= 40


def test_autoscaling_comes_back_for_the_new_capacity_with_its_alarm_on_the_new_policy() -> None:
    with carried_out(scenarios.AUTOSCALED) as w:
        scaling, cloudwatch = w.box.client("application-autoscaling"), w.box.client("cloudwatch")
        before = scaling.describe_scaling_policies(**WHO)["ScalingPolicies"]
        proven(w)
        target = scaling.describe_scalable_targets(ServiceNamespace="sagemaker", ResourceIds=[WHO["ResourceId"]])[
            "ScalableTargets"
        ][0]
        policies = scaling.describe_scaling_policies(**WHO)["ScalingPolicies"]
        actions = scaling.describe_scheduled_actions(**WHO)["ScheduledActions"]
        alarm = cloudwatch.describe_alarms(AlarmNames=["burst-now"])["MetricAlarms"][0]
    old = {p["PolicyName"]: p["PolicyARN"] for p in before}
    new = {p["PolicyName"]: p["PolicyARN"] for p in policies}
    tracking = next(p for p in policies if p["PolicyType"] == "TargetTrackingScaling")
    assert (target["MinCapacity"], target["MaxCapacity"]) == (2, 8), "one old instance is two new ones"
    assert target["SuspendedState"]["ScheduledScalingSuspended"] is True
    assert tracking["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 50.0
    assert actions[0]["ScalableTargetAction"] == {"MinCapacity": 2, "MaxCapacity": 4}
    assert new.keys() == old.keys()
    assert new["burst"] != old["burst"]
    assert alarm["AlarmActions"] == [new["burst"], f"arn:aws:sns:eu-west-1:{w.box.account}:pager"]


def test_the_owners_tags_of_a_scalable_target_come_back_under_the_role_of_the_template() -> None:
    with carried_out(scenarios.AUTOSCALED) as w:
        (before,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
        proven(w)
        (after,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
    assert before.tags == {"team": "search", "aws:cloudformation:stack-name": "autoscaling-of-search"}
    assert after.tags == {"team": "search"}, "tags of the prefix aws: can be set by AWS alone"


def test_bounds_that_change_leave_the_tags_of_their_target_alone() -> None:
    with carried_out(scenarios.BOUNDS) as w:
        (before,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
        proven(w)
        (after,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
        asked = w.box.calls.of("application-autoscaling", "RegisterScalableTarget")
    assert after.tags == before.tags
    assert after.maximum == 2
    assert asked
    assert not any(call.params.get("Tags") for call in asked)


def booked(w: World) -> Decimal:
    """US dollars of the days' budgets that changes have taken."""
    items = w.box.client("dynamodb").scan(TableName="t")["Items"]
    return sum((Decimal(i["usd"]["N"]) for i in items if i["pk"]["S"].startswith("BUDGET#")), Decimal(0))


def test_the_change_after_a_test_costs_its_switch_and_not_the_test_again() -> None:
    with world(an_option(switch_usd=Decimal("7.25"), test_usd=Decimal("4.5"))) as w:
        w.start()
        w.run(2)
        reserved = booked(w)
        entries = [(e.kind, e.usd, e.note) for e in w.ledger.entries(w.change.created_at, w.now)]
    assert reserved == Decimal("7.25")
    assert ("switch-cost", Decimal("7.25"), "overlap of both fleets") in entries


def test_a_test_proposed_before_its_price_had_a_name_takes_it_from_budgets_and_ledger_all_the_same() -> None:
    s = scenarios.SHADOW
    option = replace(s.option, switch_usd=Decimal("4.5"), test_usd=Decimal(0))
    with world(option, seed=s.seed, judged=s.judged, **s.endpoint) as w:
        w.start()
        change = w.run(8)
        reserved, (past,) = booked(w), w.store.history(NAME).endpoint
        entries = [(e.kind, e.usd, e.note) for e in w.ledger.entries(change.created_at, w.now + timedelta(days=1))]
    assert (reserved, past.usd) == (Decimal("4.5"), Decimal("4.5"))
    assert ("switch-cost", Decimal("4.5"), "price of the shadow test") in entries


def test_a_shadow_test_measures_and_leaves_the_endpoint_as_it_was() -> None:
    def faster_when_old(at: datetime, instance_type: str, count: int) -> Served:
        old = instance_type == OLD_TYPE
        return Served(60, latency_ms=100.0 if old else 150.0, gpu=10.0 if old else 11.0)

    s = scenarios.SHADOW
    option = replace(s.option, promise=Promise(1.3, 0.4, "vllm", 1.6), switch_usd=Decimal(80), test_usd=Decimal("4.5"))
    with world(option, seed=s.seed, judged=s.judged, load=faster_when_old, **s.endpoint) as w:
        w.start()
        while w.change.turned_at is None:
            w.run(0.25)
        live = w.live()
        change = w.run(6)
        (past,) = w.store.history(NAME).endpoint
        reserved = booked(w)
        entries = [(e.kind, e.usd, e.note) for e in w.ledger.entries(change.created_at, w.now + timedelta(days=1))]
        deregistered = w.box.calls.of("application-autoscaling", "Deregister*")
    assert [v["VariantName"] for v in live["ShadowProductionVariants"]] == ["AllTraffic-shadow"]
    assert change.state is ChangeState.ROLLED_BACK
    assert w.box.config_name(NAME) == f"{NAME}-config"
    assert "tested: the mean latency on ml.g5.xlarge was 1.5" in change.outcome
    assert past.ended == "tested"
    assert past.latency_ratio == pytest.approx(1.5, rel=0.05)  # the waiting of both is taken out
    assert past.realised_slowdown == pytest.approx(1.1)  # half the requests, on half as many instances
    assert (past.promised_slowdown, past.promised_bound, past.demand, past.framework) == (1.3, 1.6, 0.4, "vllm")
    assert (past.from_routing, past.usd) == ("RANDOM", Decimal("4.5"))
    assert entries == [("switch-cost", Decimal("4.5"), "price of the shadow test")]
    assert reserved == Decimal("4.5"), "the switch to the type is paid when it is changed, not when it is tested"
    assert deregistered == []
    assert w.told[-1][0] == f"{NAME}: shadow test ended"


def test_a_shadow_test_that_waits_gives_way_where_users_suffer_meanwhile() -> None:
    s = scenarios.SHADOW
    with world(s.option, seed=s.seed, judged={**s.judged, "peak": PEAK}, **s.endpoint) as w:
        w.start()
        back = replace(w.proposal.recommendation, options=(replace(s.option, restores=True),), gate=Gate.PROPOSE)
        asked = replace(w.proposal, id="p-2", recommendation=back, state=ProposalState.PENDING, decision=None)
        assert not w.store.save(back, asked), "one proposal of an endpoint is open"
        change = w.run(1.5)
        made = w.box.calls.of("sagemaker", "CreateEndpointConfig")
        opened = w.store.save(back, asked)
    assert change.state is ChangeState.REFUSED
    assert "the shadow test gives way to what brings room back" in change.outcome
    assert made == []
    assert opened


def test_a_shadow_that_fails_its_requests_ends_early_and_refutes_the_type() -> None:
    def failing_when_new(at: datetime, instance_type: str, count: int) -> Served:
        new = instance_type != OLD_TYPE
        return Served(60, latency_ms=1.0 if new else 100.0, errors_5xx=60 if new else 0)

    s = scenarios.SHADOW
    with world(s.option, seed=s.seed, judged=s.judged, load=failing_when_new, **s.endpoint) as w:
        w.start()
        change = w.run(6)
        (past,) = w.store.history(NAME).endpoint
        live = w.live()
    assert "requests failed on the shadow on ml.g5.xlarge" in change.outcome
    assert change.state is ChangeState.ROLLED_BACK
    assert not live.get("ShadowProductionVariants")
    assert (past.ended, past.failure, past.is_refuted) == ("tested", "errors", True)
    assert (past.latency_ratio, past.realised_slowdown) == (None, None)


def test_a_shadow_that_cannot_be_removed_is_an_incident() -> None:
    s = scenarios.SHADOW
    with world(s.option, seed=s.seed, judged=s.judged, **s.endpoint) as w:
        w.start()
        while w.change.turned_at is None:
            w.run(0.25)
        w.box.deny("sagemaker:UpdateEndpoint")
        change = w.run(12)
    assert change.state is ChangeState.HANDED_OVER
    assert w.told[-1][0].startswith(f"INCIDENT {NAME}")
    assert any("update-endpoint" in line for line in change.remaining)


def test_copies_of_components_change_without_a_deployment_and_come_back_when_asked() -> None:
    with carried_out(scenarios.COMPONENTS) as w:
        w.start()
        while w.change.turned_at is None:
            w.run(0.25)
        running = {name: c.copies for name, c in w.box.world.components.known.items()}
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(4)
        back = {name: c.copies for name, c in w.box.world.components.known.items()}
        created = w.box.calls.of("sagemaker", "CreateEndpointConfig")
    assert running == {"small": 1, "large": 2}
    assert change.state is ChangeState.ROLLED_BACK
    assert back == {"small": 3, "large": 1}
    assert created == []
