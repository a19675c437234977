"""The account of a run in which a decision is lost: what is known of it, and what people and evaluations do in it."""

import json
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from rightsizer import bootstrap
from rightsizer.aws import decisions
from rightsizer.aws.journal import TableJournal
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.table import Table
from rightsizer.domain.change import Change
from rightsizer.domain.option import Risk, Target
from rightsizer.domain.proposal import Decision, Proposal, ProposalState, change_id_of
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding, Gate
from sandbox.account import Sandbox
from sandbox.wiring import Stack
from tests import samples
from tests.doors.scene import TICK, let_pass
from tests.table import decide

ROOT = Path(__file__).parents[2]
START = datetime(2026, 11, 2, 9, 1, tzinfo=UTC)
NAME, OLD, NEW = "chat", "ml.g5.4xlarge", "ml.g5.xlarge"
IMAGE = f"111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat@sha256:{'0' * 64}"
LIMITS, OTHER_LIMITS = '{"probation_hours": 1}', '{"probation_hours": 1, "proof_requests": 300}'
WHO = ("a person", "automatic mode", "a person, who then goes back")
ALLOWS, UNREAD = "allows", "unreadable"
AGAINST: Mapping[str, Mapping[str, Any]] = {
    "under-provisioned": {
        "finding": Finding.UNDER_PROVISIONED,
        "reason": Reason(Code.UNDER_PROVISIONED, "requests wait for 4 s"),
        "options": (),
    },
    "risk too high": {
        "gate": Gate.SILENT,
        "gate_reason": Reason(Code.RISK_TOO_HIGH, "performance risk 4 is above 3: too likely to harm"),
        "options": (samples.option(target=Target(NEW, 1), risk=Risk.VERY_HIGH),),
    },
    "late budget spent": {
        "gate": Gate.SILENT,
        "gate_reason": Reason(Code.LATE_BUDGET_SPENT, "nothing gets smaller until it is at most 1.5 times"),
    },
    "test first": {
        "gate": Gate.TEST,
        "gate_reason": Reason(Code.TEST_WORTH_IT, "only 60 % likely fast enough"),
        "options": (samples.option(target=Target(NEW, 1), test_usd=Decimal(20)),),
    },
}
"""Judgements that forbid what was approved, by their name."""
JUDGED = ("", ALLOWS, *AGAINST, UNREAD)
"""What an evaluation after the decision says, by the seed; the last one in a form that this release cannot read."""
AFTER = timedelta(minutes=70)
"""Ticks that follow a fault; a change of one instance needs less."""
TURNS = frozenset({"UpdateEndpoint", "UpdateEndpointWeightsAndCapacities"})


@contextmanager
def deployed(*, untagged: bool = False) -> Iterator[tuple[Sandbox, Stack]]:
    """An account with the endpoint and the stack, of which only the ticks of `apply` come by themselves."""
    with Sandbox(now=START) as box:
        may = "tagged-and-untagged" if untagged else "tagged"
        given = {"Limits": LIMITS, "MayChange": may, "Approvers": "U1"}
        stack = Stack(box, ROOT / "template.yaml", parameters=given)
        stack.quiet |= {s.name for s in stack.parts.schedules} - {TICK}
        stack.off |= {"evaluate"}  # what an evaluation says is played
        with box.gate.unrecorded():
            box.add_endpoint(NAME, OLD, 1, tags={} if untagged else {"rightsizer:mode": "auto"}, image=IMAGE)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="aws_lambda_powertools")  # of metrics that nobody flushes here
            try:
                yield box, stack
            finally:
                bootstrap.reset()


@dataclass
class Ground:
    """The account and the stack, whatever is decided in them."""

    box: Sandbox
    stack: Stack
    dice: random.Random
    table: Table
    journal: TableJournal
    healed: ExitStack
    """Takes away what replaces a part of the program's surroundings."""
    backup: str = field(default="", kw_only=True)
    restored_at: datetime | None = field(default=None, kw_only=True)
    narrowed: bool = field(default=False, kw_only=True)
    """Whether the stack may change less now than in the beginning."""
    asked_back: bool = field(default=False, kw_only=True)
    broken: list[str] = field(default_factory=list, kw_only=True)

    @property
    def now(self) -> datetime:
        return self.box.clock.now

    def wait(self, **span: float) -> None:
        let_pass(self.stack, timedelta(**span))

    def told(self) -> list[str]:
        """Subjects of what the topic got."""
        return [str(c.params.get("Subject")) for c in self.box.calls.of("sns", "Publish") if c.error is None]

    def meddle(self, deed: Callable[[], object]) -> None:
        """What is not the program's: nothing is recorded or refused; what follows from it comes with the clock."""
        with self.box.gate.unrecorded():
            deed()


@dataclass
class Run(Ground):
    """The account of a decision on an endpoint, and what is known to have happened."""

    proposal: Proposal
    store: Recommendations
    who: str
    old: str
    judged: str = field(default="", kw_only=True)
    """What the newest evaluation says, whether or not the table still holds it."""

    def shown(self) -> Proposal:
        found = self.store.proposal(self.proposal.id)
        assert found is not None
        return found

    def change(self) -> Change | None:
        return self.journal.load(change_id_of(self.proposal))

    def decide(self) -> None:
        """The decision that may be lost."""
        if self.who == "automatic mode":
            decision = Decision(ProposalState.APPROVED, "policy", self.now)
            approved = replace(self.proposal, state=ProposalState.APPROVED, decision=decision, created_at=self.now)
            self.store.save(approved.recommendation, approved)
        elif self.who == "a person":
            decide(self.store, self.proposal.id, Decision(ProposalState.APPROVED, "slack:U1", self.now), self.now)
        else:
            decisions.request_rollback(self.table, self.proposal.id, "slack:U1", self.now)
            self.asked_back = True

    def judge(self, judged: str) -> None:
        """An evaluation after the decision."""
        if not judged:
            return
        self.judged = judged
        fields: dict[str, Any] = {"evaluated_at": self.now, **AGAINST.get(judged, {})}
        self.store.save(replace(self.proposal.recommendation, **fields), None)
        if judged == UNREAD:
            client, key = self.box.client("dynamodb"), {"pk": {"S": f"ENDPOINT#{NAME}"}, "sk": {"S": "RECOMMENDATION"}}
            item = client.get_item(TableName=self.table.name, Key=key)["Item"]
            item["doc"] = {"S": json.dumps(json.loads(item["doc"]["S"]) | {"schema": 99})}
            client.put_item(TableName=self.table.name, Item=item)

    def judge_again(self) -> None:
        """The next daily evaluation, by this release: it says what the last one said, or allows."""
        self.judge(self.judged if self.judged in AGAINST else ALLOWS)
