"""The stack, deployed into the sandbox from its own template: rules, queues, streams, schedules, functions.

    with Sandbox() as box:
        stack = Stack(box, Path("template.yaml"))
        box.clock.advance(timedelta(hours=1))      # schedules fire, events arrive, queues drain

Handlers are called as Python, or as they were built (`sandbox.artefact`); everything between them is made from the
template: patterns, filters, batch sizes, retries, dead-letter queues; and each request of a function is judged by the
function's own role. Sources: the user guides of EventBridge, Lambda and Scheduler.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sandbox.account import Sandbox
from sandbox.cloudwatch.store import Sample
from sandbox.delivery import Delivery
from sandbox.deployed import ControlPlanes
from sandbox.doors import Roles
from sandbox.functions import Function, InProcess, Invocation, Invoker
from sandbox.schedule import next_fire
from sandbox.stackparts import Parts, Schedule, deploy, mappings
from sandbox.streams import StreamMapping
from sandbox.template import Template, matches

DURATION_MS = 400.0
"""What CloudWatch says each invocation took: simulated functions take no time, and a machine's own would differ."""
EMPTY_ROUNDS = 50
"""Rounds of deliveries at one moment before the stack is said to feed itself."""


@dataclass(slots=True)
class _Delivery:
    due: datetime
    number: int
    function: str | None
    queue: str | None
    source: str
    event: Any
    attempt: int = 1


class Stack:
    """A deployed stack. It takes part in the clock: what is due happens while time advances."""

    def __init__(
        self,
        box: Sandbox,
        template: Path | str = Path("template.yaml"),
        *,
        name: str = "rightsizer",
        parameters: Mapping[str, str] | None = None,
        invoker: Invoker | None = None,
        delivery: Delivery | None = None,
    ) -> None:
        self.box, self.name = box, name
        self.delivery = delivery or Delivery()
        pseudo = {
            "AWS::Region": box.region, "AWS::AccountId": box.account, "AWS::Partition": "aws",
            "AWS::StackName": name, "AWS::URLSuffix": "amazonaws.com",
        }  # fmt: skip
        self.template = Template(template, parameters or {}, pseudo)
        with box.gate.unrecorded():
            self.parts: Parts = deploy(box, self.template, name)
        self._give_roles()
        self.invoke_with: Invoker = invoker or InProcess(lambda: box.clock.now, box.region)
        self.invocations: list[Invocation] = []
        self.streams = [StreamMapping(box, mapping) for mapping in self.parts.streams]
        self._pending: list[_Delivery] = []
        self._number = 0
        self.paused = False
        """While True nothing is delivered, and nothing is lost."""
        self.deleted = False
        self.is_protected = False
        """Whether CloudFormation refuses to delete it (termination protection)."""
        self._due = {schedule.name: self._first(schedule) for schedule in self.parts.schedules}
        self.off: set[str] = set()
        """Doors whose function is switched off: Lambda throttles each call (reserved concurrency 0), and who calls
        retries and gives up as for any error. Source: Lambda developer guide, "Configuring reserved concurrency"."""
        self.quiet: set[str] = set()
        """Schedules that do not fire by themselves, to let days pass at little cost; `fire` still does."""
        self.planes = ControlPlanes(self)
        for service in ("cloudformation", "lambda", "scheduler"):
            box.world.offer(service, self.planes)
        box.world.listeners.append(self.route)
        box.world.alarms.actors.append(self._alarm_action)
        box.clock.drive(self)

    # what a test or the demo asks

    @property
    def failures(self) -> list[Invocation]:
        """Runs that ended with an error."""
        return [run for run in self.invocations if run.error is not None]

    def runs(self, door: str) -> list[Invocation]:
        """The runs of one door."""
        return [run for run in self.invocations if run.door == door]

    def function(self, door: str) -> Function:
        """The function of a door."""
        return next(function for function in self.parts.functions.values() if function.door == door)

    def invoke(self, door: str, event: Any, source: str = "test") -> Any:
        """Run a function and wait for it, as a Function URL or a person does; its exception is yours."""
        run = self._run(self.function(door), event, source)
        if run.error is not None:
            raise run.error
        return run.answer

    def redeploy(self, **parameters: str) -> None:
        """Update the stack: environments and roles follow the new parameters, functions start cold, resources stay."""
        before = (self.template.globals().get("Environment") or {}).get("Variables", {})
        self.template.change(parameters)
        after = (self.template.globals().get("Environment") or {}).get("Variables", {})
        changed = {key: str(value) for key, value in after.items() if before.get(key) != value}
        for name, function in self.parts.functions.items():
            self.parts.functions[name] = replace(function, environment={**function.environment, **changed})
        self._follow_streams()
        self._give_roles()
        self.invoke_with.cold()

    def delete(self) -> None:
        """Delete the stack: nothing runs any more; table and bucket stay, as the template retains them."""
        self.paused = self.deleted = True
        self.quiet = {schedule.name for schedule in self.parts.schedules}
        self._pending.clear()

    def _follow_streams(self) -> None:
        """An event source mapping of another stream is a new one, which reads from TRIM_HORIZON."""
        made = Parts(functions=self.parts.functions, queues=self.parts.queues)
        mappings(self.template, made)
        for number, source in enumerate(made.streams):
            if source.table != self.parts.streams[number].table:
                self.streams[number] = StreamMapping(self.box, source)
        self.parts.streams = made.streams

    def _give_roles(self) -> None:
        """The roles of the functions, by which requests are judged and IAM's simulation answers."""
        self.roles = Roles(self.box, self.template)
        for logical, function in self.parts.functions.items():
            if statements := self.roles.statements(function.door):
                self.box.world.iam.roles[f"{self.name}-{logical}Role"] = statements

    def fire(self, schedule: str) -> None:
        """Fire a schedule of the template now, such as ``Sweep.Daily``."""
        found = next(one for one in self.parts.schedules if one.name == schedule)
        self._fire(found, self.box.clock.now)
        self.settle()

    def dead_letters(self) -> list[Any]:
        """Bodies in all dead-letter queues."""
        return [json.loads(body) for queue in self.parts.dead_letter_queues for body in self.peek(queue)]

    def peek(self, queue: str) -> list[str]:
        """Bodies of the messages of a queue, by logical name, without taking them."""
        return [str(message.body) for message in self._moto_queue(queue).messages]

    # events

    def route(self, event: Mapping[str, Any]) -> None:
        """An event is on the bus: send it to the targets of each rule that matches."""
        for rule in self.parts.rules:
            if rule.enabled and matches(rule.pattern, event):
                for due in self.delivery.arrivals(self.box.clock.now):
                    self._queue_up(due, rule.function, rule.queue, rule.name, event)

    def _queue_up(self, due: datetime, function: str | None, queue: str | None, source: str, event: Any) -> None:
        self._number += 1
        self._pending.append(_Delivery(due, self._number, function, queue, source, event))

    def start(self, function: str, event: Any) -> None:
        """Invoke a function asynchronously: it runs when what runs now is done."""
        self._queue_up(self.box.clock.now, function, None, "asynchronous", event)

    def _alarm_action(self, action: str, document: Mapping[str, Any], direct: Mapping[str, Any]) -> None:
        now = self.box.clock.now
        for name, function in self.parts.functions.items():
            if function.arn == action:
                self._queue_up(now, name, None, "action", direct)
        if ":sns:" in action:
            with self.box.gate.unrecorded():
                self.box.client("sns").publish(TopicArn=action, Message=json.dumps(document), Subject="ALARM")

    # time

    def next_due(self, now: datetime) -> datetime | None:
        """The next schedule or late delivery; every minute while something waits for another attempt."""
        dues = [due for name, due in self._due.items() if name not in self.quiet]
        dues += [one.due for one in self._pending]
        if any(stream.blocked for stream in self.streams) or self._queues_hold_something():
            dues.append(now + timedelta(minutes=1))
        later = [due for due in dues if due is not None and due > now]
        return min(later, default=None)

    def happen(self, now: datetime) -> None:
        """Fire what is due, and let everything that follows from it run."""
        if self.paused:
            return
        for schedule in self.parts.schedules:
            due = self._due[schedule.name]
            if due is not None and due <= now:
                self._due[schedule.name] = next_fire(schedule.expression, self.box.clock.now, now)
                if schedule.name not in self.quiet:
                    self._fire(schedule, due)
        self.settle()

    def settle(self) -> None:
        """Deliver until nothing is due: targets, queues and streams, round after round."""
        for _ in range(EMPTY_ROUNDS):
            busy = self._deliver_due()
            busy = self._drain_queues() or busy
            busy = any([stream.deliver(self._stream_batch) for stream in self.streams]) or busy
            if not busy:
                return
        raise RuntimeError(f"{self.name} still had work after {EMPTY_ROUNDS} rounds at one moment: it feeds itself")

    def _first(self, schedule: Schedule) -> datetime | None:
        return next_fire(schedule.expression, self.box.clock.now, self.box.clock.now)

    def _fire(self, schedule: Schedule, due: datetime) -> None:
        text = schedule.input.replace("<aws.scheduler.scheduled-time>", due.strftime("%Y-%m-%dT%H:%M:%SZ"))
        event = json.loads(text.replace("<aws.scheduler.execution-id>", self.box.world.unique()))
        for arrives in self.delivery.arrivals(self.box.clock.now):
            self._queue_up(arrives, schedule.function, None, schedule.name, event)

    # deliveries

    def _deliver_due(self) -> bool:
        now = self.box.clock.now
        due = sorted((one for one in self._pending if one.due <= now), key=lambda one: (one.due, one.number))
        self._pending = [one for one in self._pending if one.due > now]
        for one in due:
            if one.queue is not None:
                self._send(one.queue, json.dumps(one.event))
            elif one.function is not None:
                self._asynchronous(one)
        return bool(due)

    def _asynchronous(self, one: _Delivery) -> None:
        """An asynchronous invocation: two more attempts by default, then the on-failure queue."""
        assert one.function is not None
        function = self.parts.functions[one.function]
        run = self._run(function, one.event, one.source)
        if run.error is None:
            return
        if one.attempt <= function.retries:
            one.due, one.attempt = self.box.clock.now + timedelta(minutes=one.attempt), one.attempt + 1
            self._pending.append(one)
            return
        self._bury(one.event, run.error)

    def _bury(self, event: Any, error: BaseException) -> None:
        if self.parts.on_failure:
            body = {
                "requestPayload": event,
                "responsePayload": {"errorMessage": str(error), "errorType": type(error).__name__},
            }
            self._send(self.parts.on_failure, json.dumps(body, default=str))

    def _run(self, function: Function, event: Any, source: str) -> Invocation:
        run = Invocation(self.box.clock.now, function.door, source, event)
        self.invocations.append(run)
        for metric, value in (("Invocations", 1.0), ("Duration", DURATION_MS)):
            name = {"FunctionName": function.name}
            self.box.world.metrics.add("AWS/Lambda", metric, name, self.box.clock.now, Sample.even(value))
        if function.door in self.off:
            run.error = RuntimeError("TooManyRequestsException: Rate Exceeded.")
            return run
        before = len(self.box.calls)
        try:
            copy = json.loads(json.dumps(event, default=str))
            with self.roles.assumed(function.door):
                run.answer = self.invoke_with(function, copy, self.box.world.unique())
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            run.error = error
        run.calls = self.box.calls[before:]
        return run

    # queues

    def _send(self, queue: str, body: str) -> None:
        with self.box.gate.unrecorded():
            self.box.client("sqs").send_message(QueueUrl=self.parts.queues[queue], MessageBody=body)

    def _moto_queue(self, queue: str) -> Any:
        from moto.sqs.models import sqs_backends

        name = self.parts.queues[queue].rpartition("/")[2]
        return sqs_backends[self.box.account][self.box.region].queues[name]

    def _queues_hold_something(self) -> bool:
        return any(self._moto_queue(mapping.queue).messages for mapping in self.parts.queue_mappings)

    def _drain_queues(self) -> bool:
        """One batch of each mapped queue; messages that failed stay, and are tried again a minute later."""
        busy = False
        for mapping in self.parts.queue_mappings:
            url = self.parts.queues[mapping.queue]
            messages = mapping.take(self.box, url)
            if not messages:
                continue
            busy = True
            function = self.parts.functions[mapping.function]
            event = {"Records": [mapping.record(self.box, message, self.template) for message in messages]}
            run = self._run(function, event, mapping.queue)
            failed = _failed_items(run, [message["MessageId"] for message in messages])
            mapping.settle(self.box, url, messages, failed)
        return busy

    def _stream_batch(self, function: str, source: str, records: list[Any]) -> set[str]:
        run = self._run(self.parts.functions[function], {"Records": records}, source)
        return _failed_items(run, [str(record["dynamodb"]["SequenceNumber"]) for record in records])


def _failed_items(run: Invocation, everything: list[str]) -> set[str]:
    """ReportBatchItemFailures: what is to be delivered again. An error, or an answer that cannot be read, means all.

    Source: Lambda developer guide, services-sqs-errorhandling: an unknown itemIdentifier fails the whole batch.
    """
    if run.error is not None:
        return set(everything)
    answer = run.answer if isinstance(run.answer, dict) else {}
    named = [row.get("itemIdentifier") for row in answer.get("batchItemFailures") or []]
    return set(everything) if any(one not in everything for one in named) else {str(one) for one in named}
