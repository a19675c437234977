"""``make demo``: the whole job on a simulated account, through the program's own handlers.

Nothing here decides: the stack is built from template.yaml, events reach the functions by its own rules, queues and
streams, and every AWS call goes through boto3. Only the account, its traffic, its time and the person in Slack are
simulated.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console

from rightsizer import bootstrap
from rightsizer.aws.hours import HoursTable
from rightsizer.aws.ledger import SavingsTable
from rightsizer.domain.office_hours import HOURS_TAG
from rightsizer.domain.proposal import ProposalState
from rightsizer.telemetry import logger
from sandbox.account import Sandbox
from sandbox.demo_end import files, headline, story
from sandbox.demo_table import Row, inserted, reasons, rows, table
from sandbox.seed import PYTORCH, drive, seed
from sandbox.slack import CHANNEL, Message, Workspace, listening
from sandbox.slack_page import page
from sandbox.spot import Spot, add_spot
from sandbox.traffic import Workload, write_past
from sandbox.wiring import Stack

START = datetime(2026, 11, 20, 4, 10, tzinfo=UTC)
"""A Friday, ten minutes before the daily sweep is due."""
MONDAY = datetime(2026, 11, 23, 6, 55, tzinfo=UTC)
"""Shortly before the weekly report."""
REGION = "us-east-1"
APPROVER = "U0ADA"
STORY = ("search-embeddings", "image-tagging", "product-ranking")
"""Changed well, brought back by its alarm, approved by a person."""
ALARMED = "doc-layout"
YES = ("Run the test", "Approve")
"""The buttons that say yes, the first that there is."""
GROUP = "gpu-batch"
"""An Auto Scaling group of Spot instances, opted in."""
DESK, HOURS = "desk-assistant", "mon-fri 08:00-19:00 Europe/Berlin"
"""An endpoint that its owner sends home in the evening by the tag rightsizer:hours."""
TICKS = "Hours.Tick"
EVENING = datetime(2026, 11, 20, 17, 55, tzinfo=UTC)
"""Shortly before the hours of Friday end."""
MORNING = timedelta(minutes=50)
"""Before the report: from then on the ticks of the office hours are played again."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A scene's line while it runs: the simulated time and the AWS calls so far, read anew each time it is drawn."""

    title: str
    box: Sandbox

    def __rich__(self) -> str:
        return f"{self.title} [dim]· {self.box.clock.now:%a %H:%M} · {len(self.box.gate.calls)} AWS calls[/]"


class Demo:
    """The story, scene by scene."""

    def __init__(self, console: Console, out: Path, traces: Path | None) -> None:
        self.console, self.out, self.traces = console, out, traces
        self.began = time.monotonic()

    def play(self) -> list[Row]:
        """Run every scene; returns the rows of the table."""
        with ExitStack() as scenes:
            box = self.box = scenes.enter_context(Sandbox(now=START, region=REGION))
            slack = Workspace(clock=lambda: box.clock.now)
            address = scenes.enter_context(listening(slack))
            with self.scene("an account of 31 endpoints with 14 days of metrics; the stack from template.yaml"):
                works = seed(box, self.traces) | self.desk(box)
                spot = add_spot(box)
                spot.group(GROUP, types=["g5.xlarge", "g6.xlarge"], zones=[f"{REGION}a", f"{REGION}b"])
                stack = self.deploy(box, slack, address)
                scenes.callback(bootstrap.reset)
            with self.scene(f"a CloudWatch alarm fires for {ALARMED}, which is evaluated at once"):
                self.alarm(box)
            with self.scene("the daily sweep evaluates the others: observe, read metrics, judge, propose"):
                stack.fire("Sweep.Daily")
            drive(box, works, *STORY, DESK)
            with self.scene("the opted-in endpoints deploy, each under its roll-back alarms"):
                box.clock.advance(timedelta(hours=2))
            approved = asked(slack, list(works))
            drive(box, works, approved)
            with self.scene(f"{APPROVER} answers for {approved} in Slack, signed: the shadow test first"):
                self.approve(box, stack, slack, approved)
                box.clock.advance(timedelta(hours=2))
            with self.scene("the test runs over the busiest hour"):
                self.test(box)
            with self.scene(f"Friday 19:00 in Berlin: {DESK} goes home, by its owner's tag"):
                self.evening(box, stack)
            with self.scene("a sweep judges by the test, the change follows"):
                stack.fire("Sweep.Daily")
                box.clock.advance(timedelta(hours=1))
            with self.scene("a day and a half of traffic proves the changes"):
                self.prove(box, works)
            with self.scene(f"EC2 takes a Spot instance of {GROUP} back; its replacement starts at once"):
                self.interrupt(box, spot)
            with self.scene(f"Monday, before 08:00 in Berlin: {DESK} is back"):
                self.rest(box, stack)
            with self.scene("the weekly report"):
                stack.fire("Report.Weekly")
                written = self.save(box, slack)
            result = rows(bootstrap.store(), list(HoursTable(bootstrap.table()).records()), box.clock.now)
            self.close(stack, written, result)
            return result

    @contextmanager
    def scene(self, title: str) -> Iterator[None]:
        """Say what happens, what has been done so far, and how long it took."""
        began = time.monotonic()
        with self.console.status(Progress(title, self.box)):
            yield
        self.console.print(f"[green]✓[/] {title} [dim]{time.monotonic() - began:.0f} s[/]", soft_wrap=True)

    def deploy(self, box: Sandbox, slack: Workspace, address: str) -> Stack:
        """The stack from its template, with Slack's secret."""
        secret = box.client("secretsmanager").create_secret(Name="rightsizer-slack", SecretString=slack.secret())
        parameters = {
            "SlackSecretArn": secret["ARN"],
            "SlackChannel": CHANNEL,
            "Approvers": APPROVER,
            "MayStop": "tagged",
            "Extras": "grouped-alarm",
        }
        stack = Stack(box, Path("template.yaml"), parameters=parameters)
        for name, function in stack.parts.functions.items():
            environment = {**function.environment, "RIGHTSIZER_SLACK_ENDPOINT": address}
            stack.parts.functions[name] = replace(function, environment=environment)
        stack.quiet |= {"Sweep.Hourly", "Sweep.Daily", TICKS}
        os.environ.update({k: v for k, v in stack.function("evaluate").environment.items() if k.startswith("RIGHT")})
        return stack

    def alarm(self, box: Sandbox) -> None:
        """A user's own alarm goes off; CloudWatch sends its event."""
        box.client("cloudwatch").put_metric_alarm(
            AlarmName=f"rightsizer-gpu-idle-{ALARMED}",
            Namespace="/aws/sagemaker/Endpoints",
            MetricName="GPUUtilization",
            Dimensions=[
                {"Name": "EndpointName", "Value": ALARMED},
                {"Name": "VariantName", "Value": "AllTraffic"},
            ],
            Statistic="Average",
            Period=300,
            EvaluationPeriods=1,
            Threshold=95.0,
            ComparisonOperator="LessThanThreshold",
        )
        box.clock.advance(timedelta(minutes=10))

    def approve(self, box: Sandbox, stack: Stack, slack: Workspace, endpoint: str) -> None:
        """A person presses the first button of the message about the endpoint: the test where one is offered."""
        message = next(message for message in slack.messages if about(message, endpoint))
        button = next(button for button in YES if button in message.buttons())
        answer = stack.invoke("respond", slack.click(message, button, APPROVER, box.clock.now), "Slack")
        if answer["statusCode"] != 200:
            raise SystemExit(f"the respond function refused the click: {answer}")
        box.clock.advance(timedelta(minutes=1))

    def desk(self, box: Sandbox) -> dict[str, Workload]:
        """An endpoint of colleagues in Berlin, who go home at 19:00."""

        def shape(at: datetime) -> float:
            return 500.0 if at.weekday() < 5 and 7 <= at.hour < 17 else 0.0

        work = Workload(shape, "ml.g5.xlarge", gpu_s=0.05, seed=31)
        tags = {"rightsizer:mode": "propose", "rightsizer:owner": "team-assistant", HOURS_TAG: HOURS}
        box.add_endpoint(
            DESK, image=PYTORCH, tags=tags, instance_type=work.home, created=box.clock.now - timedelta(days=60)
        )
        write_past(box, DESK, work)
        return {DESK: work}

    def test(self, box: Sandbox) -> None:
        """Time goes on until the test is over."""
        running = {ProposalState.APPROVED, ProposalState.APPLYING}

        def over() -> bool:
            tested = [one for one in bootstrap.store().proposals() if one.is_test_first]
            return all(one.state not in running or "the change follows" in one.outcome for one in tested)

        box.clock.run_until(over, timedelta(hours=16), timedelta(minutes=10))

    def evening(self, box: Sandbox, stack: Stack) -> None:
        """Four hours; the ticks of the office hours are played where they stop something, and say nothing before."""
        end = box.clock.now + timedelta(hours=4)
        box.clock.advance_to(max(box.clock.now, EVENING))
        stack.quiet -= {TICKS}
        box.clock.advance(timedelta(minutes=35))
        stack.quiet |= {TICKS}
        box.clock.advance_to(max(box.clock.now, end))
        if DESK in box.world.fleet.endpoints:
            raise SystemExit(f"{DESK} did not go home")

    def rest(self, box: Sandbox, stack: Stack) -> None:
        """The weekend, of which nothing needs to be told: no traffic is made up, and nothing fires before Monday."""
        for name in (*STORY, DESK):
            box.load(name, None)
        stack.quiet |= {schedule.name for schedule in stack.parts.schedules}
        box.clock.advance_to(MONDAY - MORNING)
        stack.quiet -= {TICKS}
        box.clock.advance_to(MONDAY)
        if box.status(DESK) != "InService":
            raise SystemExit(f"{DESK} is not back")

    def prove(self, box: Sandbox, works: dict[str, Workload]) -> None:
        """Time goes on until probation is over."""
        done = {ProposalState.PROVEN, ProposalState.ROLLED_BACK, ProposalState.HANDED_OVER}
        for _ in range(8):
            box.clock.advance(timedelta(hours=6))
            open_ones = [one for one in bootstrap.store().proposals() if one.change_id and one.state not in done]
            if not open_ones:
                return

    def interrupt(self, box: Sandbox, spot: Spot) -> None:
        """EC2 warns one instance of the opted-in group; the event has the zone in the Region's place."""
        spot.groups.warn(spot.members(GROUP)[0])
        box.clock.advance(timedelta(minutes=5))

    def save(self, box: Sandbox, slack: Workspace) -> list[Path]:
        """The files of the bucket and the messages of the channel, in a folder."""
        s3, bucket = box.client("s3"), bootstrap.settings().bucket
        found = []
        for entry in s3.list_objects_v2(Bucket=bucket, Prefix="reports/")["Contents"]:
            path = self.out / Path(entry["Key"]).name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read())
            found.append(path)
        messages = self.out / "slack.html"
        messages.write_text(page(slack.messages, slack.files))
        return [*sorted(found), messages]

    def report(self, written: Sequence[Path]) -> Mapping[str, Any]:
        """The weekly report, as it was written for machines."""
        found: Mapping[str, Any] = json.loads(next(path for path in written if path.suffix == ".json").read_text())
        return found

    def close(self, stack: Stack, written: list[Path], result: list[Row]) -> None:
        """The table, the files, and what failed if anything did."""
        print(f"\n{table(result)}\n\nLeft alone, and why:\n\n{reasons(result)}\n")
        told = SavingsTable(bootstrap.table()).occurrences(START, MONDAY)
        print("What happened:\n", *story(told), "", headline(self.report(written), result), "", sep="\n", flush=True)
        for line in files(written):
            self.console.print(line, soft_wrap=True)
        self.console.print(f"[dim]{len(stack.invocations)} invocations, {time.monotonic() - self.began:.0f} s[/]")
        for run in stack.failures:
            self.console.print(f"[red]{run.door} failed: {run.error!r}[/]")
        if stack.failures or stack.dead_letters():
            raise SystemExit(1)


def about(message: Message, endpoint: str) -> bool:
    """Whether a message asks about the endpoint."""
    return endpoint in message.text and any(button in message.buttons() for button in YES)


def asked(slack: Workspace, endpoints: Sequence[str]) -> str:
    """The endpoint whose change a person approves: that of the story, or with other load the first that was asked."""
    for name in (STORY[2], *endpoints):
        if any(about(message, name) for message in slack.messages):
            return name
    raise SystemExit("nobody was asked to approve anything; see the reasons in the report")


def main() -> None:
    """Parse the command line and play."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.demo", description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, help="take load shapes from this folder of real traces (needs numpy)")
    parser.add_argument("--table", type=Path, help="also write the table into this page, between its two markers")
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="where reports and messages go")
    given = parser.parse_args()
    if given.traces and not given.traces.is_dir():
        parser.error(f"there is no folder {given.traces}")
    logger.setLevel(os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "CRITICAL"))  # it was made before, by an import
    os.environ.setdefault("POWERTOOLS_METRICS_DISABLED", "true")
    try:
        found = Demo(Console(stderr=True, highlight=False), given.out, given.traces).play()
        if given.table:
            given.table.write_text(inserted(given.table.read_text(), table(found)))
    except KeyboardInterrupt:
        sys.exit("stopped; nothing is left behind")


if __name__ == "__main__":
    main()
