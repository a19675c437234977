"""Parameters, environment, storage: what a person who deploys relies on."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.approvers import SHORT, SLACK, WHOLE, Approvers
from rightsizer.settings import LOOKBACK, Settings, from_environment
from tests.template.stack import DOORS, EVERYTHING, Stack, listed, source, stack


@pytest.fixture(scope="module")
def deployed() -> Stack:
    return stack(**EVERYTHING)


def test_at_most_thirteen_parameters_two_to_adopt_and_two_of_older_stacks_each_with_a_default() -> None:
    parameters = source()["Parameters"]
    assert len(set(parameters) - {"AdoptTable", "AdoptBucket", "Limits", "Approvers"}) <= 13
    for name, parameter in parameters.items():
        assert {"Description", "Default", "Type"} <= set(parameter), name


def test_the_defaults_are_the_safe_ones() -> None:
    defaults = {name: parameter["Default"] for name, parameter in source()["Parameters"].items()}
    assert defaults["MayChange"] == "tagged"
    assert defaults["EditUserAlarms"] == "false"
    assert defaults["Approvers"] == ""
    assert defaults["Arch"] == "arm64"


def test_the_seven_doors_are_the_functions(deployed: Stack) -> None:
    assert set(deployed.of("AWS::Lambda::Function")) == {door.capitalize() for door in DOORS}


@pytest.mark.parametrize("door", DOORS)
def test_a_function_is_its_doors_folder(door: str) -> None:
    function = source()["Resources"][door.capitalize()]["Properties"]
    assert function["CodeUri"] == f"functions/{door}/"


@pytest.mark.parametrize("door", DOORS)
def test_the_environment_sets_every_setting_and_no_unknown_one(door: str, deployed: Stack) -> None:
    given = deployed.function(door)["Environment"]["Variables"]
    ours = {name for name in given if name.startswith("RIGHTSIZER_")}
    known = {f"RIGHTSIZER_{name.upper()}" for name in Settings.__dataclass_fields__ if name != "misread"}
    alone = {
        "report": {"RIGHTSIZER_FUNCTIONS", "RIGHTSIZER_BILL"},
        "propose": {"RIGHTSIZER_PICTURE_FUNCTION"},
        "respond": {"RIGHTSIZER_MAY_STOP"},
    }
    assert ours == known - {name for other, names in alone.items() if other != door for name in names}


@pytest.mark.parametrize("may_change", ["read-only", "nothing", "tagged", "tagged-and-untagged"])
def test_the_settings_understand_what_the_template_writes(may_change: str) -> None:
    variables = stack(**EVERYTHING | {"MayChange": may_change}).function("apply")["Environment"]["Variables"]
    settings = from_environment(variables)
    assert settings.change_untagged is (may_change == "tagged-and-untagged")
    assert settings.dry_run is (may_change in ("read-only", "nothing"))
    assert settings.limits.approvers == Approvers(frozenset({"U1", "U2", "role/ml-*"}), "aws:111122223333")
    assert settings.alarm_prefix == "rightsizer-"


@pytest.mark.parametrize("door", DOORS)
def test_functions_run_on_arm_with_the_layer_and_structured_logs(door: str, deployed: Stack) -> None:
    function = deployed.function(door)
    assert function["Architectures"] == ["arm64"]
    assert function["Runtime"] == "python3.13"
    assert len(function["Layers"]) == (2 if door == "picture" else 1), "only the picture brings what draws"
    assert function["LoggingConfig"] == {"LogFormat": "JSON", "LogGroup": "Logs"}


def test_the_table_keeps_what_is_money_and_forgets_what_may_go(deployed: Stack) -> None:
    table = deployed.of("AWS::DynamoDB::Table")["Table"]
    keys = [[key["AttributeName"] for key in table["KeySchema"]]]
    keys += [[key["AttributeName"] for key in index["KeySchema"]] for index in table["GlobalSecondaryIndexes"]]
    assert keys == [["pk", "sk"], ["gsi1pk", "gsi1sk"]]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    assert table["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True


@pytest.mark.parametrize("resource", ["Table", "Bucket"])
def test_deleting_the_stack_keeps_the_ledger_and_the_reports(resource: str) -> None:
    found = source()["Resources"][resource]
    assert (found["DeletionPolicy"], found["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_a_young_account_can_deploy_and_a_reservation_is_a_choice() -> None:
    for name, function in stack(**EVERYTHING).of("AWS::Lambda::Function").items():
        assert "ReservedConcurrentExecutions" not in function, name
    chosen = stack(**EVERYTHING | {"RespondConcurrency": "5"}).function("respond")
    assert str(chosen["ReservedConcurrentExecutions"]) == "5"


PATTERN = re.compile(source()["Parameters"]["Approvers"]["AllowedPattern"])
ACCOUNT = "111122223333"
ENTRY = st.one_of(*(st.from_regex(form.pattern, fullmatch=True) for form in (SLACK, SHORT, WHOLE)))


@pytest.mark.parametrize(
    "text",
    [
        "", "U1", "U1,U2", " U1 , U2,", "U1,,U2", "role/ml-oncall",
        "U0123456789, role/AWSReservedSSO_Ml_*, user/ada@example.com",
        f"arn:aws:iam::{ACCOUNT}:role/teams/ml/oncall,arn:aws-us-gov:iam::{ACCOUNT}:user/ml/*",
        f"arn:aws:iam::{ACCOUNT}:root,arn:aws:sts::{ACCOUNT}:federated-user/ada",
    ],
)  # fmt: skip
def test_the_list_of_approvers_may_name_slack_users_and_aws_identities(text: str) -> None:
    assert PATTERN.fullmatch(text)
    assert not Approvers.parse(text, "").unknown_entries


@pytest.mark.parametrize(
    "text",
    [
        "*", "u1", "U1 U2", "U1;U2", "role/", "role/a/b", "Role/a", "group/ml", "role/a?", "role/[a]", "U1\nU2", "U1\n",
        "role/ml-\u043encall", "arn:aws:iam::*:role/ml", f"arn:*:iam::{ACCOUNT}:role/ml",
        f"arn:aws:iam::{ACCOUNT}:role/teams/*",
        f"arn:aws:sts::{ACCOUNT}:assumed-role/ml/ada", f"arn:aws:iam::{ACCOUNT}:*", "arn:aws:iam::1:root", "slack:U1",
    ],
)  # fmt: skip
def test_the_list_of_approvers_takes_no_entry_that_would_name_nobody_or_more_than_it_says(text: str) -> None:
    assert not PATTERN.fullmatch(text)


@given(st.lists(ENTRY, max_size=4), st.sampled_from([",", ", ", " ,", ",,"]), st.text("aA1:/*@ ", max_size=3))
def test_the_template_takes_what_the_program_understands(entries: list[str], comma: str, odd: str) -> None:
    assert PATTERN.fullmatch(comma.join(entries))
    text = comma.join([*entries, odd])
    assert bool(PATTERN.fullmatch(text)) is not bool(Approvers.parse(text, "").unknown_entries)


STREAM = "arn:aws:dynamodb:eu-west-1:111122223333:table/old-Table-1A2B/stream/2026-11-16T04:20:00.123"
ADOPTED = {"AdoptTable": STREAM, "AdoptBucket": "old-bucket-1a2b"}


@pytest.mark.parametrize("parameter", ADOPTED)
def test_what_may_be_adopted_has_the_form_that_aws_gives_it(parameter: str) -> None:
    pattern = source()["Parameters"][parameter]["AllowedPattern"]
    assert re.fullmatch(pattern, ADOPTED[parameter])
    assert re.fullmatch(pattern, "")
    assert not re.fullmatch(pattern, "arn:aws:dynamodb:eu-west-1:111122223333:table/old-Table-1A2B")


def test_a_stack_that_adopts_makes_neither_table_nor_bucket_and_names_the_adopted_ones_everywhere() -> None:
    adopting = stack(**EVERYTHING | ADOPTED)
    arn = STREAM.partition("/stream/")[0]
    assert not {"Table", "Bucket"} & set(adopting.resources)
    assert not re.search(r"\b(Table|Bucket)\.(Arn|StreamArn)\b", json.dumps([adopting.resources, adopting.outputs]))
    for door in DOORS:
        variables = adopting.function(door)["Environment"]["Variables"]
        assert (variables["RIGHTSIZER_TABLE"], variables["RIGHTSIZER_BUCKET"]) == ("old-Table-1A2B", "old-bucket-1a2b")
        on = {one for s in adopting.statements(door) for one in listed(s["Resource"]) if ":dynamodb:" in one}
        assert on <= {arn, f"{arn}/index/*", STREAM}, door
        assert (f"{arn}/index/*" if door == "report" else arn) in on, door
    mappings = adopting.of("AWS::Lambda::EventSourceMapping")
    assert {m["EventSourceArn"] for m in mappings.values() if "queue" not in m["EventSourceArn"].lower()} == {STREAM}
    assert adopting.outputs["TableName"]["Value"] == "old-Table-1A2B"
    assert adopting.outputs["TableStreamArn"]["Value"] == STREAM
    (policy,) = adopting.of("AWS::S3::BucketPolicy").values()
    assert policy["Bucket"] == "old-bucket-1a2b"
    assert policy["PolicyDocument"]["Statement"][0]["Resource"] == [
        "arn:aws:s3:::old-bucket-1a2b",
        "arn:aws:s3:::old-bucket-1a2b/*",
    ]


@pytest.mark.parametrize("door", DOORS)
def test_an_adopted_table_and_bucket_are_reached_by_the_same_statements(door: str) -> None:
    def shape(found: Stack) -> list[tuple[str, tuple[str, ...], int]]:
        statements = found.statements(door)
        return [(s.get("Sid", ""), tuple(listed(s["Action"])), len(listed(s["Resource"]))) for s in statements]

    assert shape(stack(**EVERYTHING | ADOPTED)) == shape(stack(**EVERYTHING))


def test_the_bucket_is_closed_and_encrypted(deployed: Stack) -> None:
    bucket = deployed.of("AWS::S3::Bucket")["Bucket"]
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    assert len(bucket["PublicAccessBlockConfiguration"]) == 4
    assert bucket["BucketEncryption"]
    assert {rule["Prefix"] for rule in bucket["LifecycleConfiguration"]["Rules"] if "Prefix" in rule} == {
        "pages/",
        "digests/",
        "reports/",
    }


def test_stored_usage_outlives_the_longest_look_back(deployed: Stack) -> None:
    """They are written again each day, so only those that nobody writes any more go."""
    rules = deployed.resources["Bucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    (kept,) = (rule["ExpirationInDays"] for rule in rules if rule.get("Prefix") == "digests/")
    assert kept > LOOKBACK.stop - 1


def test_every_queue_is_encrypted(deployed: Stack) -> None:
    for name, queue in deployed.of("AWS::SQS::Queue").items():
        assert queue["SqsManagedSseEnabled"] is True, name


def test_one_grouped_alarm_watches_all_endpoints_where_it_is_switched_on() -> None:
    def query(found: Stack) -> Any:
        alarm = found.of("AWS::CloudWatch::Alarm").get("GpuIdleAlarm")
        return alarm and alarm["Metrics"][0]["Expression"]

    assert query(stack(Extras="grouped-alarm")) == (
        'SELECT AVG(GPUUtilization) FROM SCHEMA("/aws/sagemaker/Endpoints", EndpointName, VariantName) '
        "GROUP BY EndpointName, VariantName ORDER BY AVG() ASC"
    )
    assert query(stack()) is None
    assert "USD 100 for 1,000" in source()["Parameters"]["Extras"]["Description"]


def test_an_alarm_topic_is_subscribed_only_when_named() -> None:
    assert stack().of("AWS::SNS::Subscription") == {}
    (subscription,) = stack(**EVERYTHING).of("AWS::SNS::Subscription").values()
    assert subscription["Endpoint"] == "EvaluationQueue.Arn"


EXPORT = "s3://bills/exports/cur-daily"


@pytest.mark.parametrize("bill", ["", "cost-explorer", EXPORT])
def test_a_bill_has_a_form_that_opens_no_other_bucket(bill: str) -> None:
    pattern = source()["Parameters"]["Bill"]["AllowedPattern"]
    assert re.fullmatch(pattern, bill)
    for wrong in (
        "s3://bills",
        "s3://bills/",
        "s3://*/x",
        "s3://bills/*",
        "s3://b-*/x",
        "s3://bills/a/",
        "s3://bills/${x}",
        "/etc",
    ):
        assert not re.fullmatch(pattern, wrong)


def bill_rights(bill: str) -> list[tuple[str, str]]:
    """What of the role of the report is there for this bill alone."""

    def given(**parameters: str) -> set[tuple[str, str]]:
        made = stack(**EVERYTHING | parameters)
        return {
            (action, resource)
            for statement in made.statements("report")
            for action in listed(statement["Action"])
            for resource in listed(statement["Resource"])
        }

    return sorted(given(Bill=bill) - given(Bill=""))


def test_the_report_may_read_the_bill_that_is_named_and_no_other() -> None:
    assert bill_rights("") == []
    assert bill_rights("cost-explorer") == [("ce:GetCostAndUsage", "*")]
    assert bill_rights(EXPORT) == [("s3:GetObject", "arn:aws:s3:::bills/exports/cur-daily/*")]


@pytest.mark.parametrize("door", DOORS)
def test_no_other_function_knows_the_bill(door: str, deployed: Stack) -> None:
    assert ("RIGHTSIZER_BILL" in deployed.function(door)["Environment"]["Variables"]) is (door == "report")
    assert ("ce:GetCostAndUsage" in deployed.actions(door)) is (door == "report")
