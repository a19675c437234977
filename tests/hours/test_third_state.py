"""Stopped hours are neither idle nor unknown: what an evaluation says after nights of office hours."""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta

import pytest

from rightsizer.aws.account import FOR_A_DECISION, EndpointQuotas
from rightsizer.aws.endpoints import SageMakerFleet
from rightsizer.aws.hours import HoursTable
from rightsizer.aws.metrics import CloudWatchMetrics
from rightsizer.aws.prices import OrderedPrices, Snapshot
from rightsizer.aws.recommendations import Recommendations
from rightsizer.aws.session import Session
from rightsizer.aws.table import Table
from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.endpoint import Endpoint
from rightsizer.domain.history import History
from rightsizer.domain.hours_record import CONFIG_OUTPUT, HoursRecord
from rightsizer.domain.policy import Policy
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.domain.trigger import EvaluationReason
from rightsizer.errors import ThrottledError
from rightsizer.flows.evaluate import AskedEndpoints, EvaluatePorts, NotDone, RecommendationSink, evaluate
from rightsizer.recommender.proposal import ChangePermission
from rightsizer.recommender.usage_days import configured_at, last_modified
from sandbox.sagemaker.load import Served
from sandbox.traffic import hardware
from tests.hours.world import KIND, NAME, OPENS, HoursWorld, fallback, hours_world

type Hours = Callable[[Collection[str]], Mapping[str, HoursRecord]]
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
THURSDAY_NIGHT = datetime(2026, 11, 5, 21, 0, tzinfo=UTC)


def working_day(at: datetime, instance_type: str, count: int) -> Served:
    """Requests from 8 until 18 o'clock in Berlin."""
    return Served(90 if 7 <= at.hour < 17 else 0, latency_ms=100, gpu=20.0, gpu_memory=30.0)


def observed(w: HoursWorld) -> Endpoint:
    with w.box.gate.unrecorded():
        fleet = SageMakerFleet(Session(region=w.box.region, attempts=1))
        (endpoint,) = fleet.observe(list(fleet.find([NAME])))
    assert isinstance(endpoint, Endpoint)
    return endpoint


def evaluated(w: HoursWorld, hours: Hours | None = None) -> list[object]:
    """What the deployed evaluation says now, on the real adapters."""
    account, clock = Session(region=w.box.region, attempts=1), lambda: w.now
    table = Table(w.box.client("dynamodb"), "t")
    store = Recommendations(table, clock)
    ports = EvaluatePorts(
        SageMakerFleet(account),
        CloudWatchMetrics(account, workers=1),
        OrderedPrices([Snapshot()], clock),
        EndpointQuotas(account, clock, FOR_A_DECISION),
        hardware(),
        DIMENSIONS,
        store.history,
        hours=hours or HoursTable(table).of_endpoints,
    )
    sink = RecommendationSink(store, lambda _: ChangePermission(False, ""), 14)
    with w.others():
        return list(
            evaluate(ports, sink, Policy(lookback_days=7), AskedEndpoints([NAME], EvaluationReason.FULL_SWEEP), w.now)
        )


def recommended(w: HoursWorld, hours: Hours | None = None) -> Recommendation:
    (found,) = evaluated(w, hours)
    assert isinstance(found, Recommendation), found
    return found


def test_nights_keep_the_days_before_them_and_take_no_confidence_away() -> None:
    with hours_world(scaled=False) as w:
        w.box.load(NAME, working_day)
        first = observed(w).modified_at
        w.until(THURSDAY_NIGHT - 10 * HOUR, every=HOUR / 4)
        now, history = observed(w), History(stopped=w.record.stopped_times)
        assert now.modified_at > first, "it was created again this morning"
        assert (last_modified(now, history), configured_at(now, history)) == (first, first)
        found = recommended(w)
        assert found.evidence is not None
        assert found.evidence.valid_share > 0.97
        assert found.finding is not Finding.NOT_ENOUGH_DATA
        assert found.fingerprint.split("|")[1] == first.isoformat(), "no morning makes another proposal"
        w.until(THURSDAY_NIGHT - 9 * HOUR)
        assert (w.state.value, w.told) == ("running", [])


def test_without_its_records_a_morning_would_be_a_new_endpoint() -> None:
    with hours_world(scaled=False) as w:
        w.box.load(NAME, working_day)
        w.until(THURSDAY_NIGHT - 10 * HOUR, every=HOUR / 4)
        assert recommended(w, lambda _: {}).finding is Finding.NOT_ENOUGH_DATA


def test_an_endpoint_that_is_asleep_or_on_its_way_is_left_as_it_was() -> None:
    with hours_world(scaled=False) as w:
        w.box.load(NAME, working_day)
        w.until(OPENS - 10 * HOUR)
        assert not w.exists()
        assert evaluated(w) == []
        while not w.exists():
            w.until(w.now + timedelta(minutes=5))
        assert w.record.holds_lock
        assert evaluated(w) == []
        w.until(OPENS)
        assert len(evaluated(w)) == 1


def test_records_that_cannot_be_read_put_the_evaluation_off() -> None:
    with hours_world(scaled=False) as w:
        w.box.load(NAME, working_day)
        w.until(OPENS)

        def throttled(_: Collection[str]) -> Mapping[str, HoursRecord]:
            raise ThrottledError("reading the table")

        (found,) = evaluated(w, throttled)
        assert isinstance(found, NotDone)


def test_a_morning_on_the_fallback_or_by_somebody_else_is_a_new_endpoint() -> None:
    with hours_world(scaled=False, more_tags={"rightsizer:fallback-config": "small"}) as w:
        fallback(w)
        w.until(OPENS - 10 * HOUR)
        w.box.world.fleet.scarce.add(KIND)
        w.until(OPENS + 2 * HOUR)
        assert w.box.config_name(NAME) == "small"
        assert w.record.stopped_times[-1].modified_at is None
    with hours_world(scaled=False) as w:
        w.until(OPENS - 10 * HOUR)
        with w.others() as sagemaker:
            sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName=f"{NAME}-config")
        w.until(OPENS)
        assert w.state.value == "running"
        assert w.record.stopped_times[-1].modified_at is None


def test_a_configuration_that_was_made_anew_at_night_is_another_one() -> None:
    with hours_world(scaled=False) as w:
        w.until(OPENS - 10 * HOUR)
        with w.others() as sagemaker:
            body = sagemaker.describe_endpoint_config(EndpointConfigName=f"{NAME}-config")
            sagemaker.delete_endpoint_config(EndpointConfigName=f"{NAME}-config")
            same = {key: value for key, value in body.items() if key not in {*CONFIG_OUTPUT, "ResponseMetadata"}}
            sagemaker.create_endpoint_config(EndpointConfigName=f"{NAME}-config", **same)
        w.until(OPENS)
        assert w.state.value == "running"
        assert w.record.stopped_times[-1].modified_at is None


@pytest.mark.parametrize("days", [1, 3])
def test_each_morning_tells_by_which_time_the_endpoint_was_known_before(days: int) -> None:
    with hours_world(scaled=False) as w:
        first = observed(w).modified_at
        w.until(OPENS + (days - 1) * DAY, every=HOUR / 4)
        times = w.record.stopped_times
        assert [t.was_modified_at for t in times] == [first, *(t.modified_at for t in times[:-1])]
        assert times[-1].modified_at == observed(w).modified_at
