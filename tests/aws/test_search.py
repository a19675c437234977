"""What Search tells is believed where a listing or a configuration agrees with it; everything else is described."""

from datetime import UTC, datetime, timedelta

import pytest

from rightsizer.aws.endpoint_memory import FEWEST, RECORDS, VALUE_LENGTH, SearchReader
from rightsizer.aws.endpoints import SageMakerFleet
from rightsizer.aws.session import Session
from rightsizer.domain.endpoint import Observation
from rightsizer.domain.trigger import ListedEndpoint
from sandbox.account import Sandbox

NAMES = tuple(f"e-{number}" for number in range(FEWEST + 1))


def observe(account: Session) -> dict[str, Observation]:
    fleet = SageMakerFleet(account)
    return {seen.ref.name: seen for seen in fleet.observe(list(fleet.list_endpoints()))}


def described(box: Sandbox) -> tuple[int, int, int]:
    counts = box.calls.counts()
    return tuple(counts[f"sagemaker:{one}"] for one in ("Search", "DescribeEndpoint", "DescribeModel"))  # type: ignore[return-value]


@pytest.fixture
def some(box: Sandbox) -> Sandbox:
    """An account with a few endpoints, each of its own model."""
    for name in NAMES:
        box.add_endpoint(name, instance_type="ml.g5.2xlarge", count=2)
    return box


def test_endpoints_and_models_are_searched_and_look_as_if_described(some: Sandbox, account: Session) -> None:
    some.add_endpoint("async", asynchronous=True)
    found = observe(account)
    assert described(some) == (2, 0, 0)
    some.calls.clear()
    some.deny("sagemaker:Search")
    assert observe(account) == found
    assert described(some)[1:] == (len(found), len(found))


def test_what_the_index_has_not_yet_is_described(some: Sandbox, account: Session) -> None:
    some.world.fleet.index_lag = timedelta(hours=1)
    some.add_endpoint("new", instance_type="ml.g5.xlarge", count=1, created=some.clock.now)
    assert "new" in observe(account)
    assert described(some) == (2, 1, 1)


def test_an_endpoint_that_a_policy_moves_is_described(some: Sandbox, account: Session) -> None:
    some.autoscale(NAMES[0], 1, 4)
    observe(account)
    assert described(some) == (2, 1, 0)


def test_few_endpoints_are_described_without_a_search(box: Sandbox, account: Session) -> None:
    for name in NAMES[: FEWEST - 1]:
        box.add_endpoint(name, instance_type="ml.g5.2xlarge", count=2)
    observe(account)
    assert described(box) == (0, FEWEST - 1, FEWEST - 1)


def test_a_record_of_another_time_or_on_its_way_is_not_believed(some: Sandbox, account: Session) -> None:
    reader, rows = SearchReader(account.client("sagemaker")), list(SageMakerFleet(account).list_endpoints())
    listed = [ListedEndpoint(one.ref.name, one.created_at, one.modified_at) for one in rows]
    later = listed[0].modified_at + timedelta(seconds=1)
    moved = [ListedEndpoint(listed[0].name, listed[0].created_at, later), *listed[1:]]
    assert set(reader.endpoints(moved)) == set(NAMES) - {listed[0].name}
    weights = [{"VariantName": "AllTraffic", "DesiredInstanceCount": 1}]
    some.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName=listed[1].name, DesiredWeightsAndCapacities=weights
    )
    assert listed[1].name not in reader.endpoints(listed)


def test_a_model_that_was_made_after_the_configuration_is_not_believed(some: Sandbox, account: Session) -> None:
    models = some.client("sagemaker").list_models(MaxResults=100)["Models"]
    reader = SearchReader(account.client("sagemaker"))
    made = {one["ModelName"]: one["CreationTime"] for one in models}
    assert set(reader.models(made)) == set(made)
    first = next(iter(made))
    early = made | {first: made[first] - timedelta(seconds=1)}
    assert set(reader.models(early)) == set(made) - {first}


def test_many_long_names_are_asked_within_the_limits_of_a_request(box: Sandbox, account: Session) -> None:
    names = [f"{number:063}" for number in range(250)]
    SearchReader(account.client("sagemaker")).models(dict.fromkeys(names, box.clock.now))
    filters = [call.params["SearchExpression"]["Filters"] for call in box.calls.of("sagemaker", "Search")]
    assert [len(one) for one in filters] == [7, 7, 4]
    assert all(len(each["Value"]) <= VALUE_LENGTH for one in filters for each in one)
    assert [name for one in filters for each in one for name in each["Value"].split(",")] == names
    assert all(sum(len(each["Value"].split(",")) for each in one) <= RECORDS for one in filters)


def test_a_model_without_a_time_is_described(account: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = SearchReader(account.client("sagemaker"))
    record = {"Model": {"ModelName": "m", "PrimaryContainer": {"Image": "i"}}}
    monkeypatch.setattr(reader, "_records", lambda *_: [record])
    assert reader.models({"m": datetime(2026, 11, 1, tzinfo=UTC)}) == {}
