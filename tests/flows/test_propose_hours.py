"""Office hours proposed in the rest of the bill: what is read, of whom, and that trouble of one stops no other."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

import pytest

from rightsizer.bootstrap import catalogue
from rightsizer.domain.account_finding import AccountFindingCode
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import MetricWindow, NoMetrics, Series
from rightsizer.errors import ThrottledError
from rightsizer.flows.bill import BillPorts, BillScope, read_rest_of_bill
from rightsizer.flows.propose_hours import MOST_READ, HoursSources, propose_hours
from rightsizer.ports.account import AccountReader
from rightsizer.ports.evaluation import MetricRequest
from rightsizer.reporting.hours_fit import EVIDENCE, FIVE_MINUTES
from tests.flows.test_rest_of_bill import Account, Prices
from tests.reporting.hours_kit import NOW
from tests.samples import recommendation

NIGHT = (0.0,) * 9 + (30.0,) * 8 + (0.0,) * 7
type Tags = Mapping[str, str] | Reason


@dataclass
class Tagged(Account):
    """An account whose endpoints have these tags."""

    tags: Mapping[str, Tags] = field(default_factory=dict)

    def endpoint_tags(self, arns: Sequence[str]) -> Mapping[str, Tags]:
        return {arn: self.tags.get(arn.rpartition("/")[2], {}) for arn in arns}


@dataclass
class Metrics:
    """Every endpoint is called from 9 to 17 UTC on working days."""

    lost: Mapping[str, Reason] = field(default_factory=dict)
    fails: bool = False
    asked: list[tuple[tuple[str, ...], datetime, datetime]] = field(default_factory=list)

    def read(
        self, requests: Sequence[MetricRequest], start: datetime, end: datetime, period_s: int
    ) -> Iterator[MetricWindow | NoMetrics]:
        assert {each.signals for each in requests} <= {EVIDENCE}
        self.asked.append((tuple(each.endpoint for each in requests), start, end))
        if self.fails:
            raise ThrottledError("cloudwatch:GetMetricData", "reading metrics", "slow down")
        slots = [start + number * FIVE_MINUTES for number in range((end - start) // FIVE_MINUTES)]
        calls = array("d", (20.0 if at.weekday() < 5 and 9 <= at.hour < 17 else 0.0 for at in slots))
        series = {
            EVIDENCE[0]: Series(start, period_s, calls),
            EVIDENCE[1]: Series(start, period_s, array("d", [5.0] * len(slots))),
        }
        for each in requests:
            notes = (self.lost[each.endpoint],) if each.endpoint in self.lost else ()
            yield MetricWindow(each.endpoint, each.variant, start, end, period_s, series, notes)


def quiet(name: str, **more: object) -> Recommendation:
    return recommendation(name, hourly_requests=NIGHT * 14, **more)


def test_hours_are_proposed_from_four_weeks_and_in_development_from_two() -> None:
    metrics, account = Metrics(), Tagged(tags={"lab": {"environment": "dev"}})
    found = propose_hours(HoursSources(cast("AccountReader", account), metrics), [quiet("chat"), quiet("lab")], NOW)
    assert [(one.endpoint, one.usd_per_month != 0) for one in found] == [("chat", True), ("lab", True)]
    assert [(names, (end - start).days) for names, start, end in metrics.asked] == [(("chat",), 28), (("lab",), 14)]
    assert {end for _, _, end in metrics.asked} == {NOW.replace(hour=0)}


def test_of_what_cannot_have_hours_no_metric_is_read_and_the_reason_is_said() -> None:
    metrics = Metrics()
    tags: dict[str, Tags] = {"stack": {"aws:cloudformation:stack-name": "ml"}, "said": {"rightsizer:hours": "x"}}
    account = Tagged(tags=tags | {"dark": Reason(Code.PERMISSION_MISSING, "tags may not be read")})
    endpoints = [quiet("stack"), quiet("said"), quiet("dark"), quiet("parts", kind=EndpointKind.INFERENCE_COMPONENTS)]
    found = propose_hours(HoursSources(cast("AccountReader", account), metrics), endpoints, NOW)
    assert metrics.asked == []
    assert {one.endpoint: one.evidence["reason"] for one in found} == {
        "stack": "owned-by-stack",
        "dark": "permission-missing",
        "parts": "other-kind",
    }


def test_what_was_read_in_part_or_not_at_all_is_no_evidence_and_stops_no_other() -> None:
    lost = Metrics(lost={"chat": Reason(Code.READ_FAILED, "partial data")})
    found = propose_hours(HoursSources(cast("AccountReader", Tagged()), lost), [quiet("chat"), quiet("bert")], NOW)
    told = {one.endpoint: one.evidence.get("reason") for one in found}
    assert told == {"chat": "read-failed", "bert": None}
    slow = propose_hours(HoursSources(cast("AccountReader", Tagged()), Metrics(fails=True)), [quiet("chat")], NOW)
    assert [one.evidence["reason"] for one in slow] == ["throttled"]


def test_a_large_account_has_its_dearest_endpoints_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_READ == 100
    monkeypatch.setattr("rightsizer.flows.propose_hours.MOST_READ", 3)
    metrics = Metrics()
    endpoints = [quiet(f"e-{number}") for number in range(5)]
    found = propose_hours(HoursSources(cast("AccountReader", Tagged()), metrics), endpoints, NOW)
    assert [one.endpoint for one in found] == ["e-0", "e-1", "e-2"]
    assert {name for names, _, _ in metrics.asked for name in names} == {"e-0", "e-1", "e-2"}


def test_the_rest_of_the_bill_tells_them_unless_the_endpoint_has_hours() -> None:
    ports = BillPorts(cast("AccountReader", Tagged()), Prices(), catalogue(), metrics=Metrics(), zone="UTC")
    scope = BillScope("eu-west-1", (quiet("chat"), quiet("night")), resting=frozenset({"night"}), is_whole=False)
    told = [one for one in read_rest_of_bill(ports, scope, NOW).findings if one.code is AccountFindingCode.OFFICE_HOURS]
    assert [one.endpoint for one in told] == ["chat"]
