"""Where a decision is lost in a deployed stack: what begins, how long it lasts, what ends it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient
from botocore.exceptions import ClientError, ReadTimeoutError

from rightsizer.flows.orders import Orders
from tests.faults.lost_run import LIMITS, OTHER_LIMITS, Ground


def _journal_throttled(run: Ground) -> None:
    for operation in ("PutItem", "TransactWriteItems"):
        run.box.gate.fail(
            "dynamodb", operation, "ThrottlingException", times=10**6, where=lambda p: "CHANGE#" in str(p)
        )


def _nothing_read(run: Ground) -> None:
    run.box.gate.fail("dynamodb", "GetItem", "InternalServerError", times=10**6)


def _healed(run: Ground) -> None:
    run.box.gate.heal()


def _off(*doors: str) -> Callable[[Ground], None]:
    def switch(run: Ground) -> None:
        run.stack.off |= set(doors)
        run.stack.quiet |= {"Apply.Tick"} if "apply" in doors else set()  # each would be throttled, and retried twice

    return switch


def _on(run: Ground) -> None:
    run.stack.off.clear()
    run.stack.quiet.discard("Apply.Tick")


def _backed_up(run: Ground) -> None:
    client = run.box.client("dynamodb")
    run.backup = client.create_backup(TableName=run.table.name, BackupName="before")["BackupDetails"]["BackupArn"]


def _restored(run: Ground) -> None:
    """All rows are those of the backup, in a new table of the same name, and no stream tells of it."""
    client, name = run.box.client("dynamodb"), run.table.name
    client.delete_table(TableName=name)
    client.restore_table_from_backup(TargetTableName=name, BackupArn=run.backup)
    kept = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    client.update_table(TableName=name, StreamSpecification=kept)
    for stream in run.stack.streams:
        stream.begin_anew()
    run.restored_at = run.now


def _killed(run: Ground) -> None:
    """The update of the stack ends an invocation in the middle."""
    run.box.gate.kill(run.dice.randint(1, 6), after=run.dice.random() < 0.5)


def _updated(run: Ground) -> None:
    run.box.gate.heal()
    run.stack.redeploy(Limits=OTHER_LIMITS)


def _rolled_back(run: Ground) -> None:
    _updated(run)
    run.stack.redeploy(Limits=LIMITS)


def _narrowed(to: str) -> Callable[[Ground], None]:
    def narrow(run: Ground) -> None:
        run.stack.redeploy(MayChange=to)
        run.narrowed = True

    return narrow


def _widened_or_not(to: str) -> Callable[[Ground], None]:
    def perhaps(run: Ground) -> None:
        if run.dice.random() < 0.5:
            run.stack.redeploy(MayChange=to)
            run.narrowed = False

    return perhaps


def _answer(kind: str, update: str = "UpdateEndpoint") -> Callable[[Ground], None]:
    """From now on the first such update is refused, or its answer is lost, and somebody freezes then.

    ``unanswered``: AWS may have got it, by the seed.
    """

    def begin(run: Ground) -> None:
        call: Any = vars(BaseClient)["_make_api_call"]
        reached, met = run.dice.random() < 0.5, list[str]()

        def lossy(self: Any, operation: str, params: Any) -> Any:
            if operation != update or met:
                return call(self, operation, params)
            met.append(operation)
            with run.box.gate.unrecorded():
                Orders(run.journal).freeze("U1", run.now)
            if kind == "refused":
                raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, operation)
            if reached:
                call(self, operation, params)
            raise ReadTimeoutError(endpoint_url=self.meta.endpoint_url)

        run.healed.enter_context(patch.object(BaseClient, "_make_api_call", lossy))

    return begin


def _answered(run: Ground) -> None:
    run.healed.close()
    Orders(run.journal).thaw("U1", run.now)


def _errand_throttled(run: Ground) -> None:
    run.box.gate.fail(
        "dynamodb", "PutItem", "ThrottlingException", times=10**6, where=lambda p: "PROPOSAL#e-" in str(p)
    )


@dataclass(frozen=True)
class Place:
    """Where something is lost: what begins, how long it lasts, what ends it."""

    begins: Callable[[Ground], None]
    ends: Callable[[Ground], None]
    lasts: tuple[float, ...]
    """Minutes, one of them by the seed."""
    late: bool = True
    """Whether it may begin after the decision."""
    untagged: bool = False
    """Whether the endpoint has no tag, in a stack that may change such endpoints."""


DECISIONS: dict[str, Place] = {
    "the stream gives up": Place(_journal_throttled, _healed, (9, 20, 45)),
    "the queue's dead letters": Place(_nothing_read, _healed, (9, 20, 45)),
    "apply is off for a day": Place(_off("apply"), _on, (60 * 24,)),
    "apply is off for eight days": Place(_off("apply"), _on, (60 * 24 * 8,)),
    "apply and propose are off": Place(_off("apply", "propose"), _on, (65, 120)),
    "propose is off for three days": Place(_off("propose"), _on, (60 * 24 * 3,)),
    "the table is restored": Place(_backed_up, _restored, (1, 6, 12, 30, 90)),
    "the stack is updated": Place(_killed, _updated, (3, 10)),
    "the stack is rolled back": Place(_killed, _rolled_back, (3, 10)),
    "MayChange is narrowed to nothing": Place(_narrowed("nothing"), _widened_or_not("tagged"), (30, 120)),
    "MayChange is narrowed to tagged": Place(
        _narrowed("tagged"), _widened_or_not("tagged-and-untagged"), (30, 120), untagged=True
    ),
    "the update's answer is lost": Place(_answer("unanswered"), _answered, (20, 90, 180)),
    "the update is refused": Place(_answer("refused"), _answered, (20, 90, 180)),
}
"""Those in which the decision is about an endpoint."""


def _at_once(*deeds: Callable[[Ground], None]) -> Callable[[Ground], None]:
    def all_of_them(run: Ground) -> None:
        for deed in deeds:
            deed(run)

    return all_of_them


OFF_AND_RESTORED = Place(_at_once(_backed_up, _off("apply")), _at_once(_restored, _on), (60 * 24,))

ERRANDS: dict[str, Place] = {
    "an errand, and the stream gives up": Place(_errand_throttled, _healed, (9, 20, 45)),
    "an errand, and the dead letters": Place(_nothing_read, _healed, (9, 20, 45)),
    "an errand, and apply is off for a day": Place(_off("apply"), _on, (60 * 24,)),
    "an errand, and apply is off for eight days": Place(_off("apply"), _on, (60 * 24 * 8,)),
    "an errand, and the table is restored": Place(_backed_up, _restored, (1, 6, 12, 30, 90)),
    "an errand, and MayChange is narrowed": Place(_narrowed("nothing"), _widened_or_not("tagged"), (30, 120)),
    "an errand, and the stack is updated": Place(_killed, _updated, (3, 10)),
    "an errand, and propose is off": Place(_off("propose"), _on, (60 * 24 * 3,)),
    "an errand, and the update's answer is lost": Place(
        _answer("unanswered", "UpdateAutoScalingGroup"), _answered, (20, 90, 180)
    ),
}
"""Those in which the decision is about the policy of an Auto Scaling group."""
