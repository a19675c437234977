"""An endpoint that is left without autoscaling is an incident: people know at the first refusal, not an hour later."""

from datetime import datetime, timedelta

from rightsizer.domain.change import ChangeState
from rightsizer.domain.plan import StepKind
from tests.changing import scenarios
from tests.changing.world import NAME, World, others, world

RESOURCE = f"endpoint/{NAME}/variant/AllTraffic"


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


def first_failure(w: World) -> datetime:
    return next(e.at for e in w.change.journal if e.status == "failed" and e.step.startswith("Register"))


def test_a_refused_registration_is_told_at_once_and_is_tried_again_meanwhile() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        deploying(w)
        w.box.deny("application-autoscaling:RegisterScalableTarget")
        told_at, failed_at = until_told(w), first_failure(w)
        (told,), state = list(w.told), w.change.state
        w.run(0.2)
        assert len(w.told) == 1, "said once, however often it is tried"
        w.box.gate.heal()
        change = w.run(6)
        rest = w.told[1:]
    assert told_at == failed_at
    assert state is not ChangeState.HANDED_OVER
    assert told[0] == f"INCIDENT {NAME}: its autoscaling is missing"
    assert RESOURCE in told[1]
    assert "application-autoscaling:RegisterScalableTarget is missing" in told[1]
    assert "aws application-autoscaling register-scalable-target " in told[1]
    assert change.state is ChangeState.PROVEN
    assert [subject for subject, _ in rest] == [f"{NAME}: its autoscaling is back"]


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


def test_one_throttled_call_is_no_incident_and_a_second_one_is() -> None:
    scenario = scenarios.AUTOSCALED
    for times, subjects in ((1, []), (3, ["its autoscaling is missing", "its autoscaling is back"])):
        with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
            deploying(w)
            call = ("application-autoscaling", "RegisterScalableTarget", "ThrottlingException", "Rate exceeded")
            w.box.fail(*call, times=times)
            change = w.run(6)
            told = [subject.partition(": ")[2] for subject, _ in w.told]
        assert change.state is ChangeState.PROVEN
        assert told == subjects


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
