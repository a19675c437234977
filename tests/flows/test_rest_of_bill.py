"""The rest of the bill put together: what a stopped endpoint needs is never an orphan, and each part is alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, cast

from rightsizer.bootstrap import catalogue
from rightsizer.domain.account_finding import (
    EndpointTraffic,
    ServedResources,
    ServerlessSize,
    StoredResource,
    WarmPoolUse,
)
from rightsizer.domain.endpoint import EndpointRef, Mode
from rightsizer.domain.hours_record import EndpointBefore, HoursRecord, HoursState
from rightsizer.domain.job import TrainingRun
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.price import Commitment, PriceTable
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.recommendation import Finding
from rightsizer.errors import PermissionMissingError
from rightsizer.flows.bill import MOST_DESCRIBED, BillPorts, BillScope, RestOfBill, read_rest_of_bill
from rightsizer.ports.changes import HoursBook
from tests.advice.test_training_history import job, run
from tests.samples import NOW, price, recommendation

OLD = NOW - timedelta(days=90)
TABLE = PriceTable("eu-west-1", {"ml.g5.xlarge": price("ml.g5.xlarge", "1.40")}, Commitment(Decimal(0), known=True))


@dataclass
class Account:
    """An account with two configurations and two models that no endpoint uses."""

    endpoints: Sequence[str] = ()
    fails: str = ""
    described: list[str] = field(default_factory=list)
    runs: tuple[TrainingRun, ...] = ()
    asked: list[tuple[timedelta, int]] = field(default_factory=list)

    def configurations(self) -> tuple[StoredResource, ...]:
        return StoredResource("night-config", OLD), StoredResource("left-config", OLD)

    def models(self) -> tuple[StoredResource, ...]:
        return StoredResource("night-model", OLD), StoredResource("left-model", OLD)

    def endpoint_names(self) -> tuple[str, ...]:
        return tuple(self.endpoints)

    def served_by(self, endpoints: Sequence[str]) -> ServedResources:
        self.described += endpoints
        return ServedResources()

    def endpoint_tags(self, arns: Sequence[str]) -> Mapping[str, Mapping[str, str] | Reason]:
        return {arn: {} for arn in arns}

    def component_models(self) -> frozenset[str]:
        return frozenset()

    def configurations_seen_lately(self) -> frozenset[str]:
        if self.fails == "lately":
            raise PermissionMissingError("cloudwatch:ListMetrics", "looking", "no")
        return frozenset()

    def plan_rates(self, instance_types: Any) -> Mapping[str, Decimal]:
        return {"ml.g5.xlarge": Decimal("1.008")}

    def serverless_sizes(self, endpoints: Sequence[str]) -> Mapping[str, ServerlessSize]:
        return {}

    def traffic(
        self, variants: Sequence[tuple[str, str]], since: datetime, now: datetime
    ) -> Mapping[str, EndpointTraffic]:
        return {}

    def training_runs(self, since: datetime, now: datetime, most: int) -> tuple[TrainingRun, ...]:
        self.asked.append((now - since, most))
        return self.runs

    def warm_pools(self, since: datetime, now: datetime) -> tuple[WarmPoolUse, ...]:
        return ()


class Prices:
    def table(self, region: str, instance_types: Any) -> PriceTable:
        return TABLE


@dataclass
class Records:
    """Office hours of `night`, which is stopped now."""

    unreadable: bool = False
    fails: bool = False

    def records(self, unread: list[UnreadRow] | None = None) -> Iterator[HoursRecord]:
        if self.fails:
            raise PermissionMissingError("dynamodb:Query", "reading the hours", "no")
        if self.unreadable and unread is not None:
            unread.append(UnreadRow("HOURS#x HOURS", "no JSON"))
        body = {"ProductionVariants": [{"VariantName": "a", "ModelName": "night-model"}]}
        before = EndpointBefore(NOW, "night-config", body, {}, NOW, NOW, {}, ())
        ref = EndpointRef("1", "eu-west-1", "night")
        yield HoursRecord(ref, HoursState.STOPPED, hours="mon-fri 08:00-19:00 UTC", before=before)


def read(
    account: Account | None = None, records: Records | None = None, scope: BillScope | None = None
) -> tuple[RestOfBill, dict[str, list[str]]]:
    ports = BillPorts(account or Account(), Prices(), catalogue(), cast("HoursBook", records) if records else None)
    found = read_rest_of_bill(ports, scope or BillScope("eu-west-1", ()), NOW)
    return found, {each.code.value: [item.name for item in each.items] for each in found.findings}


def test_what_a_stopped_endpoint_needs_is_no_orphan() -> None:
    assert read()[1]["orphan-models"] == ["left-model", "night-model"]
    found, names = read(records=Records())
    assert names["orphan-endpoint-configurations"] == ["left-config"]
    assert names["orphan-models"] == ["left-model"]
    assert found.unread == ()


def test_where_the_hours_cannot_be_read_no_orphan_is_told_and_the_rest_is() -> None:
    steady = recommendation(
        "chat", finding=Finding.OPTIMIZED, options=(), instance_type="ml.g5.xlarge", instance_count=10
    )
    for records in (Records(fails=True), Records(unreadable=True)):
        found, names = read(records=records, scope=BillScope("eu-west-1", (steady,)))
        assert list(names) == ["savings-plan"]
        assert len(found.unread) == 1


def test_an_endpoint_with_office_hours_does_not_run_at_every_hour() -> None:
    night = recommendation(
        "night", finding=Finding.OPTIMIZED, options=(), instance_type="ml.g5.xlarge", instance_count=10
    )
    scope = BillScope("eu-west-1", (night,))
    assert "savings-plan" in read(scope=scope)[1]
    assert "savings-plan" not in read(records=Records(), scope=scope)[1]
    assert "savings-plan" not in read(scope=replace(scope, resting=frozenset({"night"})))[1]


def test_the_last_use_alone_may_be_unknown() -> None:
    found, names = read(Account(fails="lately"))
    assert "orphan-endpoint-configurations" in names
    assert [each.code.value for each in found.unread] == ["permission-missing"]


def test_a_large_account_is_not_described_endpoint_by_endpoint() -> None:
    account = Account(endpoints=[f"e-{n}" for n in range(MOST_DESCRIBED + 1)])
    found, names = read(account)
    assert names == {}
    assert account.described == []
    assert "301 endpoints are too many" in found.unread[0].sentence
    known = Account(endpoints=account.endpoints)
    assert read(known, scope=BillScope("eu-west-1", (), ServedResources(), to_describe=("new",)))[1]
    assert known.described == ["new"]


def test_of_some_endpoints_alone_nothing_of_the_account_is_read() -> None:
    assert read(scope=BillScope("eu-west-1", (), is_whole=False)) == (RestOfBill(), {})


def test_a_report_tells_what_the_next_training_runs_should_change() -> None:
    idle = tuple(run(job(number), cpu=150, gpu=0.1) for number in range(4))
    account = Account(runs=idle)
    found, names = read(account, scope=BillScope("eu-west-1", (), reads_training_runs=True))
    assert names["training-runs"] == ["bert"]
    told = next(each for each in found.findings if each.code.value == "training-runs")
    assert "the GPU did nothing" in told.items[0].detail
    assert told.usd_per_month == told.items[0].usd_per_month
    assert account.asked == [(timedelta(days=30), 200)]


def test_a_scan_describes_no_training_job() -> None:
    account = Account(runs=(run(job(0), gpu=0.1),))
    assert "training-runs" not in read(account)[1]
    assert account.asked == []


def test_a_report_names_the_owner_of_a_training_work_and_why_others_are_not_known() -> None:
    owned = tuple(run(job(number, owner="vision"), cpu=150, gpu=0.1) for number in range(4))
    reason = Reason(Code.PERMISSION_MISSING, "reading the tags of jobs needs tag:GetResources")
    unknown = tuple(replace(each, tags_unread=reason) for each in owned[:2])
    scope = BillScope("eu-west-1", (), reads_training_runs=True)
    found, _ = read(Account(runs=owned), scope=scope)
    (told,) = (each for each in found.findings if each.code.value == "training-runs")
    assert [item.owner for item in told.items] == ["vision"]
    assert found.unread == ()
    assert read(Account(runs=(*unknown, *owned[2:])), scope=scope)[0].unread == (reason,)


def test_a_report_proposes_nothing_for_a_training_work_that_is_tagged_off() -> None:
    off = tuple(run(job(number, mode=Mode.OFF), cpu=150, gpu=0.1) for number in range(4))
    assert "training-runs" not in read(Account(runs=off), scope=BillScope("eu-west-1", (), reads_training_runs=True))[1]
