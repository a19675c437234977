"""Each alarm of the template has its entry in docs/runbook.md, and each entry was followed once."""

import re
from collections.abc import Iterator

import pytest

from tests.doors.scene import BIG, PROPOSE, ROOT, Scene, scene
from tests.doors.test_faults import send
from tests.runbook.watch import Watch, watching
from tests.template.stack import EVERYTHING, stack

PAGE = (ROOT / "docs" / "runbook.md").read_text()
ENTRY = re.compile(r"^## `<stack>-([a-z-]+)`$", re.MULTILINE)


@pytest.fixture
def at() -> Iterator[Scene]:
    with scene() as found:
        found.stack.quiet |= {schedule.name for schedule in found.stack.parts.schedules}
        yield found


@pytest.fixture
def watch(at: Scene) -> Iterator[Watch]:
    with watching(at) as found:
        yield found


def ticks(at: Scene, number: int) -> None:
    """So many periods of five minutes, each with a tick."""
    for _ in range(number):
        at.stack.fire("Apply.Tick")
        at.pass_time(minutes=5)


def test_every_alarm_has_an_entry_and_every_entry_an_alarm() -> None:
    alarms = stack(**EVERYTHING).of("AWS::CloudWatch::Alarm").values()
    assert sorted(ENTRY.findall(PAGE)) == sorted(one["AlarmName"].removeprefix("rightsizer-") for one in alarms)


def test_every_entry_says_when_it_is_over() -> None:
    for entry in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        name = entry.splitlines()[0]
        assert "**Over**" in entry or "hours-late" in name or "gpu-idle" in name, name


def test_every_alarm_for_people_tells_when_it_fires_and_when_it_ends() -> None:
    for name, one in stack(**EVERYTHING).of("AWS::CloudWatch::Alarm").items():
        assert name == "GpuIdleAlarm" or one["AlarmActions"] == one["OKActions"] == ["Topic"], name


def test_dead_letters(at: Scene, watch: Watch) -> None:
    at.box.deny("dynamodb:Query")
    for _ in range(3):
        at.stack.fire("Sweep.Hourly")
        at.pass_time(minutes=10)
    watch.note("DeadLetters")
    assert watch.state("DeadLettersAlarm") == "ALARM"
    at.box.gate.heal()
    sqs, url = at.box.client("sqs"), at.stack.parts.queues["DeadLetters"]
    found = sqs.receive_message(
        QueueUrl=url, AttributeNames=["All"], MessageAttributeNames=["All"], MaxNumberOfMessages=10
    )["Messages"]
    assert any("Sweep Due" in one["Body"] for one in found)
    sqs.purge_queue(QueueUrl=url)
    at.pass_time(minutes=5)
    watch.note("DeadLetters")
    assert watch.state("DeadLettersAlarm") == "OK"
    at.stack.fire("Sweep.Hourly")
    assert at.stack.runs("sweep")[-1].error is None, "nothing is sent again: the next sweep makes up for it"


def test_evaluation_dead_letters(at: Scene, watch: Watch) -> None:
    send(at, "not a message of ours")
    at.pass_time(hours=3)
    watch.note("EvaluationDeadLetters")
    assert watch.state("EvaluationDeadLettersAlarm") == "ALARM"
    assert watch.own["MessagesMalformed", "evaluate"], "the entry names this counter"
    queue = at.box.client("sqs")
    queue.purge_queue(QueueUrl=at.stack.parts.queues["EvaluationDeadLetters"])
    at.pass_time(minutes=5)
    watch.note("EvaluationDeadLetters")
    assert watch.state("EvaluationDeadLettersAlarm") == "OK"


def test_evaluation_late(at: Scene, watch: Watch) -> None:
    """The simulated queue has no age; the metric is given as SQS would send it."""
    for age in (6_900.0, 7_201.0, 7_500.0, 7_800.0):
        assert watch.state("QueueAgeAlarm") == "OK"
        at.pass_time(minutes=5)
        watch.note("EvaluationQueue", age)
    assert watch.state("QueueAgeAlarm") == "ALARM"
    at.pass_time(minutes=5)
    watch.note("EvaluationQueue", 30.0)
    assert watch.state("QueueAgeAlarm") == "OK"


def test_apply_late(at: Scene, watch: Watch) -> None:
    """The simulated stream has no age; the metric is given as Lambda would send it."""
    watch.note("apply", 901_000.0)
    assert watch.state("ApplyLateAlarm") == "ALARM"
    at.pass_time(minutes=5)
    watch.note("apply", 100.0)
    assert watch.state("ApplyLateAlarm") == "OK"


def test_errors_and_a_tick_that_does_not_run(at: Scene, watch: Watch) -> None:
    ticks(at, 3)
    assert (watch.state("ErrorsAlarm"), watch.state("TickMissingAlarm")) == ("OK", "OK")
    at.box.deny("dynamodb:Query")
    ticks(at, 3)
    assert (watch.state("ErrorsAlarm"), watch.state("TickMissingAlarm")) == ("ALARM", "ALARM")
    assert "dynamodb:Query" in str(at.stack.runs("apply")[-1].error), "the log names the permission that is missing"
    at.box.gate.heal()
    ticks(at, 1)
    assert watch.state("TickMissingAlarm") == "OK", "over after one period with a run"
    ticks(at, 3)
    assert watch.state("ErrorsAlarm") == "OK"
    at.pass_time(minutes=15)
    assert watch.state("TickMissingAlarm") == "ALARM", "no invocation at all"


def test_journal_stuck(at: Scene, watch: Watch) -> None:
    at.add(BIG, tags=PROPOSE)
    at.drive(BIG)
    at.sweep()
    at.click(BIG, "Approve")
    at.stack.settle()
    at.box.deny("dynamodb:PutItem")
    ticks(at, 4)
    assert watch.state("JournalStuckAlarm") == "ALARM"
    at.box.gate.heal()
    ticks(at, 7)
    assert watch.state("JournalStuckAlarm") == "OK"


def test_evaluation_stale(at: Scene, watch: Watch) -> None:
    at.add(BIG, tags=PROPOSE)
    at.sweep()
    at.pass_time(hours=24)
    at.sweep()
    at.pass_time(minutes=5)
    assert [value for _, value in watch.own["EndpointsStale", "sweep"]] == [1, 0], "at first nothing is evaluated yet"
    assert watch.state("EvaluationStaleAlarm") == "OK"
    at.pass_time(hours=31)
    assert watch.state("EvaluationStaleAlarm") == "ALARM", "no daily sweep came to its end"
    at.pass_time(hours=19)
    at.sweep()
    at.pass_time(minutes=5)
    assert watch.own["EndpointsStale", "sweep"][-1][1] == 1, "the sweep after two days finds what was left out"
    at.pass_time(hours=24)
    at.sweep()
    at.pass_time(minutes=5)
    assert watch.own["EndpointsStale", "sweep"][-1][1] == 0
    assert watch.state("EvaluationStaleAlarm") == "OK"


def test_prices_stale(at: Scene, watch: Watch) -> None:
    at.add(BIG, tags=PROPOSE)
    at.box.deny("pricing:GetProducts")
    at.sweep()
    at.pass_time(minutes=5)
    assert watch.state("PricesStaleAlarm") == "ALARM"
    at.box.gate.heal()
    at.pass_time(hours=23)
    assert watch.state("PricesStaleAlarm") == "ALARM"
    at.sweep()
    at.pass_time(hours=2)
    assert watch.state("PricesStaleAlarm") == "OK", "24 hours after the last failure"


def test_events_lost(at: Scene, watch: Watch) -> None:
    at.add(BIG, tags=PROPOSE)
    at.box.deny("events:PutEvents")
    at.sweep()
    at.pass_time(minutes=5)
    assert watch.state("EventsLostAlarm") == "ALARM", "that of a proposal"
    at.pass_time(hours=2)
    assert watch.state("EventsLostAlarm") == "OK"
    at.stack.fire("Report.Weekly")
    at.pass_time(minutes=5)
    assert watch.state("EventsLostAlarm") == "ALARM", "that of the report"
    at.box.gate.heal()
    at.sweep("Hourly")
    at.pass_time(hours=1)
    assert watch.state("EventsLostAlarm") == "OK", "over with the next hour without a loss"
    taken = [call.params["Entries"][0] for call in at.box.calls.of("events", "PutEvents") if not call.error]
    assert [one["DetailType"] for one in taken].count("Rightsizer Report Stored") == 1, "the sweep has sent it"
