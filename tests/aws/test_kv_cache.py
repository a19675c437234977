"""The KV cache through the real requests, signed and sent, on the sandbox: known, or no harm done."""

import json
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.aws.account import FOR_A_DECISION, EndpointQuotas
from rightsizer.aws.detailed_metrics import KvCaches, parse_shares, query_of
from rightsizer.aws.endpoints import SageMakerFleet
from rightsizer.aws.metrics import CloudWatchMetrics
from rightsizer.aws.models import SMALLEST, facts_of, weights_size
from rightsizer.aws.prices import OrderedPrices, PriceList, Snapshot
from rightsizer.aws.session import Session
from rightsizer.dimensions import DIMENSIONS
from rightsizer.domain.history import History
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import Grid, KeptUsage, Series, VariantUsage
from rightsizer.flows.evaluate import Evaluated, EvaluatePorts, ProgressWatcher, recommendations
from rightsizer.flows.read_usage import UsageCache, UsageReader
from sandbox.account import Sandbox
from sandbox.server import serve
from sandbox.traffic import Workload, hardware, write_past

NAME, TYPE, DAYS = "chat", "ml.g6e.xlarge", 3
BUCKET, PREFIX = "weights", "llama/"
VLLM, METRIC = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/vllm:0.9", "vllm:kv_cache_usage_perc"
SOURCE = {"S3Uri": f"s3://{BUCKET}/{PREFIX}", "S3DataType": "S3Prefix", "CompressionType": "None"}
WORK = Workload(lambda _: 30.0, TYPE, gpu_s=0.5, preallocates=True)
GIB = 1 << 30


@pytest.fixture(autouse=True)
def sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of some KiB stand for as many GiB."""
    monkeypatch.setattr("rightsizer.aws.models.SMALLEST", 1024)


def add(box: Sandbox, *, observed: bool = True, image: str = VLLM, home: str = TYPE, weights: bool = True) -> None:
    container: dict[str, Any] = {"Image": image}
    if weights:
        container["ModelDataSource"] = {"S3DataSource": SOURCE}
    box.add_endpoint(NAME, home, observability=observed, model={"Containers": [container]})
    write_past(box, NAME, Workload(WORK.shape, home, gpu_s=0.5, preallocates=True), days=DAYS)
    s3 = box.client("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": box.region})
    s3.put_object(Bucket=BUCKET, Key=f"{PREFIX}model-1.safetensors", Body=b"x" * 4096)
    s3.put_object(Bucket=BUCKET, Key=f"{PREFIX}original.pth", Body=b"x" * 4096)
    box.calls.clear()


def publish(box: Sandbox, share: float = 0.1, host: str = "i-0", metric: str = METRIC, days: int = DAYS) -> None:
    start = box.clock.now - timedelta(days=days)
    box.world.telemetry.put(metric, NAME, "AllTraffic", start, 60, [share] * (days * 1440), host)


def found(box: Sandbox, account: Session) -> tuple[str, str, list[Reason]]:
    """The rung and the figure of the KV cache, through fleet, metrics and rules, and what was told beside them."""
    fleet, told = SageMakerFleet(account), list[Reason]()
    ports = EvaluatePorts(
        fleet,
        CloudWatchMetrics(account),
        OrderedPrices([PriceList(account, lambda: box.clock.now), Snapshot()], lambda: box.clock.now),
        EndpointQuotas(account, lambda: box.clock.now, FOR_A_DECISION),
        hardware(),
        DIMENSIONS,
    )
    watcher, policy = ProgressWatcher(told=told.append), Policy(lookback_days=DAYS)
    (one,) = recommendations(ports, list(fleet.list_endpoints()), policy, box.clock.now, watcher)
    assert isinstance(one, Evaluated), one
    evidence = one.recommendation.evidence
    assert evidence is not None
    return evidence.rung, evidence.figures.get("KV cache", ""), told


def asked(box: Sandbox) -> list[Any]:
    return box.calls.of("cloudwatch", "QueryMetrics")


CLASSIC = ("L1", "")


@pytest.mark.parametrize(
    "metric", [METRIC, "vllm_kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"]
)
def test_the_use_of_the_cache_is_read_where_the_configuration_publishes_it(
    box: Sandbox, account: Session, metric: str
) -> None:
    add(box)
    publish(box, 0.1, metric=metric)
    rung, figure, told = found(box, account)
    assert (rung, told) == ("L3", [])
    assert figure == "at most 10 % of 40.2 GiB in use"


def test_of_several_instances_the_fullest_counts(box: Sandbox, account: Session) -> None:
    add(box)
    publish(box, 0.1)
    publish(box, 0.4, host="i-1")
    assert found(box, account)[1].startswith("at most 40 % of")


def test_a_day_is_asked_by_itself(box: Sandbox, account: Session) -> None:
    add(box)
    publish(box)
    found(box, account)
    spans = [(call.params["Start"], call.params["End"]) for call in asked(box)]
    assert len(spans) == DAYS, "whole days"
    assert all(end - start < 86400 and end % 300 == 0 for start, end in spans)


def test_the_request_is_signed_and_sent_to_the_address_that_is_set(box: Sandbox) -> None:
    add(box)
    publish(box)
    with serve(box) as address:
        rung, _, told = found(box, Session(box.region, endpoint_url=address, attempts=1))
    assert (rung, told) == ("L3", [])


@pytest.mark.parametrize(
    "other",
    [
        {"observed": False},
        {"image": "763104351884.dkr.ecr.eu-west-1.amazonaws.com/pytorch-inference:2"},
        {"home": "ml.g5.12xlarge"},
        {"weights": False},
    ],
)
def test_nothing_more_is_asked_of_other_endpoints(box: Sandbox, account: Session, other: dict[str, Any]) -> None:
    add(box, **other)
    publish(box)
    assert found(box, account)[0] == "L1"
    assert asked(box) == []
    if other.keys() & {"observed", "image"}:
        assert box.calls.of("s3") == []


@pytest.mark.parametrize(
    ("code", "told_as"),
    [
        ("AccessDeniedException", Code.PERMISSION_MISSING),
        ("ThrottlingException", Code.THROTTLED),
        ("ServiceUnavailable", Code.READ_FAILED),
        ("InternalServerError", Code.READ_FAILED),
    ],
)
def test_a_failure_leaves_the_judgement_as_it_is_and_is_told(
    box: Sandbox, account: Session, code: str, told_as: Code
) -> None:
    add(box)
    publish(box)
    box.gate.fail("cloudwatch", "QueryMetrics", code, "no", times=99)
    rung, figure, told = found(box, account)
    assert (rung, figure) == CLASSIC
    assert [reason.code for reason in told] == [told_as]
    assert "KV cache of chat/AllTraffic" in told[0].sentence


def test_what_failed_once_is_not_asked_again_in_the_same_reading(box: Sandbox, account: Session) -> None:
    add(box)
    box.deny("cloudwatch:GetMetricData")
    caches, grid = KvCaches(account), Grid(box.clock.now - timedelta(days=2), box.clock.now, 300)
    first, second = (caches.read(name, "AllTraffic", grid) for name in ("a", "b"))
    assert isinstance(first, Reason)
    assert first == second
    assert len(asked(box)) == 1


def test_a_cache_that_is_not_published_costs_two_requests_and_is_told(box: Sandbox, account: Session) -> None:
    add(box)
    rung, figure, told = found(box, account)
    assert (rung, figure) == CLASSIC
    assert [reason.code for reason in told] == [Code.NO_DATAPOINTS]
    assert len(asked(box)) == 2


@pytest.mark.parametrize("share", [1.5, -0.1, float("inf")])
def test_what_is_no_share_is_not_believed(box: Sandbox, account: Session, share: float) -> None:
    add(box)
    publish(box, share)
    rung, _, told = found(box, account)
    assert rung == "L1"
    assert [reason.code for reason in told] == [Code.READ_FAILED]


def test_weights_that_may_not_be_listed_are_told(box: Sandbox, account: Session) -> None:
    add(box)
    publish(box)
    box.deny("s3:ListObjectsV2")
    rung, _, told = found(box, account)
    assert rung == "L1"
    assert "s3:ListBucket" in told[0].sentence
    assert asked(box) == []


class Kept:
    """A store of daily usage in which nothing lasts but what is looked at here."""

    def __init__(self) -> None:
        self.saved: list[KeptUsage] = []

    def load(self, page: str) -> list[KeptUsage]:
        return []

    def save(self, page: str, kept: Any) -> None:
        self.saved += kept


@pytest.mark.parametrize(("code", "kept"), [("ThrottlingException", 0), ("AccessDeniedException", 1), ("", 1)])
def test_days_that_lack_the_cache_for_what_may_pass_are_read_again(
    box: Sandbox, account: Session, code: str, kept: int
) -> None:
    add(box)
    publish(box)
    if code:
        box.gate.fail("cloudwatch", "QueryMetrics", code, times=99)
    fleet, store = SageMakerFleet(account), Kept()
    endpoints: list[Any] = list(fleet.observe(list(fleet.list_endpoints())))
    reader = UsageReader(
        CloudWatchMetrics(account), hardware(), lambda _: History(), Policy(lookback_days=DAYS), UsageCache(store, 1)
    )
    assert isinstance(reader.read(endpoints, box.clock.now)[NAME], VariantUsage)
    assert len(store.saved) == kept
    assert all(day.kv_cache for one in store.saved for day in one.days) is (code == "" or not kept)


def test_names_with_dots_are_quoted() -> None:
    query = query_of("chat", "blue", 300)
    terms = query.split(" or ")
    assert terms[0] == (
        'max(max_over_time({"vllm:kv_cache_usage_perc","aws.sagemaker.endpoint.name"="chat",'
        '"aws.sagemaker.variant.name"="blue"}[300s]))'
    )
    assert not re.search(r"[^\"](aws|vllm|sglang)[.:_]", query)


DAY = Grid(datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 3, tzinfo=UTC), 300)
START = DAY.start.timestamp()


def body(*series: list[list[Any]], **more: Any) -> bytes:
    data = {"resultType": "matrix", "result": [{"metric": {}, "values": values} for values in series]}
    return json.dumps({"status": "success", "data": data} | more).encode()


def test_a_value_belongs_to_the_period_that_it_ends() -> None:
    (first, second) = parse_shares(body([[START + 300, "0.25"], [START + 86400, "1"]]), DAY)
    assert first == (DAY.start, 0.25)
    assert second == (DAY.end - timedelta(minutes=5), 1.0)


def test_moments_outside_and_values_that_are_none_are_left_out() -> None:
    assert list(parse_shares(body([[START, "0.5"], [START + 86700, "0.5"], [START + 300, "NaN"]]), DAY)) == []


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        b"[]",
        b'{"status": "error", "errorType": "timeout", "error": "query timed out"}',
        body([[START + 300, "0.1"]], warnings=["the result was cut off at 500 series"]),
        b'{"status": "success", "data": {"resultType": "vector", "result": []}}',
    ],
)
def test_an_answer_that_is_not_whole_is_none(answer: bytes) -> None:
    with pytest.raises((ValueError, TypeError, LookupError)):
        list(parse_shares(answer, DAY))


class Answers:
    """A session whose client answers what it is told."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    def client(self, service: str, *, seconds: float) -> "Answers":
        return self

    def query_metrics(self, **_: Any) -> dict[str, Any]:
        return {"Body": self}

    def read(self, amount: int) -> bytes:
        return self.answer[:amount]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NEARLY = st.fixed_dictionaries(
    {
        "status": st.just("success"),
        "data": st.fixed_dictionaries(
            {"resultType": st.just("matrix"), "result": JSON | st.lists(st.fixed_dictionaries({"values": JSON}))}
        )
        | JSON,
    }
)


@given(st.binary() | JSON.map(lambda found: json.dumps(found).encode()) | NEARLY.map(lambda f: json.dumps(f).encode()))
def test_no_answer_stops_the_reading(answer: bytes) -> None:
    session: Any = Answers(answer)
    assert isinstance(KvCaches(session).read("chat", "AllTraffic", DAY), Reason | Series)


@pytest.mark.parametrize(
    "answer",
    [body([["inf", "0.1"]]), body([[START + 300, 10**400]]), b"[" * 100_000, body([["x", "0.1"]]), body([[1]]), b"{}"],
    ids=["no moment", "too large", "too deep", "no number", "no pair", "nothing"],
)
def test_an_odd_answer_is_told_and_stops_nothing(answer: bytes) -> None:
    session: Any = Answers(answer)
    found = KvCaches(session).read("chat", "AllTraffic", DAY)
    assert isinstance(found, Reason)
    assert found.code is Code.READ_FAILED


@pytest.mark.parametrize(
    ("container", "places"),
    [
        ({"ModelDataSource": {"S3DataSource": SOURCE}}, (SOURCE["S3Uri"],)),
        ({"ModelDataSource": {"S3DataSource": SOURCE | {"CompressionType": "Gzip"}}}, ()),
        ({"ModelDataUrl": "s3://weights/model.tar.gz"}, ()),
        ({"ModelDataSource": {"S3DataSource": SOURCE}, "Environment": {"HF_MODEL_ID": "meta/llama"}}, ()),
        (
            {"ModelDataSource": {"S3DataSource": SOURCE}, "Environment": {"SM_VLLM_MODEL": "/opt/ml/model"}},
            (SOURCE["S3Uri"],),
        ),
        ({}, ()),
    ],
)
def test_weights_are_known_where_all_that_is_loaded_lies_there_unpacked(
    container: dict[str, Any], places: tuple[str, ...]
) -> None:
    assert facts_of({"PrimaryContainer": container}, "111122223333").weights == places


def of(*pages: dict[str, Any]) -> Any:
    """An S3 client with these pages of (key, size)."""

    left = list(pages)
    return SimpleNamespace(list_objects_v2=lambda **_: left.pop(0))


def page(sizes: dict[str, int], more: bool = False) -> dict[str, Any]:
    rows = [{"Key": key, "Size": size} for key, size in sizes.items()]
    return {"Contents": rows, "IsTruncated": more, "NextContinuationToken": "n"}


def size_of(client: Any, place: str = "s3://b/m/") -> int | None:
    return weights_size(client, [place])


def test_all_pages_are_added_up() -> None:
    assert size_of(of(page({"a": 3 * GIB}, more=True), page({"b": 2 * GIB}))) == 5 * GIB
    assert size_of(of(*[page({"a": 3 * GIB}, more=True)] * 9)) is None


def test_safetensors_alone_count_where_there_are_any() -> None:
    assert size_of(of(page({"m/a.safetensors": 3 * GIB, "m/a.pth": 3 * GIB}))) == 3 * GIB


def test_what_is_too_small_for_weights_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rightsizer.aws.models.SMALLEST", SMALLEST)
    assert size_of(of(page({"m/serving.properties": 4096}))) is None


def test_a_key_is_no_prefix() -> None:
    assert size_of(of(page({"model": 3 * GIB, "model2": 9 * GIB})), "s3://b/model") == 3 * GIB
