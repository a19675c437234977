"""`rightsizer wake`, and what `freeze` and `doctor` say of endpoints that went home by their office hours."""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rightsizer import bootstrap
from rightsizer.aws.hours import HoursTable
from rightsizer.aws.table import Table
from rightsizer.domain.hours_record import HoursState, Wake
from rightsizer.errors import ReadError
from rightsizer.terminal.app import Exit
from rightsizer.terminal.run import run
from sandbox.sagemaker.load import Served
from tests.doors.scene import Scene, scene
from tests.hours.world import CLOSES, NAME, OPENS, HoursWorld, hours_world, whole

HOUR = timedelta(hours=1)
NIGHT = CLOSES + 2 * HOUR
Said = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def night(monkeypatch: pytest.MonkeyPatch) -> Iterator[HoursWorld]:
    """An account at night whose one endpoint is asleep, and a terminal that names the stack's table."""
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("RIGHTSIZER_TABLE", "t")
    with hours_world(judged=False) as w:
        bootstrap.set_clock(lambda: w.box.clock.now)
        w.until(NIGHT)
        assert w.state is HoursState.STOPPED
        yield w
        bootstrap.reset()


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """Runs a command line with --json; the code, the document and standard error on one line."""

    def give(*arguments: str) -> tuple[int, Any, str]:
        code = run([*arguments, "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else None, " ".join(err.split())

    return give


def test_a_wake_is_recorded_and_the_deployed_function_carries_it_out(night: HoursWorld, said: Said) -> None:
    code, found, _ = said("wake", NAME, "--for", "3h")
    (row,) = found["wakes"]
    serves_by, until = (datetime.fromisoformat(row[key]) for key in ("serves_by", "until"))
    assert (code, row["recorded"], row["wakes_left"], row["wakes_per_day"]) == (Exit.NOTHING_TO_DO, True, 2, 3)
    assert (serves_by, until) == (NIGHT + timedelta(minutes=45), NIGHT + timedelta(minutes=45) + 3 * HOUR)
    assert not night.exists(), "the terminal creates nothing"
    night.until(serves_by)
    assert night.state is HoursState.RUNNING
    night.until(until)
    assert night.exists()
    night.until(until + HOUR)
    assert not night.exists()


def test_a_person_reads_when_it_serves_and_what_is_left(night: HoursWorld, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["wake", NAME]) == Exit.NOTHING_TO_DO
    text = " ".join(capsys.readouterr().out.split())
    assert "Recorded: Chat should serve by Mon 2 Nov 2026, 20:45 UTC (no start of its own is measured yet" in text
    assert "it stays until Mon 2 Nov 2026, 22:45 UTC" in text
    assert "2 of 3 wakes in 24 hours left" in text


def test_the_same_order_again_spends_no_wake_and_a_longer_one_extends(night: HoursWorld, said: Said) -> None:
    said("wake", NAME)
    code, again, _ = said("wake", NAME)
    assert (code, again["wakes"][0]["recorded"], again["wakes"][0]["wakes_left"]) == (Exit.NOTHING_TO_DO, False, 2)
    night.until(NIGHT + HOUR)
    _, longer, _ = said("wake", NAME, "--for", "4h")
    assert (longer["wakes"][0]["recorded"], longer["wakes"][0]["until"]) == (True, (NIGHT + 5 * HOUR).isoformat())
    night.until(NIGHT + 5 * HOUR)
    assert night.exists()


def test_a_stay_is_cut_to_the_longest_and_the_limit_a_day_is_said(night: HoursWorld, said: Said) -> None:
    _, found, _ = said("wake", NAME, "--for", "1h")
    assert found["wakes"][0]["wakes_left"] == 2
    said("wake", NAME, "--for", "2h")
    _, longest, _ = said("wake", NAME, "--for", "40h")
    assert longest["wakes"][0]["until"] == (NIGHT + 12 * HOUR).isoformat()
    night.until(NIGHT + timedelta(minutes=30))
    code, refused, err = said("wake", NAME, "--for", "40h")
    assert (code, refused["wakes"][0]["recorded"]) == (Exit.FAILED, False)
    assert "nothing was recorded: Chat was woken 3 times in 24 hours, and wakes_per_day is 3" in err


def test_a_name_without_a_record_is_refused_with_the_names_that_sleep(night: HoursWorld, said: Said) -> None:
    code, found, err = said("wake", "chat")
    assert (code, found) == (Exit.FAILED, None)
    assert "waking chat: its office hours never stopped an endpoint of that name; asleep now: Chat" in err


def test_an_endpoint_that_runs_has_nothing_to_wake(night: HoursWorld, said: Said) -> None:
    night.until(OPENS - timedelta(minutes=45))
    code, _, err = said("wake", NAME)
    assert (code, "is being started already, for its hours of Tue 3 Nov 2026, 07:00 UTC" in err) == (Exit.FAILED, True)
    night.until(OPENS + HOUR)
    code, _, err = said("wake", NAME)
    assert code == Exit.FAILED
    ends = "its hours end on Tue 3 Nov 2026, 18:00 UTC; where it is needed longer, change its tag"
    assert f"it is not asleep; {ends}" in err
    assert night.record.wakes == ()


def test_for_good_takes_one_endpoint_out_of_its_hours(night: HoursWorld, said: Said) -> None:
    code, found, _ = said("wake", NAME, "--for-good")
    assert (code, found["let_go"]) == (Exit.NOTHING_TO_DO, {"endpoint": NAME, "state": "stopped"})
    night.until(NIGHT + HOUR)
    assert night.exists()
    assert run(["wake", "--all", "--for-good"]) == Exit.USAGE


def test_for_good_is_refused_with_whole_commands_where_it_was_handed_over(
    night: HoursWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    by_hand = f"aws sagemaker create-endpoint --cli-input-json '{'x' * 300}'"
    with night.box.gate.unrecorded():
        night.flow.ports.book.save(replace(night.record, state=HoursState.HANDED_OVER, remaining=(by_hand,)))
    assert run(["wake", NAME, "--for-good"]) == Exit.FAILED
    said = capsys.readouterr()
    assert by_hand in said.out
    assert "it was handed over, so a person brings it back" in " ".join(said.err.split())
    assert night.record.let_go is None


def test_all_says_why_the_one_sleeper_is_not_woken(night: HoursWorld, capsys: pytest.CaptureFixture[str]) -> None:
    spent = (Wake(NIGHT - 3 * HOUR, NIGHT - 2 * HOUR, "U1"),) * 3
    with night.box.gate.unrecorded():
        night.flow.ports.book.save(replace(night.record, wakes=spent))
    assert run(["wake", "--all"]) == Exit.FAILED
    assert "Not recorded: Chat: Chat was woken 3 times in 24 hours" in " ".join(capsys.readouterr().out.split())


def test_all_wakes_what_sleeps_or_says_that_none_does(
    night: HoursWorld, said: Said, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found, _ = said("wake", "--all")
    assert (code, [row["endpoint"] for row in found["wakes"]]) == (Exit.NOTHING_TO_DO, [NAME])
    night.until(NIGHT + HOUR)
    assert night.exists()
    assert run(["wake", "--all"]) == Exit.NOTHING_TO_DO
    assert "No endpoint is asleep." in capsys.readouterr().out


@pytest.mark.parametrize(
    "line", ["wake", "wake Chat --all", "wake Chat --for soon", "wake Chat --for 5m", "wake Chat --for 2"]
)
def test_a_line_that_is_not_understood_records_nothing(night: HoursWorld, line: str) -> None:
    assert run(line.split()) == Exit.USAGE
    assert night.record.wakes == ()


def test_a_plain_freeze_lets_a_wake_go_on_and_says_that_nothing_is_stopped(
    night: HoursWorld, said: Said, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["freeze"]) == Exit.NOTHING_TO_DO
    text = " ".join(capsys.readouterr().out.split())
    assert "no endpoint is stopped by its office hours any more" in text
    assert "due starts and wakes too" in text
    assert said("wake", NAME)[0] == Exit.NOTHING_TO_DO
    night.until(NIGHT + 4 * HOUR)
    assert night.exists(), "frozen: it is not stopped again"


def test_a_hard_freeze_lists_what_is_asleep_and_refuses_a_wake_with_the_commands(
    night: HoursWorld, said: Said, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["freeze", "--hard"]) == Exit.NOTHING_TO_DO
    text = capsys.readouterr().out
    assert "Chat  stopped since Mon 2 Nov 2026, 18:" in text
    assert "has to serve again: Tue 3 Nov 2026, 07:00 UTC" in text
    (create,) = [line for line in text.splitlines() if line.strip().startswith("aws sagemaker create-endpoint ")]
    _, found, _ = said("freeze", "--hard")
    (row,) = found["asleep"]
    assert (row["endpoint"], row["state"], row["serves_at"]) == (NAME, "stopped", OPENS.isoformat())
    assert create.strip() in row["remaining"]
    code, refused, err = said("wake", NAME)
    assert (code, create.strip() in refused["wakes"][0]["remaining"]) == (Exit.FAILED, True)
    assert "everything is frozen hard by " in err
    assert night.record.wakes == ()
    _, plain, _ = said("freeze")
    assert plain["asleep"][0]["remaining"] == []


def policy_arn(w: HoursWorld, line: str) -> str:
    """What the lookup in a line prints."""
    name = shlex.split(line)[shlex.split(line).index("--policy-names") + 1]
    (found,) = w.box.client("application-autoscaling").describe_scaling_policies(
        ServiceNamespace="sagemaker", PolicyNames=[name]
    )["ScalingPolicies"]
    return str(found["PolicyARN"])


def carry_out(w: HoursWorld, lines: list[str]) -> list[str]:
    """Run command lines as a person would, in order; the operations that were made."""
    made = []
    for line in lines:
        while found := re.match(r'(POLICY_[0-9]+)="[$][(](aws .+?)[)]" && ', line):
            line = line[found.end() :].replace(f"""'"${found[1]}"'""", policy_arn(w, found[2]))
        if not line.startswith("aws "):
            continue
        _, service, operation, *rest = shlex.split(line)
        if operation == "wait":
            w.box.clock.advance(HOUR)
            continue
        given = dict(zip(rest[::2], rest[1::2], strict=True))
        assert given["--region"] == w.box.region, "in a fresh shell too"
        getattr(w.box.client(service), operation.replace("-", "_"))(**json.loads(given["--cli-input-json"]))
        made.append(operation)
    return made


def test_the_commands_of_doctor_bring_back_what_sleeps_in_a_stack_that_was_narrowed(
    said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setattr("rightsizer.terminal.doctor.parameters_of", lambda *_: {"MayStop": "nothing"})
    monkeypatch.setattr("rightsizer.terminal.doctor.table_of", lambda *_: "t")
    with hours_world(judged=False) as w:
        bootstrap.set_clock(lambda: w.box.clock.now)
        before = whole(w.box)
        w.until(NIGHT)
        assert not w.exists()
        w.box.clock.advance(24 * HOUR)  # the function is gone: no tick
        assert not w.exists()
        with w.others():
            (check,) = of_hours(said("doctor")[1])
            made = carry_out(w, [line.strip() for line in check["remedy"].splitlines()])
            w.box.clock.advance(HOUR)
            after = of_hours(said("doctor")[1])
        bootstrap.reset()
        assert (check["outcome"], made[0]) == ("failed", "create-endpoint")
        assert whole(w.box) == before, "autoscaling, tags and the actions of alarms too"
        assert [row["outcome"] for row in after] == ["ok"], after


@pytest.fixture(scope="module")
def closed() -> Iterator[Scene]:
    """A deployed stack with MayStop=tagged whose one endpoint is asleep; the last test here changes that."""
    with scene(now=datetime(2026, 11, 16, 17, 30, tzinfo=UTC), slack=False, MayStop="tagged") as at:
        image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/chat@sha256:" + "a" * 64
        at.box.add_endpoint("chat", tags={"rightsizer:hours": "mon-fri 08:00-19:00 Europe/Berlin"}, image=image)
        at.box.load("chat", lambda minute, kind, count: Served(0))
        at.pass_time(hours=3)
        assert "chat" not in at.box.world.fleet.endpoints
        yield at


def aside(at: Scene) -> AbstractContextManager[None]:
    """What a person does there, with permissions of their own."""
    return at.box.gate.unrecorded()


@pytest.fixture
def no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.delenv("RIGHTSIZER_TABLE", raising=False)


def test_a_stack_that_stops_nothing_any_more_refuses_a_wake(closed: Scene, said: Said, no_table: None) -> None:
    closed.stack.template.change({"MayStop": "nothing"})
    with aside(closed):
        code, found, err = said("wake", "chat")
        missing = said("wake", "other")
    closed.stack.template.change({"MayStop": "tagged"})
    assert (code, found["wakes"][0]["recorded"]) == (Exit.FAILED, False)
    assert "the stack has MayStop=nothing, so no function would carry the order out" in err
    assert any(line.startswith("aws sagemaker create-endpoint ") for line in found["wakes"][0]["remaining"])
    assert "the stack has MayStop=nothing, so it stops no endpoint" in missing[2]


def test_the_limits_of_the_stack_hold(closed: Scene, said: Said, no_table: None) -> None:
    closed.stack.template.change({"Limits": '{"wakes_per_day": 0}'})
    with aside(closed):
        code, _, err = said("wake", "chat")
    closed.stack.template.change({"Limits": "{}"})
    assert (code, "wakes_per_day is 0" in err) == (Exit.FAILED, True)


def of_hours(found: Any) -> list[dict[str, Any]]:
    return [check for check in found["checks"] if check["purpose"] == "endpoints that office hours stopped"]


def test_a_scan_calls_nothing_an_orphan_that_a_sleeping_one_needs(closed: Scene, said: Said, no_table: None) -> None:
    fleet, listed = closed.box.world.fleet, {"orphan-endpoint-configurations", "orphan-models"}
    for stored in (fleet.configs["chat-config"], fleet.models["chat-model"]):
        stored.created -= timedelta(days=90)

    def told(stack: str) -> set[str]:
        with aside(closed):
            _, found, _ = said("scan", "--stack", stack)
        return {each["code"] for each in found["account_findings"]} & listed

    assert told("another") == listed, "where no stack is found nobody knows what is asleep"
    assert told("rightsizer") == set()


def test_a_scan_names_what_is_asleep_and_explain_says_how_to_wake_it(
    closed: Scene, said: Said, no_table: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with aside(closed):
        run(["scan"])
        listed, (_, listing, _) = capsys.readouterr().out, said("scan")
        code, _, why = said("explain", "chat")
    assert "No endpoint exists in this account and Region. Asleep by office hours, and in no sum: chat." in listed
    (row,), wake = listing["asleep"], "rightsizer wake chat --region us-east-1"
    assert (code, "chat is asleep by its office hours" in why, wake in why) == (Exit.FAILED, True, True)
    assert (row["endpoint"], row["state"], row["since"][:14]) == ("chat", "stopped", "2026-11-16T18:")
    assert (row["serves_at"], row["wake"]) == ("2026-11-17T07:00:00+00:00", wake)
    table = HoursTable(Table(closed.box.client("dynamodb"), closed.stack.parts.names["Table"]))
    with aside(closed):
        before = table.load("chat")
        assert run(wake.split()[1:]) == Exit.NOTHING_TO_DO, "as it is printed"
        after = table.load("chat")
        assert before is not None
        assert after is not None
        assert len(after.wakes) == len(before.wakes) + 1
        table.save(replace(before, version=after.version))


def test_doctor_says_what_is_asleep_and_how_to_wake_it(
    closed: Scene, said: Said, no_table: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with aside(closed):
        (check,) = of_hours(said("doctor")[1])
        (told,) = of_hours(said("doctor", "--deployed")[1])
        run(["doctor", "--deployed"])
    assert (check["outcome"], told) == ("ok", check | {"part": "stack"})
    assert re.search("stopped since Mon 16 Nov 2026, 18:.*serve again: Tue 17 Nov 2026, 07:00 UTC", check["detail"])
    wake, protect = (line.strip() for line in check["remedy"].splitlines()[1:])
    assert wake == "rightsizer wake chat --region us-east-1"
    assert protect.endswith("--enable-termination-protection --region us-east-1 --stack-name rightsizer")
    assert {wake, protect} <= {line.strip() for line in capsys.readouterr().out.splitlines()}


def test_a_stack_that_aws_does_not_delete_needs_no_further_guard(
    closed: Scene, said: Said, no_table: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closed.stack, "is_protected", True)
    with aside(closed):
        (check,) = of_hours(said("doctor")[1])
    assert check["remedy"].endswith("wait until it serves:\n  rightsizer wake chat --region us-east-1")


def test_doctor_fails_where_something_is_asleep_and_nobody_starts_it(
    closed: Scene, said: Said, no_table: None, capsys: pytest.CaptureFixture[str]
) -> None:
    closed.stack.template.change({"MayStop": "nothing"})
    with aside(closed):
        code, found, _ = said("doctor")
        run(["doctor"])
    closed.stack.template.change({"MayStop": "tagged"})
    (check,) = of_hours(found)
    assert (code, check["outcome"]) == (Exit.INCOMPLETE, "failed")
    assert "the stack has MayStop=nothing, so nobody starts it" in check["detail"]
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "Remedy: deploy with MayStop=tagged again; by hand:" in printed
    assert any(line.startswith("aws sagemaker create-endpoint --") for line in printed)


def test_doctor_that_may_not_read_the_table_lacks_nothing_for_a_scan(
    closed: Scene, said: Said, no_table: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise ReadError("nobody may ask")

    monkeypatch.setattr("rightsizer.terminal.doctor.table_of", refuse)
    with aside(closed):
        (check,) = of_hours(said("doctor")[1])
    assert (check["outcome"], check["detail"]) == ("not-checked", "nobody may ask")


def test_doctor_names_what_was_handed_over_until_somebody_creates_it(closed: Scene, said: Said, no_table: None) -> None:
    table = HoursTable(Table(closed.box.client("dynamodb"), closed.stack.parts.names["Table"]))
    with aside(closed):
        record = table.load("chat")
        assert record is not None
        table.save(replace(record, state=HoursState.HANDED_OVER, remaining=("aws sagemaker x",)))
        code, found, err = said("wake", "chat")
        assert (code, found["wakes"][0]["remaining"]) == (Exit.FAILED, ["aws sagemaker x"])
        assert "it was handed over, so a person brings it back" in err
        (check,) = of_hours(said("doctor")[1])
        closed.box.client("sagemaker").create_endpoint(EndpointName="chat", EndpointConfigName="chat-config")
        (after,) = of_hours(said("doctor")[1])
    assert (check["outcome"], check["detail"]) == ("failed", "chat was handed over, and does not exist")
    assert (after["outcome"], after["detail"]) == ("ok", "none is asleep")
