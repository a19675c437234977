"""The whole main path on the built functions: from the schedule to the weekly report, over HTTP for every service."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from rightsizer.domain.proposal import Proposal, ProposalState
from sandbox.account import Sandbox
from sandbox.artefact import Artefact
from sandbox.gate import Call
from sandbox.server import serve
from sandbox.spot import Spot, add_spot
from tests.doors.scene import APPROVER, Scene, scene
from tests.template.stack import BY_DEFAULT as DOORS
from tests.template.stack import EVERYTHING, stack
from tests.template.test_calls import actions_by_method, calls
from tests.template.test_least import IMPLIED, builders, modules

PROVEN, ALARMED, ASKED, GROUP = "search-embeddings", "image-tagging", "product-ranking", "gpu"
"""Changed well, brought back by its alarm, approved by a click; and the Auto Scaling group of Spot instances."""
LIMITS = json.dumps({"probation_hours": 2, "changes_per_day": 50, "usd_per_day": 5000})
OVER = frozenset({ProposalState.PROVEN, ProposalState.ROLLED_BACK, ProposalState.HANDED_OVER})


@dataclass(frozen=True)
class Outcome:
    """What the main path left, before anything else happened in the account."""

    proposals: Mapping[str, Proposal]
    """By endpoint."""
    before: Mapping[str, str]
    types: Mapping[str, str]
    """The instance type of each endpoint at the beginning and at the end."""
    files: Mapping[str, bytes]
    messages: tuple[str, ...]
    """Everything that a person reads in the channel."""
    detached: list[str]
    """Groups whose instance was given up for a replacement."""
    serving: int
    """Instances of the group that serve at the end."""
    told_by_report: int
    """Messages that the report posted."""


@dataclass
class Course:
    """The scene, and what a test asks of its course."""

    at: Scene
    spot: Spot
    functions: Artefact

    def made(self, door: str, action: str) -> list[Call]:
        """The requests of a door of this name that AWS answered without an error."""
        calls = (call for run in self.at.stack.runs(door) for call in run.calls)
        return [call for call in calls if call.action == action and call.error is None]

    def files(self, prefix: str) -> dict[str, bytes]:
        """Objects of the stack's bucket by key."""
        s3, bucket = self.at.box.client("s3"), self.at.stack.parts.names["Bucket"]
        with self.at.box.gate.unrecorded():
            rows = s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
            return {row["Key"]: s3.get_object(Bucket=bucket, Key=row["Key"])["Body"].read() for row in rows}

    def state(self, endpoint: str) -> ProposalState:
        """State of the newest proposal of an endpoint."""
        return next(one for one in self.at.proposals() if one.ref.name == endpoint).state

    def until(self, condition: Callable[[], bool], **limit: float) -> None:
        """Let time go on until the condition holds; it must within the limit."""
        assert self.at.box.clock.run_until(condition, timedelta(**limit), timedelta(minutes=10))


@contextmanager
def course(build: Path, python: Path) -> Iterator[Course]:
    """A stack of built functions beside three endpoints and a group of Spot instances."""

    started: list[Artefact] = []

    @contextmanager
    def functions(box: Sandbox, parameters: Mapping[str, str]) -> Iterator[Artefact]:
        with serve(box) as url, Artefact(build, python, url, parameters) as found:
            started.append(found)
            yield found

    with scene(functions=functions, Limits=LIMITS, EditUserAlarms="true", Extras="grouped-alarm") as at:
        spot = add_spot(at.box)
        for name in (PROVEN, ALARMED, ASKED):
            at.add(name)
        spot.group(GROUP, zones=("us-east-1a", "us-east-1b", "us-east-1c"))
        at.stack.quiet |= {"Sweep.Hourly", "Sweep.Daily", "Report.Weekly", "Report.Monthly"}
        yield Course(at, spot, started[0])


def play(on: Course) -> Outcome:
    """The main path, each stage as soon as the one before it has left what it must leave."""
    at, ours = on.at, (PROVEN, ALARMED, ASKED)
    before = {name: type_of(at, name) for name in ours}
    at.sweep("Daily")
    assert [f"{run.door}: {run.error}" for run in at.stack.failures] == []
    for name in ours:
        at.drive(name)
    at.pass_time(minutes=10)
    assert at.click(ASKED, "Approve without it", APPROVER)["statusCode"] == 200
    on.until(lambda: {on.state(name) for name in ours} <= OVER, hours=36)
    for name in ours:
        at.box.load(name, None)
    on.spot.groups.warn(on.spot.members(GROUP)[0])
    at.pass_time(minutes=7)
    posted = len(at.slack.messages)
    at.stack.fire("Report.Weekly")
    at.pass_time(minutes=5)
    return Outcome(
        proposals={name: next(one for one in at.proposals() if one.ref.name == name) for name in ours},
        before=before,
        types={name: type_of(at, name) for name in ours},
        files=on.files(""),
        messages=tuple(message.plain() for message in at.slack.messages),
        detached=[
            call.params["AutoScalingGroupName"] for call in on.made("interruption", "autoscaling:DetachInstances")
        ],
        serving=on.spot.groups.groups[GROUP].serving,
        told_by_report=len(at.slack.messages) - posted,
    )


def type_of(at: Scene, endpoint: str) -> str:
    """The instance type that the endpoint's configuration names."""
    with at.box.gate.unrecorded():
        config = at.box.client("sagemaker").describe_endpoint_config(EndpointConfigName=at.box.config_name(endpoint))
    return str(config["ProductionVariants"][0]["InstanceType"])


def expected() -> dict[str, set[str]]:
    """The IAM actions that each door's role allows at its widest and its adapters name."""
    allowed, found = stack(**EVERYTHING), {}
    for door in DOORS:
        named = {name for path in modules(builders()[door], {door}) for name in calls(path)}
        needed = {action for name in named & actions_by_method().keys() for action in actions_by_method()[name]}
        found[door] = allowed.actions(door) & needed - IMPLIED.keys()
    return found


def operations(on: Course) -> dict[str, set[str]]:
    """The IAM actions that each door needed for requests that AWS answered without an error."""
    found: dict[str, set[str]] = {}
    for run in on.at.stack.invocations:
        asked = on.at.stack.roles.role(run.door).asks
        found.setdefault(run.door, set()).update(
            ask.action for call in run.calls if call.error is None for ask in asked(call)
        )
    return found


def table_of(seen: Mapping[str, set[str]]) -> str:
    """The operations of each door, a line each."""
    return "\n".join(f"{door}: {', '.join(sorted(seen[door]))}" for door in sorted(seen))
