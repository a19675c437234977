"""A small account with the stack deployed: its own handlers, rules, queues, streams, roles; Slack listens."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rightsizer import bootstrap
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.recommendation import Recommendation
from sandbox.account import Sandbox
from sandbox.functions import Invoker
from sandbox.gate import Call
from sandbox.seed import AUTO, PROPOSE, Resident, residents, write_backlog
from sandbox.slack import CHANNEL, Message, Workspace, listening
from sandbox.traffic import Workload, write_past
from sandbox.wiring import Stack

ROOT = Path(__file__).parents[2]
START = datetime(2026, 11, 16, 4, 20, tzinfo=UTC)
REGION = "us-east-1"
APPROVER = "U0ADA"
BIG = "search-embeddings"
"""Plainly too big; its tags say whether it is changed by itself."""
type Functions = Callable[[Sandbox, Mapping[str, str]], AbstractContextManager[Invoker]]
"""What runs the functions of a stack with these parameters in an account."""
DENIED = {"AccessDeniedException", "AccessDenied", "UnauthorizedOperation"}


TICK = "Apply.Tick"
BUSY = timedelta(hours=6)
"""A change of one instance is over by then, and its hour of probation, whatever is lost."""


def let_pass(stack: Stack, span: timedelta) -> None:
    """Let time pass; of a day, in which little is done after some hours, with one tick an hour."""
    clock = stack.box.clock
    end = clock.now + span
    clock.advance_to(min(clock.now + BUSY, end))
    if clock.now == end or TICK in stack.quiet:
        clock.advance_to(end)
        return
    stack.quiet.add(TICK)
    while clock.now + timedelta(hours=1) < end:
        clock.advance(timedelta(hours=1))
        stack.fire(TICK)
    stack.quiet.remove(TICK)
    clock.advance_to(end)


@dataclass
class Scene:
    """The account, the stack, the channel, and what the tests ask of them."""

    box: Sandbox
    stack: Stack
    slack: Workspace
    works: dict[str, Workload] = field(default_factory=dict)

    def add(self, name: str, *, tags: Mapping[str, str] | None = None, as_name: str = "", **metrics: Any) -> str:
        """A resident of the demo's account, with its past; `tags` in place of its own."""
        one = _resident(name)
        made = as_name or name
        setup: dict[str, Any] = {"instance_type": one.work.home, "count": one.count} | dict(one.setup)
        created = self.box.clock.now - timedelta(days=60)
        with self.box.gate.unrecorded():
            self.box.add_endpoint(
                made, image=one.image, tags=one.tags if tags is None else tags, created=created, **setup
            )
        if one.autoscale:
            self.box.autoscale(made, *one.autoscale)
        if "*" not in one.without:
            past: dict[str, Any] = {"days": one.days, "gap": one.gap, "without": one.without} | metrics
            write_past(self.box, made, one.work, one.count, **past)
        if "Invocations" in one.without:
            write_backlog(self.box, made, one.work)
        self.works[made] = one.work
        return made

    def drive(self, name: str) -> None:
        """Let the endpoint go on serving as time passes."""
        self.box.load(name, self.works[name].served)

    def sweep(self, kind: str = "Daily") -> None:
        """A sweep, and everything that follows at once."""
        self.stack.fire(f"Sweep.{kind}")

    def pass_time(self, **span: float) -> None:
        """Let time go on."""
        let_pass(self.stack, timedelta(**span))

    def until_report(self) -> None:
        """Let time go on from Sunday morning until the weekly report is written; no change is under way to look at."""
        self.stack.quiet.add(TICK)
        self.box.clock.advance(timedelta(days=1, hours=3))
        self.stack.quiet.discard(TICK)

    def proposals(self, *states: ProposalState) -> list[Proposal]:
        """What the table holds, newest first."""
        with self.box.gate.unrecorded():
            return list(bootstrap.store().proposals(states))

    def recommendations(self) -> dict[str, Recommendation]:
        """The latest judgement of each endpoint."""
        with self.box.gate.unrecorded():
            return {one.ref.name: one for one in bootstrap.store().recommendations()}

    def message(self, endpoint: str) -> Message:
        """The newest message about the endpoint."""
        return [one for one in self.slack.messages if endpoint in one.text and one.blocks][-1]

    def click(self, endpoint: str, button: str, user: str = APPROVER, why: str | None = "") -> Any:
        """A person presses a button, and sends the form that asks why; with `why` None only the button is pressed."""
        request = self.slack.click(self.message(endpoint), button, user, self.box.clock.now)
        return self.answered(request, why)

    def answered(self, request: Mapping[str, Any], why: str | None = "") -> Any:
        """The answer to a click, or to the form that it opened."""
        open_before = len(self.slack.modals)
        answer = self.stack.invoke("respond", request, "url")
        self.slack.acknowledge(answer)
        asks = [one for one in self.slack.modals[open_before:] if one.view.get("callback_id")]
        if why is None or not asks:
            return answer
        answer = self.stack.invoke("respond", self.slack.submit(asks[0], self.box.clock.now, {"why": why}), "url")
        self.slack.acknowledge(answer)
        return answer

    def refused(self) -> list[Call]:
        """The requests that a role did not allow."""
        return [call for call in self.box.calls if call.error in DENIED]

    def writes(self, *services: str) -> list[Call]:
        """Writes to what serves."""
        return [call for call in self.box.calls.writes() if call.service in services]


@contextmanager
def scene(
    *, now: datetime = START, slack: bool = True, functions: Functions | None = None, **parameters: str
) -> Iterator[Scene]:
    """An empty account with the stack; `parameters` are the template's, `functions` run in place of the source."""
    with ExitStack() as held, listening(workspace := Workspace()) as address:
        box = held.enter_context(Sandbox(now=now, region=REGION))
        asked: dict[str, str] = dict(parameters)
        if slack:
            made = box.client("secretsmanager").create_secret(Name="slack", SecretString=workspace.secret())
            asked = {"SlackSecretArn": made["ARN"], "SlackChannel": CHANNEL, "Approvers": APPROVER} | asked
        invoker = held.enter_context(functions(box, asked)) if functions else None
        stack = Stack(box, ROOT / "template.yaml", parameters=asked, invoker=invoker)
        for name, function in stack.parts.functions.items():
            environment = {**function.environment, "RIGHTSIZER_SLACK_ENDPOINT": address}
            stack.parts.functions[name] = replace(function, environment=environment)
        ours = {k: v for k, v in stack.function("evaluate").environment.items() if k.startswith("RIGHTSIZER_")}
        with patch.dict(os.environ, ours), warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="aws_lambda_powertools")  # of metrics that nobody flushes here
            bootstrap.set_clock(lambda: box.clock.now)
            bootstrap.store()  # what the test reads the table by, whatever it changes of the environment
            workspace.clock = lambda: box.clock.now
            try:
                yield Scene(box, stack, workspace)
            finally:
                bootstrap.reset()


def _resident(name: str) -> Resident:
    (found,) = [one for one in residents() if one.name == name]
    return found


def states(found: Sequence[Proposal]) -> dict[str, ProposalState]:
    """State by endpoint."""
    return {one.ref.name: one.state for one in found}


__all__ = ["APPROVER", "AUTO", "BIG", "PROPOSE", "Scene", "scene", "states"]
