"""Deletion in two steps: marked after an approval, watched, handed over with the file that brings it back."""

import json
import shlex
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from rightsizer.domain.change import ChangeState
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.proposal import ProposalState
from rightsizer.recommender.proposal import ChangePermission, permission_for_option
from sandbox.sagemaker.load import Served
from tests.changing import scenarios
from tests.changing.world import MONDAY, NAME, NEW_TYPE, OLD_TYPE, World, an_option, steady, world

DELETE = an_option(kind=OptionKind.DELETE, target=Target(OLD_TYPE, 0), in_place=False)
THREE_DAYS = ChangeLimits(grace=timedelta(days=3), rewire_alarms=True)


def written(w: World) -> list[str]:
    return [c.action for c in w.box.calls if c.writes and c.service != "dynamodb"]


def test_an_idle_endpoint_is_handed_over_with_the_command_and_nothing_was_written() -> None:
    with world(DELETE, limits=THREE_DAYS, load=steady(requests=0), seed=scenarios.autoscaled) as w:
        w.start()
        change = w.run(24 * 6)
        done, status, shown = written(w), w.box.status(NAME), w.shown().state
        told, booked = w.told[-1], list(w.ledger.entries(MONDAY, w.now + timedelta(days=1)))
    assert change.state is ChangeState.HANDED_OVER
    assert change.remaining == (f"aws sagemaker delete-endpoint --region eu-west-1 --endpoint-name {NAME}",)
    assert (done, status, shown) == ([], "InService", ProposalState.HANDED_OVER)
    assert told[0] == f"{NAME}: idle, and ready to be deleted by its owner"
    assert "no request in the 3 days since it was marked" in told[1]
    assert "#!/bin/sh -e" in told[1]
    assert booked == []


def test_the_restore_file_makes_the_same_endpoint_again() -> None:
    with world(DELETE, limits=THREE_DAYS, load=steady(requests=0), seed=scenarios.autoscaled, count=2) as w:
        before = w.apply.changer.scaling(NAME, ["AllTraffic"])
        w.start()
        lines = w.run(24 * 6).plan.restore_file
        w.box.remove_endpoint(NAME)
        for line in lines:
            if line.startswith("aws ") and " wait " not in line:  # the line of the alarm: test_lines.py
                _, service, verb, _, region, _, body = shlex.split(line)
                assert region == w.box.region
                with w.box.gate.unrecorded():
                    getattr(w.box.client(service), verb.replace("-", "_"))(**json.loads(body))
                w.box.clock.advance(timedelta(minutes=30))
        live, after = w.live(), w.apply.changer.scaling(NAME, ["AllTraffic"])
        tags = w.apply.changer.tags(w.proposal.ref)
    assert live["EndpointConfigName"] == f"{NAME}-config"
    assert live["ProductionVariants"][0]["DesiredInstanceCount"] == 2
    assert tags["rightsizer:mode"] == "propose"
    assert [(t.minimum, t.maximum, len(t.policies), len(t.scheduled)) for t in after] == [
        (t.minimum, t.maximum, len(t.policies), len(t.scheduled)) for t in before
    ]


def test_one_request_during_the_wait_keeps_the_endpoint() -> None:
    def late(at: datetime, instance_type: str, count: int) -> Served:
        return Served(1 if at == MONDAY + timedelta(hours=30) else 0, latency_ms=100)

    with world(DELETE, limits=THREE_DAYS, load=late) as w:
        w.start()
        change = w.run(24 * 6)
        assert written(w) == []
    assert change.state is ChangeState.ROLLED_BACK
    assert change.outcome == f"{NAME} stays: 1 requests came after it was marked for deletion, so it is in use"


def test_silence_without_utilisation_is_unknown_and_deletes_nothing() -> None:
    unknown: Any = None

    def dark(at: datetime, instance_type: str, count: int) -> Served:
        return Served(0, latency_ms=100, gpu=None, gpu_memory=None, cpu=unknown, memory=unknown)

    with world(DELETE, limits=THREE_DAYS, load=dark) as w:
        w.start()
        change = w.run(24 * 6)
    assert change.state is ChangeState.ROLLED_BACK
    assert "missing is not idle" in change.outcome


def test_an_owner_may_approve_a_deletion_and_sees_what_it_means() -> None:
    option = an_option(
        kind=OptionKind.DELETE, target=Target(OLD_TYPE, 0), in_place=False, saving_usd_per_month=Decimal(9)
    )
    assert permission_for_option(option, ChangePermission(True, "")).approvable
    assert not permission_for_option(option, ChangePermission(False, "its tag is absent")).approvable


def test_a_request_to_the_second_variant_alone_keeps_an_endpoint_of_two() -> None:
    other = {"VariantName": "Second", "InstanceType": NEW_TYPE, "InitialInstanceCount": 1}
    kind: dict[str, Any] = {"kind": EndpointKind.MULTI_VARIANT, "more_variants": (other,), "limits": THREE_DAYS}

    def second(at: datetime, instance_type: str, count: int) -> Served:
        called = instance_type == NEW_TYPE and at == MONDAY + timedelta(hours=30)
        return Served(10 if called else 0, latency_ms=100)

    with world(DELETE, load=second, **kind) as w:
        w.start()
        used = w.run(24 * 6)
    with world(DELETE, load=steady(requests=0), **kind) as w:
        w.start()
        silent = w.run(24 * 6)
    assert (used.state, silent.state) == (ChangeState.ROLLED_BACK, ChangeState.HANDED_OVER)
