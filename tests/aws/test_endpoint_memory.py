"""Endpoints are remembered beyond a process: what did not move is not described again, and what moved is."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.aws.configuration import ConfiguredVariant, EndpointConfiguration
from rightsizer.aws.endpoint_memory import KEPT_DAYS, EndpointMemory, KnownEndpoint, row_format
from rightsizer.aws.endpoints import SageMakerFleet
from rightsizer.aws.models import ModelFacts
from rightsizer.aws.session import Session
from rightsizer.aws.table import Table
from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.trigger import ListedEndpoint
from sandbox.account import Sandbox
from tests.table import create_table

DESCRIBES = ("sagemaker:DescribeEndpoint", "sagemaker:DescribeEndpointConfig", "sagemaker:DescribeModel")

type Look = Callable[[], tuple[Endpoint, tuple[int, ...]]]


@pytest.fixture
def look(box: Sandbox, account: Session) -> Look:
    """Looks at the endpoint `chat` as it is listed now, in a new process: what is seen, and how often each is asked."""
    create_table(box.client("dynamodb"))
    box.add_endpoint("chat", instance_type="ml.g5.2xlarge", count=2)
    table = Table(account.client("dynamodb"), "t")

    def seen() -> tuple[Endpoint, tuple[int, ...]]:
        fleet = SageMakerFleet(account, EndpointMemory(table, lambda: box.clock.now))
        return look_with(box, fleet, listed(fleet))

    return seen


def listed(fleet: SageMakerFleet) -> list[ListedEndpoint]:
    return [ListedEndpoint(one.ref.name, one.created_at, one.modified_at) for one in fleet.list_endpoints()]


def look_with(box: Sandbox, fleet: SageMakerFleet, known: list[ListedEndpoint]) -> tuple[Endpoint, tuple[int, ...]]:
    box.calls.clear()
    fleet.recall(known)
    (found,) = fleet.observe(fleet.find(["chat"]))
    assert isinstance(found, Endpoint), found
    counts = box.calls.counts()
    return found, tuple(counts[action] for action in DESCRIBES)


def test_an_endpoint_that_did_not_move_is_not_described_again_and_looks_the_same(look: Look) -> None:
    first, asked = look()
    again, spared = look()
    assert (asked, spared) == ((1, 1, 1), (0, 0, 0))
    assert again == first


def test_one_that_was_modified_since_is_described_anew(box: Sandbox, look: Look) -> None:
    look()
    box.clock.advance(timedelta(hours=1))
    weights = [{"VariantName": "AllTraffic", "DesiredInstanceCount": 1}]
    box.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName="chat", DesiredWeightsAndCapacities=weights
    )
    box.clock.advance(timedelta(hours=1))
    seen, asked = look()
    assert (seen.variants[0].current_count, asked) == (1, (1, 1, 1))


def test_another_endpoint_of_the_name_is_described_anew(box: Sandbox, look: Look) -> None:
    before, _ = look()
    box.remove_endpoint("chat")
    box.client("sagemaker").delete_model(ModelName="chat-model")
    box.client("sagemaker").delete_endpoint_config(EndpointConfigName=before.config_name)
    box.clock.advance(timedelta(hours=1))
    box.add_endpoint("chat", instance_type="ml.g6.xlarge")
    seen, asked = look()
    assert (seen.variants[0].instance_type, asked) == ("ml.g6.xlarge", (1, 1, 1))
    assert seen.created_at > before.created_at


def test_an_endpoint_that_moved_after_it_was_listed_is_taken_as_listed_and_the_next_list_tells(
    box: Sandbox, account: Session, look: Look
) -> None:
    look()
    memory = EndpointMemory(Table(account.client("dynamodb"), "t"), lambda: box.clock.now)
    fleet = SageMakerFleet(account, memory)
    known = listed(fleet)
    assert look_with(box, fleet, [])[1] == (1, 1, 1), "nothing is recalled without a list"
    assert look_with(box, fleet, known)[1] == (0, 0, 0)


def test_one_whose_instances_a_policy_moves_is_described_each_time(box: Sandbox, look: Look) -> None:
    box.autoscale("chat", 1, 4)
    look()
    _, asked = look()
    assert asked == (1, 0, 0)


def test_tags_and_autoscaling_are_always_read(box: Sandbox, look: Look) -> None:
    look()
    box.client("sagemaker").add_tags(
        ResourceArn=box.client("sagemaker").describe_endpoint(EndpointName="chat")["EndpointArn"],
        Tags=[{"Key": "rightsizer:mode", "Value": "off"}],
    )
    box.autoscale("chat", 1, 4)
    seen, asked = look()
    assert (seen.mode, len(seen.scaling), asked) == ("off", 1, (1, 0, 0))


def test_instances_that_a_policy_moved_since_it_was_remembered_are_counted_as_they_are(
    box: Sandbox, account: Session, look: Look
) -> None:
    look()
    fleet = SageMakerFleet(account, EndpointMemory(Table(account.client("dynamodb"), "t"), lambda: box.clock.now))
    known = listed(fleet)
    box.autoscale("chat", 3, 4)
    box.clock.advance(timedelta(hours=1))
    seen, _ = look_with(box, fleet, known)
    assert (box.counts("chat"), seen.variants[0].current_count) == ({"AllTraffic": 3}, 3)


@pytest.mark.parametrize("name", ["autoscaling unread", "updating", "model unread"])
def test_what_is_not_settled_is_not_remembered(box: Sandbox, look: Look, name: str) -> None:
    sagemaker = box.client("sagemaker")
    match name:
        case "updating":
            weights = [{"VariantName": "AllTraffic", "DesiredInstanceCount": 1}]
            sagemaker.update_endpoint_weights_and_capacities(EndpointName="chat", DesiredWeightsAndCapacities=weights)
        case "model unread":
            box.gate.fail("sagemaker", "DescribeModel", "AccessDeniedException")
        case _:
            box.gate.fail("application-autoscaling", "DescribeScalableTargets", "AccessDeniedException")
    look()
    _, asked = look()
    assert asked == (1, 1, 1)


def test_a_month_is_the_longest_that_anything_is_remembered(box: Sandbox, look: Look) -> None:
    look()
    box.clock.advance(timedelta(days=KEPT_DAYS, seconds=1))
    _, asked = look()
    assert asked == (1, 1, 1)


@pytest.mark.parametrize("edit", [{"doc": "{"}, {"doc": '{"schema":99}'}, {"doc": '{"schema":1,"ref":{}}'}])
def test_a_row_that_this_release_cannot_read_costs_the_calls_only(
    box: Sandbox, account: Session, look: Look, edit: dict[str, Any]
) -> None:
    first, _ = look()
    table = Table(account.client("dynamodb"), "t")
    found = table.get("ENDPOINT#chat", "DESCRIBED")
    assert found is not None
    table.put(found | edit)
    seen, asked = look()
    assert (seen, asked) == (first, (1, 1, 1))
    assert look()[1] == (0, 0, 0), "it was written anew"


@pytest.mark.parametrize("edit", [{"format": "0-of another release"}, {"format": None}, {"format": 7}])
def test_a_row_of_a_release_with_other_fields_is_described_anew(
    box: Sandbox, account: Session, look: Look, edit: dict[str, Any]
) -> None:
    look()
    table = Table(account.client("dynamodb"), "t")
    found = table.get("ENDPOINT#chat", "DESCRIBED")
    assert found is not None
    written = {**found, **edit}
    table.put({name: value for name, value in written.items() if value is not None})
    assert look()[1] == (1, 1, 1)
    assert look()[1] == (0, 0, 0), "it was written anew"


def test_a_field_that_is_gained_with_a_default_is_another_format() -> None:
    @dataclass(frozen=True)
    class Gained(ModelFacts):
        another: tuple[str, ...] = ()

    nouns = (KnownEndpoint, EndpointConfiguration, ConfiguredVariant)
    assert row_format((*nouns, ModelFacts)) == row_format()
    assert row_format((*nouns, Gained)) != row_format()


@pytest.mark.parametrize("operation", ["BatchGetItem", "BatchWriteItem"])
def test_a_memory_that_fails_costs_the_calls_only(box: Sandbox, look: Look, operation: str) -> None:
    first, _ = look()
    box.gate.fail("dynamodb", operation, "AccessDeniedException")
    seen, asked = look()
    assert seen == first
    assert asked == ((1, 1, 1) if operation == "BatchGetItem" else (0, 0, 0))
