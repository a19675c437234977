"""A deployed stack with a past: what ``make sandbox`` starts, so that every command has something to show.

Nothing of the past is written by hand: the stack is built from template.yaml, its functions ran at the simulated time,
and each decision was a click in Slack or an order of the terminal. Only quiet days are jumped over; their metrics are
written afterwards by the same model of traffic.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rightsizer import bootstrap
from rightsizer.aws.session import Session
from rightsizer.bootstrap.changes import desk
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.telemetry import logger
from sandbox.account import Sandbox
from sandbox.seed import drive, residents, seed
from sandbox.slack import CHANNEL, Workspace, listening
from sandbox.spot import Spot, add_spot
from sandbox.traffic import Workload, hardware, office_hours, write_past
from sandbox.training_history import seed_training
from sandbox.wiring import Stack

REGION = "us-east-1"
"""Every instance type of the account has a price here."""
ADA, ROLE = "U0ADA", "apply"
"""Who clicks in Slack, and the role of whoever holds the printed credentials: both are approvers."""
PROVEN, RETURNED, BY_SLACK, BY_TERMINAL = "search-embeddings", "image-tagging", "doc-layout", "nightly-translate"
"""Changed by itself and proven; brought back by its alarm; approved by a click, and by an order."""
REJECTED, SNOOZED = ("speech-to-text", "needed for the launch in December"), "caption-batches"
ASLEEP, COMPONENTS, GROUP = "notebook-chat", "shared-models", "gpu-batch"
"""An endpoint with office hours, one of inference components, and an Auto Scaling group on Spot instances."""
USED: Mapping[str, tuple[float, float, float]] = {
    "summariser": (55.0, 2.0, 400.0),
    "classifier": (8.0, 0.3, 120.0),
    "translator": (1.0, 0.0, 0.0),
}
"""Percent of the GPU, requests at once and in five minutes of each component of two copies.

One is needed, one has a copy too many, one is called by nobody.
"""
OPEN_H, ASLEEP_H = 8, 5
"""Hours that the endpoint with office hours serves a day, and for which it has been asleep when the sandbox starts."""
CHANGED = (PROVEN, RETURNED, BY_SLACK, BY_TERMINAL)
WITHOUT = {one.name: one.without for one in residents()}
"""Metrics that an endpoint does not publish."""
DONE = frozenset({ProposalState.PROVEN, ProposalState.ROLLED_BACK, ProposalState.HANDED_OVER})

type Say = Callable[[str], None]


@dataclass(slots=True)
class History:
    """The account, its stack and its Slack channel, and what is needed to let its past go by."""

    box: Sandbox
    end: datetime
    """When the past ends: the time at which the sandbox starts."""
    say: Say = lambda text: None
    slack: Workspace = field(default_factory=Workspace)
    works: dict[str, Workload] = field(default_factory=dict)
    jobs: Any = None
    """The account's training jobs."""

    @property
    def began(self) -> datetime:
        """When the past begins."""
        return beginning(self.end)

    @contextmanager
    def deployed(self) -> Iterator[Stack]:
        """The stack after all that happened; Slack listens as long as the context is open."""
        with listening(self.slack) as address:
            self.slack.clock = lambda: self.box.clock.now
            self.say("an account of 32 endpoints with two weeks of metrics, and the stack from template.yaml")
            spot = self._fill()
            stack = self._deploy(address)
            try:
                self.say("evaluations; people and the stack's own rules decide; changes run under their alarms")
                self._decide(stack, spot)
                self.say("a day of traffic proves the changes; quiet days follow")
                self._prove(stack)
                self._rest(stack)
                stack.fire("Report.Weekly")
                yield stack
            finally:
                bootstrap.reset()

    def _fill(self) -> Spot:
        box = self.box
        self.works = seed(box)
        hours = f"daily {self._opens:%H:%M}-{self._opens + timedelta(hours=OPEN_H):%H:%M} UTC"
        tags = {"rightsizer:mode": "propose", "rightsizer:owner": "team-research", "rightsizer:hours": hours}
        chat = Workload(home="ml.g5.2xlarge", seed=40, shape=office_hours(0.001, night=0), gpu_s=0.5)
        box.add_endpoint(ASLEEP, chat.home, tags=tags)
        write_past(box, ASLEEP, chat)
        self.works[ASLEEP] = chat
        tags = {"rightsizer:mode": "propose", "rightsizer:owner": "team-assistant"}
        managed = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 4}
        extra = {"ManagedInstanceScaling": managed}
        box.add_endpoint(COMPONENTS, "ml.g5.12xlarge", 2, tags=tags, inference_components=True, variant_extra=extra)
        needs = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
        for name in USED:
            box.add_component(name, COMPONENTS, copies=2, needs=needs)
            box.use_component(name, *USED[name])
        spot = add_spot(box)
        spot.group(GROUP, types=["g5.xlarge", "g6.xlarge"], zones=[f"{box.region}a", f"{box.region}b"])
        self.jobs = spot.jobs
        return spot

    @property
    def _opens(self) -> datetime:
        """The start of the last span of office hours: they ended some hours before the sandbox starts."""
        hour = self.end.replace(minute=0, second=0, microsecond=0)
        return hour - timedelta(hours=OPEN_H + ASLEEP_H)

    def _deploy(self, address: str) -> Stack:
        box = self.box
        secret = box.client("secretsmanager").create_secret(Name="rightsizer-slack", SecretString=self.slack.secret())
        parameters = {"SlackSecretArn": secret["ARN"], "SlackChannel": CHANNEL, "Approvers": f"{ADA},role/{ROLE}"}
        stack = Stack(box, Path("template.yaml"), parameters={**parameters, "MayStop": "tagged"})
        for name, function in stack.parts.functions.items():
            environment = {**function.environment, "RIGHTSIZER_SLACK_ENDPOINT": address}
            stack.parts.functions[name] = replace(function, environment=environment)
        stack.quiet |= {"Sweep.Hourly", "Sweep.Daily", "Hours.Tick"}
        return stack

    def _decide(self, stack: Stack, spot: Spot) -> None:
        """The first evaluation, everybody's answers, and the hours in which the changes deploy, minute by minute."""
        box = self.box
        stack.fire("Sweep.Daily")
        drive(box, self.works, *CHANGED)
        box.clock.advance(timedelta(hours=2))
        self._click(stack, BY_SLACK)
        self._order(BY_TERMINAL, ProposalState.APPROVED)
        self._order(REJECTED[0], ProposalState.REJECTED, REJECTED[1])
        self._order(SNOOZED, ProposalState.SNOOZED)
        box.clock.advance(timedelta(minutes=10))
        spot.groups.warn(spot.members(GROUP)[0])
        box.clock.advance(timedelta(minutes=80))

    def _prove(self, stack: Stack) -> None:
        """Days until now: metrics in five minutes at once, and a look at the changes every hour until all are over."""
        box = self.box
        stack.quiet |= {schedule.name for schedule in stack.parts.schedules}
        for name in CHANGED:
            box.load(name, None)
        self._write_days_until_end()
        last = self._opens + timedelta(hours=OPEN_H - 1)
        while not self._is_over() and box.clock.now < last:
            box.clock.advance(timedelta(hours=1))
            stack.fire("Apply.Tick")

    def _click(self, stack: Stack, endpoint: str) -> None:
        """A person approves in Slack, with a signed request."""
        message = next(m for m in self.slack.messages if endpoint in m.text and "Approve" in m.buttons())
        stack.invoke("respond", self.slack.click(message, "Approve", ADA, self.box.clock.now), "Slack")

    def _order(self, endpoint: str, state: ProposalState, why: str = "") -> None:
        """A person decides at a terminal."""
        at = desk(Session(self.box.region), "rightsizer", "")
        pending = [p for p in at.store.proposals((ProposalState.PENDING,), []) if p.ref.name == endpoint]
        at.decide(pending[0].id, state, why)

    def _is_over(self) -> bool:
        """Whether no change is under way any more; one whose first stage is proven waits for an evaluation."""
        return all(p.state in DONE | {ProposalState.APPROVED} for p in self.proposals() if p.change_id)

    def proposals(self) -> list[Proposal]:
        """Every proposal of the stack."""
        return list(desk(Session(self.box.region), "rightsizer", "").store.proposals((), []))

    def _rest(self, stack: Stack) -> None:
        """Days of which nothing needs to be told, and the evening after which the endpoint with office hours sleeps."""
        box, closed = self.box, self._opens + timedelta(hours=OPEN_H)
        box.clock.advance_to(closed + timedelta(minutes=35))
        while ASLEEP in box.world.fleet.endpoints and box.clock.now < self.end - timedelta(hours=1):
            stack.fire("Hours.Tick")
            box.clock.advance(timedelta(minutes=10))
        stack.fire("Hours.Tick")
        box.clock.advance_to(self.end)
        for name, use in USED.items():
            box.use_component(name, *use, days=(self.end - self.began).days)
        drive(box, self.works, *(name for name in self.works if name in box.world.fleet.endpoints))
        seed_training(box, self.jobs)
        stack.quiet.clear()

    def _write_days_until_end(self) -> None:
        """The metrics from now to the end, by what serves each endpoint since its change."""
        box = self.box
        for name, work in self.works.items():
            variant = box.world.fleet.endpoint(name).variants.get("AllTraffic")
            if variant is None or (variant.instance_type or "") not in hardware().types:
                continue
            since = box.clock.now if name in CHANGED else self.began
            write_past(
                box,
                name,
                work,
                variant.desired_count,
                days=(self.end - since) / timedelta(days=1),
                kind=variant.instance_type or "",
                end=self.end,
                without=WITHOUT.get(name, frozenset()),
            )


def beginning(end: datetime) -> datetime:
    """Friday, 04:20 UTC, of the last whole week before `end`, so that the weekly report has what was changed."""
    monday = (end - timedelta(days=end.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
    return monday - timedelta(days=3) + timedelta(hours=4, minutes=20)


@contextmanager
def with_history(box_end: datetime, say: Say, region: str = REGION) -> Iterator[tuple[History, Stack]]:
    """An account whose stack has a past that ends at `box_end`."""
    logger.setLevel(os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "CRITICAL"))
    os.environ.setdefault("POWERTOOLS_METRICS_DISABLED", "true")
    with Sandbox(now=beginning(box_end), region=region) as box:
        history = History(box, box_end, say)
        with history.deployed() as stack:
            yield history, stack
