"""A change is undone by a button in Slack, also after it was proven; a freeze says what it leaves open."""

from typing import Any

import pytest

from rightsizer import intake
from rightsizer.aws import decisions
from rightsizer.aws.table import Table
from rightsizer.domain.change import ChangeState
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.errors import ConflictError
from rightsizer.flows.apply_orders import start_approved, start_lost_approvals
from rightsizer.flows.orders import Orders
from sandbox.gate import Call
from tests.changing.world import NAME, OLD_TYPE, World, world


def click(w: World, by: str = "slack:U1") -> None:
    """What `respond` records for the button."""
    decisions.request_rollback(Table(w.box.client("dynamodb"), "t"), w.proposal.id, by, w.now)


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
        Orders(w.journal).request_rollback(proven.id, "U1", w.now)
        w.told.clear()
        change = w.run(48)
        held = w.box.client("dynamodb").get_item(TableName="t", Key=key)["Item"]["change"]["S"]
        assert w.journal.holder_of(NAME) == ""
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
                    w.journal.save_booking(w.change)

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
        with pytest.raises(ConflictError, match="U1 asked for the rollback"):
            click(w, "slack:U2")


def test_what_was_never_changed_cannot_be_undone() -> None:
    with world() as w:
        w.apply.store.follow(w.proposal.id, ProposalState.WITHDRAWN, "", "refused")
        with pytest.raises(ConflictError, match="there is nothing to undo"):
            click(w)


@pytest.mark.parametrize("verb", ["rollback", "reject"])
def test_what_was_approved_is_stopped_by_a_person_before_it_begins_and_only_once(verb: str) -> None:
    def give(w: World, by: str) -> None:
        table, reject = Table(w.box.client("dynamodb"), "t"), Decision(ProposalState.REJECTED, by, w.now)
        if verb == "reject":
            decisions.decide(table, w.proposal.id, reject, w.now)
        else:
            decisions.request_rollback(table, w.proposal.id, by, w.now)

    with world() as w:
        give(w, "slack:U1")
        with pytest.raises(ConflictError, match="U1 asked to stop"):
            give(w, "slack:U2")
        assert [p.id for p in w.apply.store.proposals((ProposalState.APPROVED,))] == [w.proposal.id]
        assert start_lost_approvals(w.apply, w.now) == []
        assert start_approved(w.apply, intake.moves(streamed(w)), w.now) == []
        assert list(w.journal.open_changes()) == []
        shown = w.shown()
        assert list(w.apply.store.rollback_requests()) == []
    assert (shown.state, shown.asked_back_by) == (ProposalState.REJECTED, "slack:U1")
    assert w.told == [(f"{NAME}: stopped before it began", "U1 stopped it before it began; nothing was changed")]


def test_an_order_that_cannot_be_carried_out_is_told() -> None:
    with world() as w:
        w.start()
        w.run(48)
        click(w)
        record = streamed(w)
        Orders(w.journal).request_rollback(w.change.id, "cli:somebody", w.now)
        w.run(48)
        late = w.change
        assert late.state is ChangeState.ROLLED_BACK
        start_approved(w.apply, intake.moves(record), w.now)
        assert w.change == late
