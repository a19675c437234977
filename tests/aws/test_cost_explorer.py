"""The bill from Cost Explorer: by instance type or tag, in few requests, and never by endpoint."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rightsizer.aws.bill_sources import MOST_PAGES, CostExplorerBill
from rightsizer.domain.bill import BilledCharge, BillLevel, BillWindow, ChargeKind
from rightsizer.errors import InputError, PermissionMissingError, ReadError
from rightsizer.flows.bill import reconcile_with_bill
from sandbox.account import Sandbox
from sandbox.prices import hourly
from tests.reporting.bill_kit import END, NOW, START, Course, records

DAY = timedelta(days=1)


def scope(box: Sandbox, days: int = 7) -> BillWindow:
    today = box.clock.now.replace(hour=0, minute=0, second=0, microsecond=0)
    return BillWindow(box.world.account, box.world.region, today - days * DAY, today)


def usage(found: list[BilledCharge]) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = {}
    for one in found:
        if one.kind is ChargeKind.USAGE:
            sums[one.name or one.instance_type] = sums.get(one.name or one.instance_type, Decimal(0)) + one.listed
    return sums


def test_usage_is_told_apart_by_instance_type_in_one_request(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.xlarge", 2, created=box.clock.now - timedelta(days=10))
    box.add_endpoint("rank", "ml.g5.xlarge", 1, created=box.clock.now - timedelta(days=10))
    box.world.plans.buy(1.0)
    before = len(box.calls.of("ce"))
    reader = CostExplorerBill(box.client("ce"))
    found = list(reader.lines(scope(box)))
    assert len(box.calls.of("ce")) == before + 1
    assert {one.name for one in found} == {""}, "no endpoint is named, whatever ran"
    nature = reader.nature()
    assert (nature.level, nature.source) == (BillLevel.TYPE, "Cost Explorer")
    known = 6 + Decimal((box.clock.now - scope(box).end) / DAY)
    wanted = Decimal(str(hourly(box.world.region, "ml.g5.xlarge"))) * 3 * 24 * known
    assert usage(found)["ml.g5.xlarge"] == pytest.approx(wanted, rel=Decimal("0.01")), "covered usage at public prices"
    assert sum(one.paid for one in found) < sum(one.listed for one in found)
    assert all(one.kind is ChargeKind.USAGE for one in found), "negations of plans are left out"


def test_a_cost_allocation_tag_tells_endpoints_apart(box: Sandbox) -> None:
    for name, kind in (("chat", "ml.g5.xlarge"), ("rank", "ml.g5.xlarge"), ("bare", "ml.g5.xlarge")):
        box.add_endpoint(name, kind, created=box.clock.now - timedelta(days=10))
        if name != "bare":
            box.world.tags.put(box.world.fleet.endpoints[name].arn, {"app": name})
    reader = CostExplorerBill(box.client("ce"), "app")
    found = list(reader.lines(scope(box)))
    assert set(usage(found)) == {"chat", "rank", "ml.g5.xlarge"}, "what has no tag has no name"
    assert (reader.nature().level, reader.nature().tag) == (BillLevel.TAG, "app")


def test_the_bill_of_the_last_day_is_not_there_yet(box: Sandbox) -> None:
    box.add_endpoint("chat", "ml.g5.xlarge", created=box.clock.now - timedelta(days=10))
    reader = CostExplorerBill(box.client("ce"))
    list(reader.lines(scope(box)))
    assert reader.nature().provisional


class Answers:
    """Cost Explorer with these pages."""

    def __init__(self, pages: list[dict[str, Any]]) -> None:
        self.pages, self.asked = iter(pages), list[dict[str, Any]]()

    def get_cost_and_usage(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        return next(self.pages)


def day(at: datetime, *groups: tuple[str, str, float, float, float], unit: str = "USD") -> dict[str, Any]:
    return {
        "TimePeriod": {"Start": f"{at:%Y-%m-%d}", "End": f"{at + DAY:%Y-%m-%d}"},
        "Estimated": True,
        "Groups": [
            {
                "Keys": [kind, other],
                "Metrics": {
                    "UnblendedCost": {"Amount": str(listed), "Unit": unit},
                    "AmortizedCost": {"Amount": str(paid), "Unit": unit},
                    "UsageQuantity": {"Amount": str(hours), "Unit": "Hrs"},
                },
            }
            for kind, other, listed, paid, hours in groups
        ],
    }


def of(*pages: dict[str, Any], tag: str = "") -> tuple[CostExplorerBill, Answers]:
    answers = Answers(list(pages))
    client: Any = answers
    return CostExplorerBill(client, tag), answers


def week(courses: list[Course]) -> Iterator[dict[str, Any]]:
    """The daily bill of courses, with what every bill has beside."""
    for number in range(7):
        at = START + number * DAY
        kinds: dict[str, float] = {}
        for course in courses:
            for one in course.ran():
                hours = max(timedelta(0), min(one.end, at + DAY) - max(one.start, at)) / timedelta(hours=1)
                kinds[one.instance_type] = kinds.get(one.instance_type, 0.0) + hours
        usd = {"ml.g5.12xlarge": 7.09, "ml.g5.xlarge": 1.41}
        rows = [(f"EU-Host:{kind}", "Usage", usd[kind] * h, usd[kind] * h, h) for kind, h in kinds.items() if h]
        yield day(
            at, *rows, ("EU-Host:ml.g5.xlarge", "Credit", -1.0, -1.0, 0), ("EU-Train:ml.g5.xlarge", "Usage", 5, 5, 3)
        )


def test_a_moved_endpoint_is_reconciled_with_its_types_together() -> None:
    courses = [Course("chat-0", START + timedelta(days=2, hours=7, minutes=11)), Course("chat-1", None)]
    days = list(week(courses))
    reader, answers = of({"ResultsByTime": days[:3], "NextPageToken": "n"}, {"ResultsByTime": days[3:]})
    found = reconcile_with_bill(lambda: reader, records(courses), START, END, NOW)
    assert found.level is BillLevel.TYPE
    (row,) = found.rows
    truth = sum(one.true_cost(START, END) for one in courses)
    assert float(row.billed) == pytest.approx(truth, rel=0.01)
    without = 2 * courses[1].true_cost(START, END)
    assert float(row.reconciled) == pytest.approx(without - truth, rel=0.01)
    assert dict(found.aside) == {"credit": Decimal("-7.00"), "other SageMaker charges": Decimal("35.00")}
    assert answers.asked[1]["NextPageToken"] == "n"
    assert answers.asked[0]["TimePeriod"] == {"Start": f"{START:%Y-%m-%d}", "End": f"{END:%Y-%m-%d}"}


def test_pages_end_before_they_cost_much() -> None:
    page = {"ResultsByTime": [], "NextPageToken": "again"}
    reader, answers = of(*[page] * 20)
    with pytest.raises(ReadError, match=r"over 8 pages, at USD 0\.01 each"):
        list(reader.lines(BillWindow("1", "eu-west-1", START, END)))
    assert len(answers.asked) == MOST_PAGES


def test_owners_are_compared_by_the_tag_that_names_them() -> None:
    courses = [Course("chat-0", None), Course("chat-1", None)]
    pages = [day(START + n * DAY, ("EU-Host:ml.g5.12xlarge", "owner$search", 340.32, 340.32, 48)) for n in range(7)]
    reader, _ = of({"ResultsByTime": pages}, tag="owner")
    (row,) = reconcile_with_bill(lambda: reader, records(courses), START, END, NOW).rows
    assert (row.name, row.endpoints) == ("search", 2)
    assert row.difference == 0


def test_what_cost_explorer_cannot_mean_is_refused() -> None:
    reader, _ = of({"ResultsByTime": [day(START, ("EU-Host:ml.g5.xlarge", "Usage", float("nan"), 1, 1))]})
    with pytest.raises(InputError, match="answers the amount 'nan'"):
        list(reader.lines(BillWindow("1", "eu-west-1", START, END)))
    paid_in_euro = day(START, ("EU-Host:ml.g5.xlarge", "Usage", 1, 1, 1), unit="EUR")
    reader, _ = of({"ResultsByTime": [paid_in_euro]})
    assert "'EUR'" in reconcile_with_bill(lambda: reader, records([Course("chat-0", None)]), START, END, NOW).reason


def test_a_missing_right_is_the_reason(box: Sandbox) -> None:
    class Denied:
        def get_cost_and_usage(self, **_: Any) -> Any:
            from botocore.exceptions import ClientError

            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetCostAndUsage")

    client: Any = Denied()
    with pytest.raises(PermissionMissingError, match="ce:GetCostAndUsage"):
        list(CostExplorerBill(client).lines(scope(box)))
    found = reconcile_with_bill(lambda: CostExplorerBill(client), records([Course("chat-0", None)]), START, END, NOW)
    assert "ce:GetCostAndUsage is missing" in found.reason
