"""What rightsizer itself costs, from what it used."""

from decimal import Decimal

import pytest

from rightsizer.domain.report import FunctionUse, Stack
from rightsizer.reporting.totals import ALARM_METRICS, running_cost
from tests.template.stack import EVERYTHING, stack

USED = (FunctionUse("evaluate", 1769, 100, 60_000.0),)


def test_more_variants_cost_more_only_where_they_are_read_and_alarmed() -> None:
    few, many = (running_cost(USED, Stack(grouped_alarm=True), n, 16, 7) for n in (1, 100))
    assert few is not None
    assert many is not None
    assert few.lines[0] == many.lines[0]
    assert many.lines[1].usd - few.lines[1].usd == pytest.approx(Decimal("9.9") * 7 * 24 / 730)
    assert many.lines[2].usd == Decimal(100 * 16 * 7) / 1000 * Decimal("0.01")


def test_without_the_grouped_alarm_variants_are_not_alarmed() -> None:
    one, other = (running_cost(USED, Stack(), n, 16, 7) for n in (1, 100))
    assert one is not None
    assert other is not None
    assert one.lines[1] == other.lines[1]


def test_graviton_is_cheaper() -> None:
    arm, intel = (running_cost(USED, Stack(arm=arm), 1, 16, 7) for arm in (True, False))
    assert arm is not None
    assert intel is not None
    assert arm.usd < intel.usd


def test_the_alarms_are_counted_as_the_template_has_them() -> None:
    assert alarm_metrics(MayStop="nothing") == ALARM_METRICS
    assert alarm_metrics(MayStop="tagged") == ALARM_METRICS + 3, "office hours: errors, and runs without one"


def alarm_metrics(**parameters: str) -> int:
    alarms = stack(**(EVERYTHING | parameters)).of("AWS::CloudWatch::Alarm")
    return sum(
        len([m for m in one.get("Metrics", [{"MetricStat": 1}]) if "MetricStat" in m]) for one in alarms.values()
    )


def test_the_functions_are_named_with_the_memory_that_the_template_gives_them() -> None:
    deployed = stack(**EVERYTHING)
    said = deployed.function("report")["Environment"]["Variables"]["RIGHTSIZER_FUNCTIONS"]
    named = {name: int(size) for name, _, size in (part.partition("=") for part in said.split(","))}
    sizes = {name: one["MemorySize"] for name, one in deployed.of("AWS::Lambda::Function").items()}
    assert named == {name: sizes[name] for name in set(sizes) - {"Report", "Respond", "Picture"}}
