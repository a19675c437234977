"""An approved errand of which an event is lost: the policy of an Auto Scaling group, and the laws after it.

    [row] = ...  lost(Case("an errand, and the table is restored", seed=7))

The place and the seed are those of `tests.faults.lost`: the seed chooses who decides, when the fault begins, and
whether a person takes the policy back meanwhile.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rightsizer.aws import decisions
from rightsizer.aws.capacity_changes import CapacityChangeTable
from rightsizer.aws.journal import TableJournal
from rightsizer.aws.message_book import Messages
from rightsizer.aws.proposals import Proposals
from rightsizer.aws.table import Table
from rightsizer.domain.capacity_change import CapacityChange, GroupPolicy
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.reason import Code, Reason
from rightsizer.errors import InputError
from rightsizer.flows.change_capacity import request_rollback
from sandbox.gate import Call
from sandbox.spot import add_spot
from sandbox.spot_groups import SimGroup
from tests.faults.lost_places import Place
from tests.faults.lost_run import AFTER, Ground, deployed

GROUP, ERRAND = "gpu", "e-1"
UNWRITTEN = frozenset({ProposalState.WITHDRAWN, ProposalState.EXPIRED})


@dataclass
class ErrandRun(Ground):
    """The account of an errand, and what is known to have happened."""

    group: SimGroup
    book: CapacityChangeTable
    old: dict[str, Any]
    new: dict[str, Any]
    by: str

    def shown(self) -> CapacityChange:
        found = self.book.load(ERRAND)
        assert found is not None
        return found

    def ask(self) -> None:
        """Somebody is asked, or the policy decides at once."""
        by_policy = self.by == "policy"
        made = CapacityChange(
            ERRAND,
            GROUP,
            "ml",
            GroupPolicy(GROUP, self.old, self.new),
            "gpu can use more pools",
            Reason(Code.MORE_POOLS, "two types are steadier than one"),
            self.now,
            self.now + timedelta(days=14),
            ProposalState.APPROVED if by_policy else ProposalState.PENDING,
            approvable=True,
            decision=Decision(ProposalState.APPROVED, "policy", self.now) if by_policy else None,
        )
        assert self.book.add(made)

    def decide(self) -> None:
        """The decision that may be lost."""
        if self.by == "policy":
            self.ask()
        else:
            decisions.decide(self.table, ERRAND, Decision(ProposalState.APPROVED, self.by, self.now), self.now)

    def take_back(self) -> None:
        """A person wants the old policy back, where the new one was sent."""
        try:
            request_rollback(self.book, ERRAND, "cli:me", self.now)
        except InputError:
            return  # nothing was sent yet
        self.asked_back = True


def lost_errand(place: Place, dice: random.Random) -> list[str]:
    """The laws that broke in this run, a sentence each."""
    with deployed() as (box, stack), ExitStack() as healed:
        client, name = box.client("dynamodb"), stack.parts.names["Table"]
        with box.gate.unrecorded():
            group = add_spot(box).group(GROUP)
        table, old = Table(client, name), group.mixed
        template = old["LaunchTemplate"] | {"Overrides": [{"InstanceType": "g5.xlarge"}, {"InstanceType": "g6.xlarge"}]}
        run = ErrandRun(
            box, stack, dice, table, TableJournal(client, name), healed,
            group=group, book=CapacityChangeTable(table), old=old, new=old | {"LaunchTemplate": template},
            by=dice.choice(("slack:U1", "policy")),
        )  # fmt: skip
        box.gate.after = lambda call: _watch(run, call)
        began, lasts = dice.choice((-2, 0, 1, 3, 8)), dice.choice(place.lasts)
        back, when = dice.random() < 0.5, dice.random()
        if run.by != "policy":
            run.meddle(run.ask)
            run.wait(minutes=2)
        _decided(run, place, began)
        run.wait(minutes=1 + when * lasts)
        if back:
            run.meddle(run.take_back)
        run.wait(minutes=max(lasts - when * lasts, 1))
        run.meddle(lambda: place.ends(run))
        box.clock.advance(AFTER)
        run.meddle(lambda: Proposals(table).tell_again(run.now, everything=True))
        stack.settle()
        with box.gate.unrecorded():
            return [*run.broken, *(said for law in LAWS for said in law(run))]


def _decided(run: ErrandRun, place: Place, began: int) -> None:
    """The decision, and the fault so many minutes after it, or before it."""
    first, second = (lambda: place.begins(run)), run.decide
    if began >= 0:
        first, second = second, first
    run.meddle(first)
    run.wait(minutes=abs(began))
    run.meddle(second)


def _watch(run: ErrandRun, call: Call) -> None:
    """Nothing forward is written where nothing may change, or of what was decided before the table was made."""
    if call.operation != "UpdateAutoScalingGroup" or call.error is not None or run.group.mixed != run.new:
        return
    if run.narrowed:
        run.broken.append(f"{call.action} at {run.now:%H:%M}, forward in a stack that may change nothing")
    if run.restored_at is None:
        return
    with run.box.gate.unrecorded():
        decision = run.shown().decision
    if decision is not None and decision.at < run.restored_at:
        run.broken.append(f"{call.action} at {run.now:%H:%M}, approved before the table was restored")


def every_errand_ends(run: ErrandRun) -> Iterator[str]:
    """Sent, withdrawn with a reason and told, or expired and told; one that a backup does not hold is asked anew."""
    found = run.book.load(ERRAND)
    if found is None or found.state is ProposalState.PENDING:
        if not run.backup:
            yield "the approval of the errand is gone"
        return
    if found.state is ProposalState.APPROVED:
        yield "the errand is approved, and nobody carries it out"
    if found.state in UNWRITTEN and not found.outcome:
        yield f"the errand is {found.state.value} without a reason"
    if found.state in UNWRITTEN and f"{GROUP}: {found.state.value}" not in run.told():
        yield f"the errand is {found.state.value}, and nobody was told"


def the_policy_is_what_the_errand_says(run: ErrandRun) -> Iterator[str]:
    """New where it is watched or proven, old where it was not written or went back; a backup may know less."""
    found = run.book.load(ERRAND)
    if run.group.mixed not in (run.old, run.new):
        yield "the policy of the group is neither the old nor the new one"
    if found is None or run.backup:
        return
    stands = found.state in (ProposalState.PROVEN, ProposalState.APPLYING)
    if stands != (run.group.mixed == run.new):
        yield f"the errand is {found.state.value}, and the group has the {'old' if stands else 'new'} policy"


def every_order_is_taken(run: ErrandRun) -> Iterator[str]:
    """Who asked for the rollback gets it; one that a backup does not hold was never asked."""
    found = run.book.load(ERRAND)
    if found is None or not run.asked_back or (run.backup and found.back is None):
        return
    if run.group.mixed != run.old:
        yield "somebody asked for the rollback of the errand, and nobody took it"


def every_message_shows_how_it_stands(run: ErrandRun) -> Iterator[str]:
    """What people see is the state of the errand, whatever was lost on the way."""
    found, message = run.book.load(ERRAND), Messages(run.table).message(ERRAND)
    if found is not None and (message is None or not message.shown.startswith(f"{found.state.value}|")):
        yield f"the errand is {found.state.value}, and its message shows {message.shown if message else 'nothing'!r}"


LAWS: tuple[Callable[[ErrandRun], Iterator[str]], ...] = (
    every_errand_ends,
    the_policy_is_what_the_errand_says,
    every_order_is_taken,
    every_message_shows_how_it_stands,
)
