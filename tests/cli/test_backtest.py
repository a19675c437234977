"""`rightsizer backtest` on a simulated account: tables, document, settings of the operator, usage errors."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from sandbox.account import Sandbox
from tests.cli.conftest import use

ALONE = {"rightsizer:p95-ms": "2000", "rightsizer:min-instances": "1"}
"""Tags of an endpoint that may run on one instance."""


def document(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    """The document of a back-test that would have changed something."""
    assert run(["backtest", "--json", *more]) == Exit.SAVINGS_FOUND
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def fleet(box: Sandbox, name: str = "fleet") -> None:
    """Two instances of which one is enough."""
    box.add_endpoint(name, "ml.g4dn.xlarge", count=2, tags=ALONE)
    use(box, name, gpu=10.0, requests=10)


def stack(box: Sandbox, limits: str) -> None:
    """A deployed stack with these limits."""
    template = {"Parameters": {"Limits": {"Type": "String"}}, "Resources": {"T": {"Type": "AWS::SNS::Topic"}}}
    box.client("cloudformation").create_stack(
        StackName="rightsizer",
        TemplateBody=json.dumps(template),
        Parameters=[{"ParameterKey": "Limits", "ParameterValue": limits}],
    )


def test_a_backtest_says_what_automatic_mode_would_have_done_and_how_it_would_have_gone(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(box)
    box.add_endpoint("chat", "ml.g5.12xlarge", tags={"rightsizer:p95-ms": "2000"})
    use(box, "chat", gpu=10.0, requests=10)
    box.add_endpoint("quiet", "ml.m5.xlarge")
    assert run(["backtest", "--json"]) == Exit.SAVINGS_FOUND
    out, err = capsys.readouterr()
    found = json.loads(out)
    changed, chat = found["endpoints"]
    assert (changed["endpoint"], changed["change"]) == ("fleet", "1 x ml.g4dn.xlarge")
    (change,) = changed["changes"]
    assert changed["acted_on"] == change["decided_at"][:10] == change["first_day"]
    after = change["after"]
    assert (after["verdict"], after["late"], after["objective_s"]) == ("held", 0, 2.0)
    assert after["requests"] == pytest.approx(10 * 288 * after["days"], rel=0.01)
    assert Decimal(changed["saved_usd"]) == Decimal(after["saved_usd"]) > 50
    assert (chat["acted_on"], chat["change"], chat["saved_usd"], chat["changes"]) == (None, None, "0", [])
    assert "worth a test first" in chat["reason"]
    assert (found["calibration"]["told"], found["calibration"]["held"]) == (1, 1)
    assert [row["endpoint"] for row in found["unobserved"]] == ["quiet"]
    assert "quiet" in err


def test_the_tables_show_change_verdict_promise_and_what_no_backtest_knows(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(box)
    box.add_endpoint("one-zone", "ml.g4dn.xlarge", count=2, tags={"rightsizer:p95-ms": "2000"})
    use(box, "one-zone", gpu=10.0, requests=10)
    assert run(["backtest"]) == Exit.SAVINGS_FOUND
    out = capsys.readouterr().out
    assert "1 instance of ml.g4dn.xlarge" in out
    assert "held (0 late without the change)" in out
    assert "Left as it is" in out
    assert "needs your approval" in out
    assert "Missed: 1 instance of ml.g4dn.xlarge from " in " ".join(out.split())
    assert "Promised against seen: of 1 change that should save, 1 held" in out
    assert "2 endpoints in eu-west-1 over 14 days: 1 changed, USD" in out
    assert "What no back-test knows" in out


def test_a_narrow_terminal_gets_a_list_with_the_same_figures(
    box: Sandbox, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet(box)
    monkeypatch.setattr("rightsizer.terminal.tables.PIPED", 80)
    monkeypatch.setenv("COLUMNS", "80")
    run(["backtest"])
    out = capsys.readouterr().out
    assert "fleet  from " in out
    assert "hours above 80 / 100 %: 0 / 0" in " ".join(out.split())
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80


def test_the_look_back_before_the_first_morning_is_read_too(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    fleet(box)
    (row,) = document(capsys, "--days", "5")["endpoints"]
    assert row["acted_on"] == f"{box.clock.now - timedelta(days=5):%Y-%m-%d}"
    assert row["days_after"] == 5


def test_the_limits_of_the_deployed_stack_hold_in_a_backtest_too(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(box, "first")
    fleet(box, "second")
    stack(box, '{"changes_per_day": 1}')
    found = document(capsys, "--days", "5")
    one, other = sorted(row["acted_on"] for row in found["endpoints"])
    assert one < other
    assert found["limits"]["source"] == "Limits of the stack rightsizer"
    assert found["limits"]["changes_per_day"] == 1


def test_other_limits_can_be_tried_before_they_are_deployed(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    fleet(box)
    stack(box, '{"minimum_saving_usd": 1000}')
    assert run(["backtest", "--days", "5", "--json"]) == Exit.NOTHING_TO_DO
    capsys.readouterr()
    found = document(capsys, "--days", "5", "--limits", '{"minimum_saving_usd": 100}')
    assert found["limits"]["source"] == "--limits"


def test_who_may_not_read_the_stack_gets_the_defaults_and_is_told(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(box)
    box.deny("cloudformation:*")
    assert run(["backtest", "--days", "5", "--json"]) == Exit.SAVINGS_FOUND
    out, err = capsys.readouterr()
    assert "the defaults of Limits are taken" in " ".join(err.split())
    assert "could not be read" in json.loads(out)["limits"]["source"]


def test_a_stack_with_limits_that_mean_nothing_is_an_error_that_names_the_key(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    stack(box, '{"changes_a_day": 1}')
    assert run(["backtest"]) == Exit.FAILED
    assert "changes_a_day" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--limits", "{"], "not JSON"),
        (["--limits", '{"changes_a_day": 1}'], "changes_a_day"),
        (["--limits", '{"dimensions": ["packing"]}'], "dimensions"),
        (["--days", "1"], "--days"),
        (["--days", "64"], "--days"),
        (["--days", "soon"], "--days"),
    ],
)
def test_flags_that_mean_nothing_are_usage_errors(
    flags: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["backtest", *flags]) == Exit.USAGE
    assert named in capsys.readouterr().err


def test_an_account_without_endpoints_says_so(box: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["backtest"]) == Exit.NOTHING_TO_DO
    assert "No endpoint exists in this account and Region." in capsys.readouterr().out


def test_the_variants_behind_the_first_are_named_as_not_played(
    box: Sandbox, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = {
        "VariantName": "canary",
        "ModelName": "fleet-model",
        "InstanceType": "ml.g4dn.xlarge",
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1.0,
    }
    box.add_endpoint("fleet", "ml.g4dn.xlarge", count=2, tags=ALONE, more_variants=(beside,))
    use(box, "fleet", gpu=10.0, requests=10)
    box.add_endpoint("chat", "ml.g4dn.xlarge", count=2, tags=ALONE)
    use(box, "chat", gpu=10.0, requests=10)
    run(["backtest", "--json"])
    found = {each["endpoint"]: each for each in json.loads(capsys.readouterr().out)["endpoints"]}
    assert {name: each["variants_not_played"] for name, each in found.items()} == {"fleet": ["canary"], "chat": []}
    run(["backtest"])
    out = capsys.readouterr().out
    assert "Variants that were not played" in out
    assert "canary" in out
