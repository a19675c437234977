"""A request that is answered on the short way gets what the whole way would have brought, and leaves the same rows."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.models.table import Table

from sandbox import direct
from sandbox.account import Sandbox
from sandbox.refusals import Killed
from tests.table import create_table

type Asked = Callable[[Sandbox], Any]
ROW = {"pk": {"S": "a"}, "sk": {"S": "b"}, "n": {"N": "7"}, "list": {"L": [{"BOOL": True}, {"NULL": True}]}}
KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}


class Name(StrEnum):
    CHAT = "chat"


def metric_data(box: Sandbox) -> Any:
    metric = {"Namespace": "AWS/SageMaker", "MetricName": "Invocations"}
    metric["Dimensions"] = [{"Name": "EndpointName", "Value": "chat"}, {"Name": "VariantName", "Value": "AllTraffic"}]  # type: ignore[assignment]
    query = {"Id": "m", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}
    now = box.clock.now + timedelta(microseconds=7)
    span = {"StartTime": now - timedelta(hours=1), "EndTime": now}
    return box.client("cloudwatch").get_metric_data(MetricDataQueries=[query], **span)


READS: dict[str, Asked] = {
    "endpoint": lambda box: box.client("sagemaker").describe_endpoint(EndpointName=Name.CHAT),
    "endpoints": lambda box: box.client("sagemaker").list_endpoints(SortBy="CreationTime"),
    "configuration": lambda box: box.client("sagemaker").describe_endpoint_config(EndpointConfigName="chat-config"),
    "component": lambda box: box.client("sagemaker").describe_inference_component(InferenceComponentName="small"),
    "model": lambda box: box.client("sagemaker").describe_model(ModelName="chat-model"),
    "tags": lambda box: box.client("sagemaker").list_tags(ResourceArn=box.world.fleet.arn("endpoint", "chat")),
    "targets": lambda box: box.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="sagemaker"
    ),
    "policies": lambda box: box.client("application-autoscaling").describe_scaling_policies(
        ServiceNamespace="sagemaker"
    ),
    "alarms": lambda box: box.client("cloudwatch").describe_alarms(),
    "metric data": metric_data,
    "quotas": lambda box: box.client("service-quotas").list_service_quotas(ServiceCode="sagemaker", MaxResults=7),
    "prices": lambda box: box.client("pricing", "us-east-1").get_products(
        ServiceCode="AmazonSageMaker",
        Filters=[{"Type": "TERM_MATCH", "Field": "regionCode", "Value": "us-east-1"}],
        MaxResults=7,
    ),
    "plans": lambda box: box.client("savingsplans", "us-east-1").describe_savings_plans(states=["active"]),
    "rates of plans": lambda box: box.client("savingsplans", "us-east-1").describe_savings_plans_offering_rates(
        savingsPlanPaymentOptions=["No Upfront"],
        filters=[{"name": "region", "values": ["us-east-1"]}],
        maxResults=7,
    ),
    "tagged": lambda box: box.client("resourcegroupstaggingapi").get_resources(
        ResourceTypeFilters=["sagemaker:endpoint"]
    ),
    "row": lambda box: box.client("dynamodb").get_item(TableName="t", Key=KEY),
    "no row": lambda box: box.client("dynamodb").get_item(TableName="t", Key=KEY | {"sk": {"S": "other"}}),
    "rows": lambda box: box.client("dynamodb").query(
        TableName="t", KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": {"S": "a"}}
    ),
    "table": lambda box: box.client("dynamodb").describe_table(TableName="t"),
    "old row": lambda box: box.client("dynamodb").put_item(TableName="t", Item=ROW, ReturnValues="ALL_OLD"),
}


def lived(box: Sandbox) -> None:
    """An endpoint with autoscaling, some minutes of use, one with a component, and a table with a row."""
    box.add_endpoint("chat", tags={"team": "search"})
    box.add_endpoint("hub", inference_components=True)
    box.add_component("small", "hub")
    box.autoscale("chat", 1, 4)
    box.world.plans.buy(2.5)
    box.clock.advance(timedelta(minutes=10))
    create_table(box.client("dynamodb"))
    box.client("dynamodb").put_item(TableName="t", Item=ROW)
    box.calls.clear()


@pytest.mark.parametrize("read", READS)
def test_both_ways_bring_the_same_answer_and_the_same_row_of_the_gate(box: Sandbox, read: str) -> None:
    lived(box)
    short = READS[read](box)
    with direct.whole_way():
        whole = READS[read](box)
    assert "server" not in str(short["ResponseMetadata"]["HTTPHeaders"]), "it went the whole way"
    del short["ResponseMetadata"], whole["ResponseMetadata"]
    assert short == whole
    first, second = ((call.action, call.params, call.error) for call in box.calls)
    assert first == second


@pytest.mark.parametrize("read", ["configuration", "component"])
def test_an_answer_that_is_read_as_bytes_has_the_same_bytes_on_both_ways(box: Sandbox, read: str) -> None:
    lived(box)
    bodies: list[Any] = []
    box.client("sagemaker").meta.events.register(
        "after-call.sagemaker", lambda http_response, **_: bodies.append(json.loads(http_response.content))
    )
    READS[read](box)
    with direct.whole_way():
        READS[read](box)
    assert bodies[0] == bodies[1]
    assert bodies[0]


def test_parameters_that_no_model_knows_are_refused_before_the_gate_as_botocore_refuses_them(box: Sandbox) -> None:
    lived(box)
    with pytest.raises(ParamValidationError, match="Unknown parameter in input"):
        box.client("sagemaker").describe_endpoint(Endpoint="chat")
    assert list(box.calls) == []


WRONG: tuple[Asked, ...] = (
    lambda box: box.client("sagemaker").describe_endpoint(),
    lambda box: box.client("sagemaker").describe_endpoint(EndpointName=7),
    lambda box: box.client("sagemaker").list_endpoints(MaxResults="7"),
    lambda box: box.client("sagemaker").list_endpoints(MaxResults=0),
    lambda box: box.client("sagemaker").create_endpoint_config(EndpointConfigName="c", ProductionVariants=[]),
    lambda box: box.client("dynamodb").get_item(TableName="t", Key={"pk": "a"}),
    lambda box: box.client("dynamodb").get_item(TableName="t", Key={"pk": {"S": 1}}),
    lambda box: box.client("dynamodb").get_item(TableName="t", Key={"pk": {"T": "a"}}),
    lambda box: box.client("dynamodb").get_item(TableName="", Key=KEY),
)


def test_parameters_of_a_wrong_kind_are_refused_before_the_gate_too(box: Sandbox) -> None:
    for ask in WRONG:
        with pytest.raises(ParamValidationError):
            ask(box)
    assert list(box.calls) == []


def test_an_answer_is_a_copy_of_what_the_account_holds(box: Sandbox) -> None:
    lived(box)
    READS["row"](box)["Item"]["list"]["L"].clear()
    assert READS["row"](box)["Item"] == ROW


def refused(box: Sandbox, ask: Asked) -> Any:
    with pytest.raises(ClientError) as found:
        ask(box)
    response = found.value.response
    return response["Error"], response["ResponseMetadata"]["HTTPStatusCode"], type(found.value).__name__


@pytest.mark.parametrize(
    "ask",
    [
        lambda box: box.client("sagemaker").describe_endpoint(EndpointName="gone"),
        lambda box: box.client("sagemaker").describe_endpoint(EndpointName="x" * 200),
        lambda box: box.client("dynamodb").put_item(
            TableName="t", Item=ROW, ConditionExpression="attribute_not_exists(pk)"
        ),
        lambda box: box.client("dynamodb").get_item(TableName="other", Key=KEY),
        lambda box: box.client("service-quotas").get_service_quota(ServiceCode="sagemaker", QuotaCode="L-1"),
        lambda box: box.client("application-autoscaling").register_scalable_target(
            ServiceNamespace="sagemaker",
            ResourceId="endpoint/gone/variant/AllTraffic",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
            MinCapacity=1,
            MaxCapacity=2,
        ),
    ],
)
def test_a_refusal_is_the_same_on_both_ways_and_is_asked_and_recorded_once(box: Sandbox, ask: Asked) -> None:
    lived(box)
    short = refused(box, ask)
    assert len(box.calls) == 1
    with direct.whole_way():
        whole = refused(box, ask)
    assert short == whole
    first, second = ((call.action, call.error) for call in box.calls)
    assert first == second
    assert first[1]
    assert READS["endpoint"](box)["EndpointName"] == "chat"


def test_a_process_that_dies_after_a_request_has_made_it(box: Sandbox) -> None:
    lived(box)
    box.gate.kill(1)
    with pytest.raises(Killed):
        box.client("sagemaker").add_tags(
            ResourceArn=box.world.fleet.arn("endpoint", "chat"), Tags=[{"Key": "new", "Value": "yes"}]
        )
    assert box.world.tags.of(box.world.fleet.arn("endpoint", "chat"))["new"] == "yes"


def test_bytes_go_the_whole_way(box: Sandbox) -> None:
    lived(box)
    box.client("dynamodb").put_item(TableName="t", Item=KEY | {"b": {"B": b"\x00\xff"}})
    assert READS["row"](box)["Item"]["b"] == {"B": b"\x00\xff"}
    assert [call.action for call in box.calls] == ["dynamodb:PutItem", "dynamodb:GetItem"]


def test_the_header_of_an_answer_says_the_accounts_time(box: Sandbox) -> None:
    lived(box)
    assert READS["endpoint"](box)["ResponseMetadata"]["HTTPHeaders"]["date"] == "Mon, 02 Nov 2026 09:10:00 GMT"


def test_times_are_in_utc(box: Sandbox) -> None:
    lived(box)
    found = READS["endpoint"](box)["CreationTime"]
    assert isinstance(found, datetime)
    assert found.tzinfo is UTC


def test_what_a_transaction_copies_is_not_kept_for_ever() -> None:
    with Sandbox() as box:
        table = box.client("dynamodb")
        create_table(table)
        for _ in range(3):
            table.transact_write_items(TransactItems=[{"Put": {"TableName": "t", "Item": ROW}}])
        assert vars(Item)["instances_tracked"] == vars(Table)["instances_tracked"] == []
        assert table.get_item(TableName="t", Key=KEY)["Item"] == ROW


def test_a_refused_transaction_leaves_rows_and_stream_as_they_were() -> None:
    put = {"Put": {"TableName": "t", "Item": ROW}}
    never = {
        "ConditionCheck": {
            "TableName": "t",
            "Key": KEY | {"sk": {"S": "other"}},
            "ConditionExpression": "attribute_exists(pk)",
        }
    }
    with Sandbox() as box:
        table = box.client("dynamodb")
        create_table(table)
        backend = dynamodb_backends[box.account][box.region]
        backend.tables["t"].set_stream_specification({"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
        table.transact_write_items(TransactItems=[put])
        with pytest.raises(ClientError, match="TransactionCanceled"):
            table.transact_write_items(TransactItems=[{"Delete": {"TableName": "t", "Key": KEY}}, never])
        assert table.get_item(TableName="t", Key=KEY)["Item"] == ROW
        shard = backend.tables["t"].stream_shard
        assert shard is not None
        assert [one.record["eventName"] for one in shard.items] == ["INSERT"]
        assert shard.table is backend.tables["t"]
        table.transact_write_items(TransactItems=[{"Delete": {"TableName": "t", "Key": KEY}}])
        assert [one.record["eventName"] for one in shard.items] == ["INSERT", "REMOVE"]


def test_a_refused_transaction_brings_back_what_it_put_changed_and_deleted_under_any_key() -> None:
    def row(pk: str, sk: str = "b", **more: Any) -> dict[str, Any]:
        return {"pk": {"S": pk}, "sk": {"S": sk}, "list": {"L": [{"N": "1"}]}, **more}

    def key(pk: str, sk: str = "b") -> dict[str, Any]:
        return {"TableName": "t", "Key": {"pk": {"S": pk}, "sk": {"S": sk}}}

    appended = "SET #l = list_append(#l, :more)"
    change = {
        "UpdateExpression": appended,
        "ExpressionAttributeNames": {"#l": "list"},
        "ExpressionAttributeValues": {":more": {"L": [{"N": "2"}]}},
    }
    with Sandbox() as box:
        table = box.client("dynamodb")
        create_table(table)
        kept = [row("changed"), row("deleted"), row("deleted", "c"), row("other"), row("put")]
        for one in kept:
            table.put_item(TableName="t", Item=one)
        writes = [
            {"Update": key("changed") | change},
            {"Delete": key("deleted")},
            {"Put": {"TableName": "t", "Item": row("put", more={"S": "x"})}},
            {"Put": {"TableName": "t", "Item": row("new")}},
            {"ConditionCheck": key("nobody") | {"ConditionExpression": "attribute_exists(pk)"}},
        ]
        with pytest.raises(ClientError, match="TransactionCanceled"):
            table.transact_write_items(TransactItems=writes)
        assert sorted(table.scan(TableName="t")["Items"], key=str) == sorted(kept, key=str)
        table.transact_write_items(TransactItems=writes[:4])
        assert table.get_item(**key("changed"))["Item"]["list"]["L"] == [{"N": "1"}, {"N": "2"}]
        assert {one["pk"]["S"] for one in table.scan(TableName="t")["Items"]} == {
            "changed",
            "deleted",
            "other",
            "put",
            "new",
        }
