"""A new stack goes on with the table and the bucket that an earlier one left."""

import os
from unittest.mock import patch

from rightsizer import bootstrap
from rightsizer.aws import decisions
from rightsizer.domain.proposal import Decision, ProposalState
from sandbox.wiring import Stack
from tests.doors.scene import BIG, PROPOSE, ROOT, scene


def test_a_stack_that_adopts_carries_out_what_was_asked_before_it() -> None:
    with scene(slack=False) as at:
        at.add(BIG, tags=PROPOSE | {"rightsizer:p95-ms": "900"})
        at.drive(BIG)
        at.sweep()
        (asked,) = at.proposals()
        with at.box.gate.unrecorded():
            old = at.box.client("dynamodb").describe_table(TableName=bootstrap.settings().table)["Table"]
        bucket = bootstrap.settings().bucket
        at.stack.paused = True
        at.stack.quiet = {one.name for one in at.stack.parts.schedules}
        later = Stack(
            at.box,
            ROOT / "template.yaml",
            name="later",
            parameters={"AdoptTable": old["LatestStreamArn"], "AdoptBucket": bucket},
        )
        environment = later.function("apply").environment
        assert (environment["RIGHTSIZER_TABLE"], environment["RIGHTSIZER_BUCKET"]) == (old["TableName"], bucket)
        later.settle()
        ours = {key: value for key, value in environment.items() if key.startswith("RIGHTSIZER_")}
        with patch.dict(os.environ, ours):
            decision = Decision(ProposalState.APPROVED, "cli:ada", at.box.clock.now)
            with at.box.gate.unrecorded():
                decisions.decide(bootstrap.table(), asked.id, decision, at.box.clock.now)
            later.settle()
            (shown,) = at.proposals()
        assert shown.state is ProposalState.APPLYING
        assert [run.error for run in later.invocations if run.error] == []
        assert at.refused() == []
