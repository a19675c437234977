"""What earlier releases kept among the facts of an option is read where the field of today is empty."""

import json

import pytest

from rightsizer import wire
from rightsizer.changes.plan import test_hours as hours_of_plan
from rightsizer.domain.endpoint import PolicyChange
from rightsizer.domain.older_option import with_older_facts
from rightsizer.render import report_json
from tests import samples
from tests.notifiers import said_in_slack


@pytest.mark.parametrize(
    ("facts", "field", "hours", "planned"),
    [
        ({"test hours": "2.5"}, None, 2.5, 2.5),
        ({"test hours": "3"}, 5.0, 5.0, 5.0),
        ({"test hours": "a while"}, None, None, 2.0),
        ({}, None, None, 2.0),
        ({}, 0.2, 0.2, 1.0),
        ({"test hours": "90"}, None, 90.0, 24.0),
    ],
)
def test_the_hours_of_a_shadow_test(
    facts: dict[str, str], field: float | None, hours: float | None, planned: float
) -> None:
    option = samples.option(facts=facts, test_hours=field)
    assert with_older_facts(option).test_hours == hours
    assert hours_of_plan(option) == planned


def test_the_changes_of_scaling_policies() -> None:
    facts = {"objective": "2 s", "Scaling policy keep-70": "70 stays", "Scaling policy ": "no name"}
    older = (PolicyChange("keep-70", "70 stays"), PolicyChange("", "no name"))
    own = (PolicyChange("keep-60", "60 becomes 30"),)
    assert with_older_facts(samples.option(facts=facts)).policy_changes == older
    assert with_older_facts(samples.option(facts=facts, policy_changes=own)).policy_changes == own
    assert with_older_facts(samples.option(facts={"objective": "2 s"})).policy_changes == ()
    assert [change.title for change in older] == ["Scaling policy keep-70", "Scaling policy "]


def test_a_message_names_the_scaling_policies_of_either_release() -> None:
    line = {"Scaling policy keep-70": "70 becomes 35"}
    older = samples.option(facts=line)
    today = samples.option(facts=line, policy_changes=(PolicyChange("keep-70", "70 becomes 35"),))
    shown = [
        json.dumps(said_in_slack(samples.proposal(recommendation=samples.recommendation(options=(one,)))))
        for one in (older, today)
    ]
    assert shown[0] == shown[1]
    assert "*Scaling policy keep-70*" in shown[0]
    assert shown[0].count("70 becomes 35") == 1


def test_what_a_report_says_of_an_option_for_machines_is_as_it_was() -> None:
    today = samples.option(test_hours=2.0, policy_changes=(PolicyChange("keep-70", "70 becomes 35"),))
    found = samples.recommendation(options=(today, today))
    shown = json.loads(report_json.line(found))["options"]
    stored = json.loads(wire.dumps(found))["options"]
    assert [set(of_store) - set(of_report) for of_store, of_report in zip(stored, shown, strict=True)] == [
        {"test_hours", "policy_changes"}
    ] * 2
    assert {name: stored[0][name] for name in shown[0]} == shown[0]
