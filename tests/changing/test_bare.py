"""An endpoint that is left without autoscaling is an incident: people know at the first refusal, not an hour later."""

from datetime import datetime, timedelta

from rightsizer.domain.plan import StepKind
from tests.changing import scenarios
from tests.changing.world import NAME, World, others, world


def deploying(w: World) -> None:
    w.start()
    while w.box.status(NAME) != "Updating":
        w.box.clock.advance(timedelta(minutes=1))
        w.apply.tick(w.now)


def until_told(w: World) -> datetime:
    while not w.told:
        w.box.clock.advance(timedelta(minutes=1))
        w.apply.tick(w.now)
    return w.now


def test_a_policy_that_is_refused_on_a_target_without_any_is_told_too() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        deploying(w)
        w.box.deny("application-autoscaling:PutScalingPolicy")
        until_told(w)
        subject, text = w.told[0]
        failed = [e.at for e in w.change.journal if e.status == "failed" and e.step.startswith("PutScalingPolicy")]
        now = w.now
    assert failed == [now]
    assert subject == f"INCIDENT {NAME}: its autoscaling is missing"
    assert "has no scaling policy" in text


def test_what_had_no_autoscaling_before_is_no_incident() -> None:
    scenario = scenarios.HOURS
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        w.box.deny("application-autoscaling:RegisterScalableTarget")
        w.start()
        w.run(0.5)
        assert w.told == []


def test_the_end_is_told_when_the_owner_runs_the_line_of_the_message() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=lambda box: box.autoscale(NAME, 1, 4), **scenario.endpoint) as w:
        deploying(w)
        w.box.deny("application-autoscaling:PutScalingPolicy")
        until_told(w)
        missing = [s for s in w.change.plan.settle if s.kind is StepKind.PUT_POLICY]
        w.box.gate.heal()
        with others(w):
            for step in missing:
                w.box.client("application-autoscaling").put_scaling_policy(**step.params)
        change = w.run(1)
    assert change.journal
    assert [subject for subject, _ in w.told[1:]] == [f"{NAME}: its autoscaling is back"]


def test_a_target_without_its_policies_is_not_the_end() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        deploying(w)
        w.box.deny("application-autoscaling:RegisterScalableTarget")
        until_told(w)
        w.box.gate.heal()
        w.box.deny("application-autoscaling:PutScalingPolicy")
        w.run(0.2)
        assert w.apply.changer.scaling(NAME, ["AllTraffic"]), "the target is there"
        assert len(w.told) == 1
