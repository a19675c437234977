"""Proposed office hours as advice: the labelled cases of tests/cases/hours, the words, and who is not asked."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from rightsizer.domain.account_finding import AccountFinding, AccountFindingCode
from rightsizer.domain.endpoint import EndpointKind, Mode
from rightsizer.domain.office_hours import ALWAYS_OPEN, parse_hours
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.render.rest_of_bill import is_worth_listing
from rightsizer.reporting.hours_finding import (
    HoursEvidence,
    evidence_days,
    hours_finding,
    quiet_endpoints,
    tag_command,
)
from sandbox.template import QUICK
from tests.reporting.hours_kit import NOW, of_words
from tests.samples import option, price, recommendation

CASES = sorted((Path(__file__).parents[1] / "cases" / "hours").glob("*.yaml"))
WORDS = {"why", "endpoint", "zone", "days", "requests", "strays", "unknown", "metrics_days", "expect"}
WORDS |= {"instances_at_night"}
HOURLY = Decimal("1.40")


def endpoint(case: dict[str, Any]) -> Recommendation:
    said = case.get("endpoint", {})
    kind, count = said.get("type", "ml.g5.xlarge"), said.get("count", 1)
    return recommendation(
        "chat",
        kind=EndpointKind(said.get("kind", "real-time")),
        owned_by=said.get("owned_by", ""),
        instance_type=kind,
        instance_count=count,
        price=price(kind, str(HOURLY)),
        usd_per_month=HOURLY * count * 730,
        finding=Finding.OPTIMIZED,
        options=(),
    )


def found(case: dict[str, Any]) -> AccountFinding | None:
    tags = case.get("endpoint", {}).get("tags", {})
    assert evidence_days(tags) == case.get("days", 28)
    return hours_finding(endpoint(case), HoursEvidence(tags, of_words(case)), case.get("zone", "UTC"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_case_is_judged_as_labelled(path: Path) -> None:
    case = yaml.load(path.read_text(), QUICK)
    assert case["why"]
    assert set(case) <= WORDS
    expected, told = case["expect"], found(case)
    if not expected:
        assert told is None
        return
    assert told is not None
    assert (told.code, told.endpoint) == (AccountFindingCode.OFFICE_HOURS, "chat")
    if "reason" in expected:
        assert told.evidence["reason"] == expected["reason"]
        assert told.usd_per_month == 0
        assert not is_worth_listing(told)
        return
    assert f"'{expected['hours']}'" in told.what
    assert f'"Value": "{expected["hours"]}"' in told.advice
    assert {item.name: item.detail for item in told.items} == expected["closed_doors"]
    assert told.usd_per_month is not None
    low, high = expected.get("saves", (1, 10**6))
    assert low <= told.usd_per_month <= high
    assert is_worth_listing(told)


def nights() -> AccountFinding:
    told = found({"requests": ["mon-fri 09:00-17:00"]})
    assert told is not None
    return told


def test_the_money_is_what_runs_in_closed_hours_and_the_start_is_billed() -> None:
    told = nights()
    billed = 45 + 5 * 55 / 60
    saving = round(Decimal(168 - billed) / 168 * HOURLY * 730, 2)
    assert told.usd_per_month is not None
    assert abs(told.usd_per_month - saving) < Decimal("0.02")
    assert told.evidence["with these hours"].startswith(f"{billed:.1f} of 168 hours a week are billed, with 45 minutes")
    assert told.evidence["priced by"] == (
        "1 × ml.g5.xlarge in the closed hours, $1.40 an hour (price-list-api, 2026-01-05), before commitments,"
        " which go on being billed"
    )


def test_nobody_at_a_closed_door_is_said_and_what_was_not_checked_too() -> None:
    told = nights()
    assert told.evidence["closed door"] == "none of 38,400 requests would have met one"
    assert any("summer time" in text for text in told.not_checked)
    assert any("end of a month" in text for text in told.not_checked)


def test_the_way_to_say_no_is_a_value_that_never_closes() -> None:
    hours = parse_hours(ALWAYS_OPEN)
    assert ALWAYS_OPEN in nights().advice
    opening = hours.opening(NOW)
    assert opening is not None
    assert (opening.end - NOW).days >= 7


def test_without_a_price_the_saving_is_not_known() -> None:
    one = replace(endpoint({}), price=None, usd_per_month=None)
    told = hours_finding(one, HoursEvidence({}, of_words({"requests": ["mon-fri 09:00-17:00"]})), "UTC")
    assert told is not None
    assert told.usd_per_month is None
    assert told.evidence["priced by"] == "no price is known for its type"


def test_with_an_option_of_its_own_both_savings_do_not_add_up() -> None:
    smaller = option(saving_usd_per_month=Decimal(511))
    one = replace(endpoint({}), finding=Finding.OVER_PROVISIONED, options=(smaller,))
    told = hours_finding(one, HoursEvidence({}, of_words({"requests": ["mon-fri 09:00-17:00"]})), "UTC")
    assert told is not None
    assert told.usd_per_month is not None
    left = Decimal(told.evidence["after its own option"].split()[1])
    assert abs(left - told.usd_per_month / 2) < Decimal("0.02")


def test_a_saving_too_small_is_no_proposal() -> None:
    one = replace(endpoint({}), price=price("ml.g5.xlarge", "0.005"), usd_per_month=Decimal("3.65"))
    told = hours_finding(one, HoursEvidence({}, of_words({"requests": ["mon-fri 09:00-17:00"]})), "UTC")
    assert told is not None
    assert told.evidence["reason"] == "saving-too-small"


def test_only_quiet_endpoints_are_looked_at_the_dearest_first() -> None:
    night = (0.0,) * 12 + (30.0,) * 12
    quiet = recommendation("quiet", hourly_requests=night * 14, usd_per_month=Decimal(900))
    dear = recommendation("dear", hourly_requests=night * 14, usd_per_month=Decimal(9000))
    others = [
        recommendation("busy", hourly_requests=(5.0,) * 336),
        recommendation("unknown", hourly_requests=(None,) * 168 + (5.0,) * 168),
        recommendation("idle", hourly_requests=(0.0,) * 336, finding=Finding.IDLE),
        recommendation("off", hourly_requests=night * 14, mode=Mode.OFF),
    ]
    assert [one.ref.name for one in quiet_endpoints([quiet, *others, dear])] == ["dear", "quiet"]


def test_the_command_sets_the_tag_of_the_endpoint() -> None:
    said = tag_command(endpoint({}), "mon-fri 08:00-19:00 Europe/Berlin")
    assert said == (
        "aws sagemaker add-tags --region eu-west-1 --resource-arn"
        " arn:aws:sagemaker:eu-west-1:111122223333:endpoint/chat"
        ' --tags \'[{"Key": "rightsizer:hours", "Value": "mon-fri 08:00-19:00 Europe/Berlin"}]\''
    )


@pytest.mark.parametrize(
    ("own", "others", "said"),
    [
        ((), (), "45 minutes are taken until one was measured"),
        (
            (),
            (300.0, 540.0),
            "45 minutes are taken until one was measured; 2 of this account's other endpoints took 9 at most",
        ),
        ((240.0, 420.0), (540.0,), "7 minutes at most, by its own last 2"),
    ],
)
def test_a_start_is_said_by_own_measurements(own: tuple[float, ...], others: tuple[float, ...], said: str) -> None:
    evidence = HoursEvidence({}, of_words({"requests": ["mon-fri 09:00-17:00"]}), own, others)
    told = hours_finding(endpoint({}), evidence, "UTC")
    assert told is not None
    assert told.evidence["a start takes"] == said
