"""Other doors that meet `apply`: evaluate and respond run, whole, between two of its requests to AWS.

Two endpoints: the change of one is approved and carried out, the other is asked about. At the n-th request of `apply`
the first endpoint is evaluated again, its approval is clicked once more, and the other proposal is rejected. All of it
is the deployed stack's own functions in one process, so a run is the same each time.
"""

import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from unittest.mock import patch

from bench.events import message
from rightsizer import bootstrap
from rightsizer.aws.journal import TableJournal
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.proposal import ProposalState, change_id_of
from sandbox.gate import Call
from sandbox.slack import Message
from tests.doors.scene import APPROVER, BIG, PROPOSE, Scene, scene, states

OTHER = "other-embeddings"
LIMITS = '{"probation_hours": 1}'
HOURS = 6


@dataclass
class Meeting:
    """One run: the other doors come at the n-th request of `apply`, or never."""

    at: Scene
    point: int
    asked: tuple[Message, Message]
    """Both questions as they were posted: a person may have them on the screen still."""
    seen: int = 0
    """Requests that `apply` has made."""
    met: str = ""
    """The request after which the other doors ran."""
    evaluated_at: datetime | None = None
    broken: list[str] = field(default_factory=list)
    writes: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)

    def answered(self, call: Call) -> None:
        """A request has its answer; of metrics, which threads of their own read, none is counted."""
        running = self.at.stack.invocations[-1].door
        if running != "apply" or call.operation == "GetMetricData" or self.met:
            return
        self.seen += 1
        if self.seen == self.point:
            self.met = f"{self.seen} {call.action}"
            try:
                self._others()
            except Exception as error:  # which `apply` would take for one of its own
                self.broken.append(f"the other doors raised {type(error).__name__}: {error}")

    def against(self, writes: Counter[str], rows: Counter[str]) -> list[str]:
        """What differs from the run without other doors: writes to what serves, kinds of rows; or that none came."""
        found = [] if self.met else ["no request reached it"]
        found += [f"it wrote {dict(self.writes)}, alone {dict(writes)}"] if self.writes != writes else []
        lost = rows - self.rows
        return [*found, f"rows are lost: {dict(lost)}"] if lost else found

    def _others(self) -> None:
        """The other doors, each whole; `apply` finds its own environment again, as in a process of its own."""
        now = self.at.box.clock.now
        look = {"endpoints": [BIG], "because": "light-sweep", "alarm": "", "at": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
        body = json.dumps({"kind": "look-at", **look, "key": f"meeting-{self.point}", "fleet": 2})
        with patch("rightsizer.flows.evaluate.ONCE_IN", timedelta(0)):  # else one that was judged lately is left out
            answer = self.at.stack.invoke("evaluate", {"Records": [message("m1", body)]})
        if answer["batchItemFailures"]:
            self.broken.append("the evaluation failed")
        self.evaluated_at = now
        for asked, button in zip(self.asked, ("Approve", "Snooze 7 days"), strict=True):
            request = self.at.slack.click(asked, button, APPROVER, now)
            if self.at.stack.invoke("respond", request, "url") != {"statusCode": 200, "body": ""}:
                self.broken.append(f"the click {button} was not answered")
        bootstrap.reset()
        bootstrap.set_clock(lambda: self.at.box.clock.now)


def lived(point: int) -> Meeting:
    """The run with the other doors at that request of `apply`; 0 is the run without them."""
    with scene(Limits=LIMITS) as at:
        for name in (BIG, OTHER):
            at.add(BIG, tags=PROPOSE, as_name=name)
        at.drive(BIG)
        at.sweep()
        run = Meeting(at, point, (deepcopy(at.message(BIG)), deepcopy(at.message(OTHER))))
        at.box.gate.after = run.answered
        at.click(BIG, "Approve")
        for _ in range(HOURS * 12):
            at.pass_time(minutes=5)
            if _change(at).is_closed:
                break
        at.box.gate.after = None
        at.pass_time(minutes=10)
        run.broken += _broken(run)
        run.writes, run.rows = served(at), rows(at)
    return run


def _change(at: Scene) -> Change:
    with at.box.gate.unrecorded():
        asked = next(one for one in bootstrap.store().proposals() if one.ref.name == BIG)
        found = TableJournal(at.box.client("dynamodb"), at.stack.parts.names["Table"]).load(change_id_of(asked))
    assert found is not None, "the approval began no change"
    return found


def _broken(run: Meeting) -> Iterator[str]:
    """Each law that does not hold, in a sentence."""
    at, change = run.at, _change(run.at)
    if change.state is not ChangeState.PROVEN:
        yield f"the change is {change.state.value}: {change.outcome or change.reason}"
    wanted = ProposalState.SNOOZED if run.met else ProposalState.PENDING
    shown = states(at.proposals())
    if shown != {BIG: ProposalState.PROVEN, OTHER: wanted}:
        yield f"the proposals are {shown}"
    newest = at.recommendations()[BIG].evaluated_at
    if run.evaluated_at is not None and newest < run.evaluated_at:
        yield f"the judgement of {run.evaluated_at} is lost: the newest is of {newest}"
    if change.before is None or change.plan.new_config != _runs(at):
        yield f"the endpoint runs {_runs(at)}, and was to run {change.plan.new_config}"
    if at.refused() or at.stack.dead_letters() or at.slack.triangles:
        yield f"refused {at.refused()}, dead letters {at.stack.dead_letters()}, {at.slack.triangles} triangles"
    failed = [one for one in at.stack.invocations if one.error is not None]
    if failed:
        yield f"invocations failed: {[(one.door, one.error) for one in failed]}"


def _runs(at: Scene) -> str:
    with at.box.gate.unrecorded():
        found: str = at.box.client("sagemaker").describe_endpoint(EndpointName=BIG)["EndpointConfigName"]
    return found


def served(at: Scene) -> Counter[str]:
    """Writes to what serves, by their action: those of the change."""
    return Counter(call.action for call in at.writes("sagemaker", "application-autoscaling", "cloudwatch"))


def rows(at: Scene) -> Counter[str]:
    """Rows of the table by the kind of their key."""
    with at.box.gate.unrecorded():
        pages = at.box.client("dynamodb").get_paginator("scan").paginate(TableName=at.stack.parts.names["Table"])
        return Counter(
            row["pk"]["S"].partition("#")[0] + " " + row["sk"]["S"] for page in pages for row in page["Items"]
        )
