"""The scale-in policy of managed instance scaling: a clone with that one property, by approval and a grant alone."""

import json
import shlex
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.option import ScaleIn
from rightsizer.domain.reason import Code
from rightsizer.errors import InputError
from rightsizer.flows.orders import Orders
from sandbox.sagemaker.deployment import Ending
from tests.changing import scenarios
from tests.changing.world import NAME, World, others, world
from tests.faults.drive import scenario_world

SCENARIO = scenarios.SCALE_IN
UNGRANTED = replace(SCENARIO, seed=scenarios.components)


def variant(w: World) -> Any:
    (row,) = w.box.world.fleet.config(w.box.config_name(NAME)).request["ProductionVariants"]
    return row


def differing(w: World) -> dict[str, Any]:
    """What of the configuration is other than before, by its member."""
    old = w.box.world.fleet.config(f"{NAME}-config").request
    new = w.box.world.fleet.config(w.box.config_name(NAME)).request
    rows: dict[str, Any] = {k: new.get(k) for k in {*old, *new} if old.get(k) != new.get(k)}
    (was,), (now,) = old["ProductionVariants"], rows.pop("ProductionVariants")
    rows.pop("EndpointConfigName")
    assert rows.pop("MetricsConfig") == {
        "EnableEnhancedMetrics": False,
        "EnableDetailedObservability": False,
    }  # said out
    return rows | {k: now.get(k) for k in {*was, *now} if was.get(k) != now.get(k)}


def written(w: World) -> list[str]:
    return [c.action for c in w.box.calls.writes() if c.service != "dynamodb"]


def test_the_new_configuration_differs_in_the_policy_alone_and_the_fleet_keeps_its_counts() -> None:
    with scenario_world(SCENARIO) as w:
        w.start()
        w.scale(3)
        w.box.clock.advance(timedelta(minutes=10))
        change = w.run(12)
        policy = {"Strategy": "CONSOLIDATION", "MaximumStepSize": 1, "CooldownInMinutes": 30}
        assert change.state is ChangeState.PROVEN, change.outcome
        assert differing(w) == {"ManagedInstanceScaling": {**scenarios.MANAGED, "ScaleInPolicy": policy}}
        assert w.box.counts(NAME) == {"AllTraffic": 3}


def test_the_way_back_is_the_old_configuration_with_the_counts_of_now() -> None:
    with scenario_world(SCENARIO) as w:
        w.start()
        assert w.run(12).state is ChangeState.PROVEN
        w.scale(3)
        w.box.clock.advance(timedelta(minutes=10))
        Orders(w.journal).request_rollback(w.change.id, "U1", w.now)
        change = w.run(6)
        assert change.state is ChangeState.ROLLED_BACK, change.outcome
        assert w.box.config_name(NAME) == f"{NAME}-config"
        assert w.box.counts(NAME) == {"AllTraffic": 3}


def test_an_alarm_of_the_deployment_ends_old() -> None:
    with scenario_world(SCENARIO) as w:
        w.box.script_deployment(NAME, Ending.ALARM)
        w.start()
        change = w.run(12)
        assert change.state is ChangeState.ROLLED_BACK
        assert change.failure.value == "alarm"
        assert "ScaleInPolicy" not in variant(w)["ManagedInstanceScaling"]


def refused(change: Change) -> str:
    assert change.state is ChangeState.REFUSED, change.outcome
    assert change.reason is not None
    assert change.reason.code is Code.PERMISSION_MISSING
    return change.outcome


def test_without_the_grant_nothing_is_touched_and_the_printed_line_is_all_that_lacks() -> None:
    with scenario_world(UNGRANTED) as w:
        said = refused(w.start())
        line = said[said.index("aws iam put-role-policy") :]
        assert written(w) == []
        with others(w):
            scenarios.follow(w.box, line)
        w.proposal = again(w)
        w.start()
        assert w.run(12).state is ChangeState.PROVEN
    granted = json.loads(shlex.split(line)[-1])["Statement"]
    assert granted == [
        {
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": "arn:aws:iam::111122223333:role/model",
            "Condition": {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}},
        }
    ]


def again(w: World) -> Any:
    """The same option, asked and approved anew."""
    proposal = replace(w.proposal, id="p-again")
    w.store.save(proposal.recommendation, proposal)
    return proposal


def test_where_iam_cannot_be_asked_the_refusal_of_the_new_configuration_names_the_line() -> None:
    tags = {"rightsizer:mode": "propose", "rightsizer:alarms": "visible"}
    with scenario_world(replace(UNGRANTED, endpoint={**UNGRANTED.endpoint, "tags": tags})) as w:
        w.box.deny("iam:SimulatePrincipalPolicy")
        assert w.start().state is ChangeState.RUNNING
        change = w.run(6)
    accepted = [c.action for c in w.box.calls.writes() if c.service != "dynamodb" and c.error is None]
    assert change.state is ChangeState.ROLLED_BACK
    assert change.failure.value == "permission"
    assert "aws iam put-role-policy --role-name apply " in change.outcome
    assert accepted == []


def test_a_policy_that_is_there_already_is_not_deployed_again() -> None:
    scaling = {**scenarios.MANAGED, "ScaleInPolicy": ScaleIn("AllTraffic", "CONSOLIDATION", 1, 30).policy}
    endpoint = {**SCENARIO.endpoint, "variant_extra": {"ManagedInstanceScaling": scaling}}
    with scenario_world(replace(SCENARIO, endpoint=endpoint)) as w:
        change = w.start()
        assert change.state is ChangeState.REFUSED
        assert "has the scale-in policy that is asked for" in change.outcome
        assert written(w) == []


def test_a_variant_without_managed_scaling_has_no_policy() -> None:
    endpoint = {**SCENARIO.endpoint, "variant_extra": {}}
    with scenario_world(replace(SCENARIO, endpoint=endpoint)) as w:
        change = w.start()
        assert change.state is ChangeState.REFUSED
        assert "no managed instance scaling that is enabled" in change.outcome


def test_no_policy_decides_it() -> None:
    with world(SCENARIO.option, seed=SCENARIO.seed, kind=SCENARIO.kind, by="policy", **SCENARIO.endpoint) as w:
        change = w.start()
        assert change.state is ChangeState.REFUSED
        assert "only after an approval" in change.outcome


def test_nothing_is_booked_for_a_change_that_promised_nothing() -> None:
    with scenario_world(SCENARIO) as w:
        w.start()
        while w.change.state is not ChangeState.APPLIED:
            w.run(0.25)
        w.scale(1)
        w.run(12)
        entries = list(w.ledger.entries(w.change.created_at, w.now + timedelta(days=1)))
        (past,) = w.store.history(NAME).endpoint
    assert {e.usd for e in entries if e.kind == "realised"} == {0}
    assert past.stated_risk is None, "no evaluation stated a risk of what a person ordered"


@pytest.mark.parametrize(("step", "cooldown"), [(0, None), (101, None), (None, 4), (None, 1441)])
def test_limits_of_aws_are_refused_where_they_enter(step: int | None, cooldown: int | None) -> None:
    with pytest.raises(InputError, match="must be"):
        ScaleIn("AllTraffic", "CONSOLIDATION", step, cooldown)
