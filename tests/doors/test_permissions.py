"""Every request that a door makes is one that its own role allows; the sandbox refuses the others, as AWS would."""

import pytest

from rightsizer import bootstrap
from rightsizer.domain.proposal import ProposalState
from rightsizer.errors import PermissionMissingError
from sandbox.gate import Call
from sandbox.policies import Ask
from sandbox.spot import add_spot
from tests.doors.scene import AUTO, BIG, PROPOSE, Scene, scene, states

EVERY_DOOR = {"sweep", "evaluate", "propose", "picture", "respond", "apply", "interruption", "report"}


@pytest.mark.slow
def test_no_role_refuses_anything_from_the_sweep_to_the_report() -> None:
    with scene(EditUserAlarms="true", UserAlarmPrefix="ours-") as at:
        spot = add_spot(at.box)
        group = spot.group("trainers", types=["g5.xlarge", "g6.xlarge"], desired=3)
        at.add(BIG)
        at.add("product-ranking")
        at.add("autoscaled-feed")
        at.drive(BIG)
        at.sweep()
        assert at.click("product-ranking", "Approve without it")["statusCode"] == 200
        at.box.script_deployment("product-ranking", "alarm")
        at.pass_time(hours=3)
        at.sweep("Hourly")
        spot.groups.warn(spot.members("trainers")[0])
        at.pass_time(minutes=10)
        for _ in range(6):
            at.pass_time(hours=6)
        at.stack.fire("Report.Weekly")
        assert {run.door for run in at.stack.invocations} == EVERY_DOOR
        assert at.stack.failures == []
        assert [(call.action, call.params) for call in at.refused()] == []
        found = states(at.proposals())
        assert (found[BIG], found["product-ranking"]) == (ProposalState.PROVEN, ProposalState.ROLLED_BACK)
        assert at.box.calls.of("autoscaling", "Detach*") + at.box.calls.of("autoscaling", "Terminate*")
        assert group.serving == 3


def asked(at: Scene, door: str, *asks: Ask) -> list[bool]:
    role = at.stack.roles.role(door)
    return [role.allows(ask) for ask in asks]


def test_a_role_reaches_its_own_part_of_the_bucket_and_no_other() -> None:
    with scene() as at:
        bucket = at.stack.parts.names["Bucket"]
        page, report = (Ask("s3:PutObject", f"arn:aws:s3:::{bucket}/{key}") for key in ("pages/a", "reports/a"))
        assert asked(at, "propose", page, report) == [True, False]
        assert asked(at, "report", page, report) == [False, True]


def test_whoever_signs_a_link_may_read_what_it_leads_to() -> None:
    with scene() as at:
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.stack.fire("Report.Weekly")
        stored = [(door, call) for door in ("propose", "report") for call in puts(at, door)]
        assert {door for door, _ in stored} == {"propose", "report"}
        for door, call in stored:
            read = Ask("s3:GetObject", f"arn:aws:s3:::{call.params['Bucket']}/{call.params['Key']}")
            assert at.stack.roles.role(door).allows(read), call.params["Key"]


def puts(at: Scene, door: str) -> list[Call]:
    prefix = {"propose": "pages/", "report": "reports/"}[door]
    return [call for call in at.box.calls.of("s3", "PutObject") if call.params["Key"].startswith(prefix)]


def test_the_public_door_cannot_read_what_is_no_proposal() -> None:
    with scene() as at, at.stack.roles.assumed("respond"), pytest.raises(PermissionMissingError):
        bootstrap.table().get("ENDPOINT#chat", "RECOMMENDATION")


def test_the_report_queries_the_index_and_can_neither_read_an_item_by_its_key_nor_forge_an_approval() -> None:
    with scene() as at:
        table = at.box.world.arn("dynamodb", f"table/{at.stack.parts.names['Table']}")
        approval = {"dynamodb:LeadingKeys": "PROPOSAL#p"}
        by_key = [Ask(f"dynamodb:{name}", table, approval) for name in ("GetItem", "PutItem", "UpdateItem", "Query")]
        assert asked(at, "report", Ask("dynamodb:Query", f"{table}/index/GSI1"), *by_key) == [True] + [False] * 4


@pytest.mark.parametrize(
    ("door", "own"),
    [
        ("propose", {"MESSAGE#p", "PARKED#p"}),
        ("interruption", {"SPOT#i", "ONCE#o", "POOL#p", "OCCURRENCE#o"}),
        ("sweep", {"GROUP#g", "ACCOUNT", "PROPOSAL#p", "REPORT#r"}),
        ("report", {"REPORT#r"}),
        ("evaluate", {"ENDPOINT#e", "PROPOSAL#p", "OCCURRENCE#o", "SCORE#s"}),
    ],
)
def test_a_door_that_changes_nothing_writes_its_own_kinds_of_items_alone(door: str, own: set[str]) -> None:
    others = {"PROPOSAL#p", "CHANGE#c", "LOCK#ENDPOINT#e", "CONTROL", "ENDPOINT#e", "GROUP#g", "ENTRY#e", "BUDGET#b"}
    with scene() as at:
        table = at.box.world.arn("dynamodb", f"table/{at.stack.parts.names['Table']}")
        role = at.stack.roles.role(door)
        puts = {key: Ask("dynamodb:PutItem", table, {"dynamodb:LeadingKeys": key}) for key in own | others}
        assert {key for key, ask in puts.items() if role.allows(ask)} == own


def test_an_event_of_another_source_cannot_be_sent() -> None:
    with scene() as at:
        bus = "arn:aws:events:us-east-1:111122223333:event-bus/default"
        asks = [Ask("events:PutEvents", bus, {"events:source": source}) for source in ("rightsizer", "aws.ec2")]
        assert asked(at, "propose", *asks) == asked(at, "report", *asks) == asked(at, "sweep", *asks) == [True, False]


def test_a_permission_that_apply_lacks_hands_the_change_over_and_says_which() -> None:
    with scene() as at:
        at.add(BIG, tags=AUTO | {"rightsizer:p95-ms": "250", "rightsizer:min-instances": "1"})
        at.box.deny("sagemaker:CreateEndpointConfig")
        at.sweep()
        at.pass_time(hours=2)
        (change,) = at.proposals()
        assert change.state in (ProposalState.HANDED_OVER, ProposalState.WITHDRAWN, ProposalState.ROLLED_BACK)
        assert "sagemaker:CreateEndpointConfig" in at.message(BIG).plain()
        assert at.box.config_name(BIG) == f"{BIG}-config"


def test_evaluate_measures_models_of_its_account_and_reads_none() -> None:
    with scene() as at:
        here, elsewhere = ({"aws:ResourceAccount": account} for account in (at.box.account, "999988887777"))
        listing = [Ask("s3:ListBucket", "arn:aws:s3:::models", context) for context in (here, elsewhere)]
        asks = (*listing, Ask("s3:GetObject", "arn:aws:s3:::models/llama/1.safetensors", here))
        cache = Ask("cloudwatch:ListMetrics", "*")
        assert asked(at, "evaluate", cache, *asks) == [True, True, False, False]
        assert asked(at, "apply", cache, *asks) == [False] * 4
