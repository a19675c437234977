"""A change is undone by a button in Slack, also after it was proven; a freeze says what it leaves open."""

from datetime import timedelta
from typing import Any

import pytest

from rightsizer import intake
from rightsizer.aws import decisions
from rightsizer.aws.table import Table
from rightsizer.changes.reconcile import left_open
from rightsizer.domain.change import ChangeState
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.proposal import ProposalState
from rightsizer.errors import ConflictError
from rightsizer.flows.apply_orders import start_approved
from rightsizer.flows.orders import Orders
from sandbox.account import Sandbox
from sandbox.gate import Call
from tests.changing import scenarios
from tests.changing.world import NAME, OLD_TYPE, World, steady, world


def click(w: World, by: str = "slack:U1") -> None:
    """What `respond` records for the button."""
    decisions.ask_back(Table(w.box.client("dynamodb"), "t"), w.proposal.id, by, w.now)


def streamed(w: World) -> dict[str, Any]:
    """The stream record of the proposal as it stands."""
    key = {"pk": {"S": f"PROPOSAL#{w.proposal.id}"}, "sk": {"S": "PROPOSAL"}}
    image = w.box.client("dynamodb").get_item(TableName="t", Key=key)["Item"]
    return {"Records": [{"eventName": "MODIFY", "dynamodb": {"Keys": key, "NewImage": image, "SequenceNumber": "1"}}]}


def test_a_proven_change_is_undone_by_the_button_of_its_message() -> None:
    with world() as w:
        w.start()
        assert w.run(48).state is ChangeState.PROVEN
        click(w)
        assert start_approved(w.apply, intake.moves(streamed(w)), w.now) == []
        change = w.run(48)
        config = w.box.client("sagemaker").describe_endpoint_config(EndpointConfigName=w.box.config_name(NAME))
        shown = w.shown()
    assert change.state is ChangeState.ROLLED_BACK
    assert change.asked_back_by == "slack:U1"
    assert config["ProductionVariants"][0]["InstanceType"] == OLD_TYPE
    assert shown.state is ProposalState.ROLLED_BACK


def test_a_return_ends_while_another_endpoint_with_the_same_model_is_being_changed() -> None:
    with world() as w:
        w.start()
        proven = w.run(48)
        key = {"pk": {"S": f"LOCK#MODEL#{proven.models[0]}"}, "sk": {"S": "LOCK"}}
        w.box.client("dynamodb").put_item(TableName="t", Item=key | {"change": {"S": "c-other"}})
        Orders(w.journal).ask_back(proven.id, "U1", w.now)
        w.told.clear()
        change = w.run(48)
        held = w.box.client("dynamodb").get_item(TableName="t", Key=key)["Item"]["change"]["S"]
        assert w.journal.held_by(NAME) == ""
    assert change.state is ChangeState.ROLLED_BACK
    assert len(w.told) == 1
    assert held == "c-other", "the lock of the other change stays"


def test_the_same_order_delivered_again_costs_no_look_at_the_endpoint() -> None:
    with world() as w:
        w.start()
        w.run(48)
        click(w)
        start_approved(w.apply, intake.moves(streamed(w)), w.now)
        before = len(w.box.calls.of("sagemaker", "DescribeEndpoint"))
        start_approved(w.apply, intake.moves(streamed(w)), w.now)
        assert len(w.box.calls.of("sagemaker", "DescribeEndpoint")) == before


def test_an_order_that_a_tick_overtook_is_delivered_again() -> None:
    with world() as w:
        w.start()
        w.run(48)
        click(w)
        record, reads = streamed(w), list[Call]()

        def saved_meanwhile(call: Call) -> None:
            if call.operation == "GetItem" and "CHANGE#" in str(call.params["Key"]):
                reads.append(call)
            if len(reads) == 2:  # the order has read the change, and is about to save it
                w.box.gate.after = None
                with w.box.gate.unrecorded():
                    w.journal.booked(w.change)

        w.box.gate.after = saved_meanwhile
        overtaken = start_approved(w.apply, intake.moves(record), w.now)
        told, asked = list(w.told), w.change.asked_back_by
        assert start_approved(w.apply, intake.moves(record), w.now) == []
        change = w.run(48)
    assert overtaken == ["1"]
    assert (told, asked) == ([], "")
    assert change.state is ChangeState.ROLLED_BACK


def test_a_second_click_names_who_was_first() -> None:
    with world() as w:
        w.start()
        w.run(48)
        click(w)
        with pytest.raises(ConflictError, match="slack:U1 asked for the way back"):
            click(w, "slack:U2")


def test_what_was_never_changed_cannot_be_undone() -> None:
    with world() as w, pytest.raises(ConflictError, match="there is nothing to undo"):
        click(w)


def test_an_order_that_cannot_be_carried_out_is_told() -> None:
    with world() as w:
        w.start()
        w.run(48)
        click(w)
        record = streamed(w)
        Orders(w.journal).ask_back(w.change.id, "cli:somebody", w.now)
        w.run(48)
        late = w.change
        assert late.state is ChangeState.ROLLED_BACK
        start_approved(w.apply, intake.moves(record), w.now)
        assert w.change == late


def test_an_unproven_change_ends_its_proposal_so_that_the_endpoint_is_asked_about_again() -> None:
    limits = ChangeLimits(probation=timedelta(hours=1), proof_limit=timedelta(days=2))
    with world(limits=limits, load=steady(requests=0)) as w:
        w.start()
        change = w.run(24 * 5)
        shown = w.shown()
        (past,) = w.store.history(NAME).endpoint
    assert change.state is ChangeState.APPLIED
    assert past.ended == "applied"
    assert change.closed
    assert shown.state is ProposalState.APPLIED


def test_a_hard_freeze_lists_the_lines_that_bring_the_endpoint_back() -> None:
    with world(scenarios.AUTOSCALED.option, seed=scenarios.autoscaled) as w:
        w.start()
        w.run(0.2)
        assert w.box.status(NAME) == "Updating"
        (open_change,) = Orders(w.journal).freeze("U1", w.now, hard=True)
        lines = left_open(open_change)
        calls = len(w.box.calls)
        w.run(2)
        writes = [c for c in list(w.box.calls)[calls:] if c.writes and c.service != "dynamodb"]
    assert writes == []
    assert lines[0].startswith("aws sagemaker update-endpoint ")
    assert f'"{NAME}-config"' in lines[0]
    assert any(line.startswith("aws application-autoscaling register-scalable-target ") for line in lines)
    assert lines[-1].startswith("aws cloudwatch delete-alarms ")


def test_a_closed_change_lists_the_configuration_that_stays() -> None:
    with world() as w:
        w.start()
        change = w.run(48)
        new = w.box.config_name(NAME)
    assert change.journal[-1].step == "left"
    assert change.journal[-1].detail == f"configurations that stay and cost nothing: {new}"


def test_autoscaling_that_somebody_changed_during_the_probation_is_theirs_and_is_reported() -> None:
    scenario = scenarios.BOUNDS

    def without_a_schedule(box: Sandbox) -> None:
        box.autoscale(NAME, 1, 4)

    with world(scenario.option, seed=without_a_schedule, **scenario.endpoint) as w:
        w.start()
        w.run(0.5)
        who = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/{NAME}/variant/AllTraffic"}
        scaling = w.box.client("application-autoscaling")
        scaling.register_scalable_target(**who, ScalableDimension=scenarios.VARIANT, MinCapacity=2, MaxCapacity=9)
        change = w.run(48)
        (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
    assert change.state is ChangeState.PROVEN
    assert (target.minimum, target.maximum) == (2, 9)
    assert f"somebody changed it meanwhile: RegisterScalableTarget endpoint/{NAME}/variant/AllTraffic" in change.outcome


def test_a_release_with_bounds_of_its_own_during_the_probation_keeps_them() -> None:
    scenario = scenarios.AUTOSCALED
    with world(scenario.option, seed=scenario.seed, **scenario.endpoint) as w:
        w.start()
        while w.change.state is not ChangeState.APPLIED:
            w.run(0.25)
        sagemaker, scaling = w.box.client("sagemaker"), w.box.client("application-autoscaling")
        with w.box.gate.unrecorded():
            body = sagemaker.describe_endpoint_config(EndpointConfigName=w.box.config_name(NAME))
            release = [{**body["ProductionVariants"][0], "InitialInstanceCount": 5}]
            sagemaker.create_endpoint_config(EndpointConfigName="release-42", ProductionVariants=release)
            who = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/{NAME}/variant/AllTraffic"}
            scaling.register_scalable_target(**who, ScalableDimension=scenarios.VARIANT, MinCapacity=2, MaxCapacity=20)
            sagemaker.update_endpoint(EndpointName=NAME, EndpointConfigName="release-42")
        change = w.run(24)
        (target,) = w.apply.changer.scaling(NAME, ["AllTraffic"])
        ours = w.box.client("cloudwatch").describe_alarms(AlarmNamePrefix="rightsizer-")["MetricAlarms"]
    assert change.state is ChangeState.HANDED_OVER
    assert (target.minimum, target.maximum, ours) == (2, 20, [])
    assert "its autoscaling is left as it is" in w.told[-1][1]
