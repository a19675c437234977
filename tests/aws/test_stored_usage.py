"""The stored daily usage: merged when two write at once, read in full when anything is wrong with them."""

import gc
import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest

from rightsizer.aws.s3 import S3DailyUsage, merge_usage
from rightsizer.domain.usage import SLOTS, DailyUsage, EachGpu, KeptUsage
from rightsizer.errors import InputError
from rightsizer.ports.evaluation import DailyUsageStore
from rightsizer.recommender.usage_days import page_of
from sandbox.account import Sandbox

BUCKET = "usage-of-the-tests"
MODIFIED = datetime(2026, 10, 1, tzinfo=UTC)
DAY = date(2026, 11, 1)
PAGE = "1/0000"


def usage(day: date, requests: float = 1.0) -> DailyUsage:
    none = (None,) * 4
    slots = (requests, None) * (SLOTS // 2)
    return DailyUsage(day, "ml.g5.xlarge", 1, slots, slots, (1.0,) * 24, ((7, 2.5),), 1.0, 0.0, *none)


def kept(name: str, until: date = date(2026, 11, 2), requests: float = 1.0) -> KeptUsage:
    return KeptUsage(name, "AllTraffic", MODIFIED, DAY, until, (usage(DAY, requests),))


@pytest.fixture
def bucket() -> Iterator[Sandbox]:
    with Sandbox() as box:
        s3 = box.client("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": s3.meta.region_name})
        yield box


def store(box: Sandbox) -> S3DailyUsage:
    return S3DailyUsage(box.client("s3"), BUCKET)


def test_what_was_kept_is_read_back_equal(bucket: Sandbox) -> None:
    writer: DailyUsageStore = store(bucket)
    assert writer.load(PAGE) == ()
    writer.save(PAGE, [kept("b"), kept("a")])
    assert store(bucket).load(PAGE) == (kept("a"), kept("b"))


def test_single_gpus_are_stored_and_days_from_before_them_are_read(bucket: Sandbox) -> None:
    day = replace(usage(DAY), gpus=2, each_gpu=EachGpu((0.5, 0.0), (0.25, 0.0)))
    seen = replace(kept("a"), days=(day,))
    store(bucket).save(PAGE, [seen])
    assert store(bucket).load(PAGE) == (seen,)
    without = replace(seen, days=(replace(day, each_gpu=None),))
    key, field = f"digests/{PAGE}.json.gz", ',"each_gpu":{"peaks":[0.5,0.0],"means":[0.25,0.0]}'
    outer = json.loads(gzip.decompress(bucket.client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read()))
    records = outer["records"].replace(field, "")
    assert "each_gpu" in outer["records"]
    assert "each_gpu" not in records
    old = json.dumps(outer | {"records": records, "crc32": zlib.crc32(records.encode())})
    bucket.client("s3").put_object(Bucket=BUCKET, Key=key, Body=gzip.compress(old.encode()))
    assert store(bucket).load(PAGE) == (without,)


@pytest.mark.parametrize("before", [[], [kept("z")]])
def test_two_writers_at_once_both_win(bucket: Sandbox, before: list[KeptUsage]) -> None:
    if before:
        store(bucket).save(PAGE, before)
    client = bucket.client("s3")
    put, others = client.put_object, [kept("b"), kept("c")]

    def overtaken(**asked: Any) -> Any:
        if others:
            with patch.object(client, "put_object", put):
                store(bucket).save(PAGE, [others.pop()])
        return put(**asked)

    with patch.object(client, "put_object", overtaken):
        store(bucket).save(PAGE, [kept("a")])
    assert [each.endpoint for each in store(bucket).load(PAGE)] == ["a", "b", "c", *("z" for _ in before)]


def test_no_page_stays_in_memory(bucket: Sandbox) -> None:
    store(bucket).save(PAGE, [kept("held")])
    reader = store(bucket)
    assert reader.load(PAGE)
    reader.save(PAGE, [kept("b")])
    gc.collect()
    assert not [one for one in gc.get_objects() if type(one) is KeptUsage and one.endpoint == "held"]


def test_saving_twice_changes_nothing(bucket: Sandbox) -> None:
    writer = store(bucket)
    writer.save(PAGE, [kept("a")])
    writer.save(PAGE, [kept("a")])
    assert store(bucket).load(PAGE) == (kept("a"),)


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"\x1f\x8b\x08 cut off", gzip.compress(b"[]", mtime=0), gzip.compress(b'{"format":1}', mtime=0)],
)
def test_a_corrupt_object_is_a_full_read_and_is_replaced(bucket: Sandbox, body: bytes) -> None:
    bucket.client("s3").put_object(Bucket=BUCKET, Key=f"digests/{PAGE}.json.gz", Body=body)
    writer = store(bucket)
    assert writer.load(PAGE) == ()
    writer.save(PAGE, [kept("a")])
    assert store(bucket).load(PAGE) == (kept("a"),)


def test_one_changed_figure_is_noticed(bucket: Sandbox) -> None:
    store(bucket).save(PAGE, [kept("a", requests=41.5)])
    s3, key = bucket.client("s3"), f"digests/{PAGE}.json.gz"
    body = gzip.decompress(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    assert b"41.5" in body
    s3.put_object(Bucket=BUCKET, Key=key, Body=gzip.compress(body.replace(b"41.5", b"14.5", 1)))
    assert store(bucket).load(PAGE) == ()


def test_a_bucket_that_is_gone_costs_a_full_read_and_no_failure(bucket: Sandbox) -> None:
    lost = S3DailyUsage(bucket.client("s3"), "no-such-bucket-anywhere")
    assert lost.load(PAGE) == ()
    lost.save(PAGE, [kept("a")])


def test_of_two_records_the_later_modification_stays_then_the_longer_one() -> None:
    long, short = kept("a", date(2026, 11, 5)), kept("a", date(2026, 11, 2))
    assert merge_usage([long], [short]) == [long]
    changed = replace(short, modified_at=MODIFIED + timedelta(days=1))
    assert merge_usage([long], [changed]) == [changed]


def test_endpoints_that_were_not_read_for_63_days_are_forgotten() -> None:
    assert merge_usage([kept("gone")], [kept("here", date(2027, 1, 20))]) == [kept("here", date(2027, 1, 20))]


def test_a_record_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InputError, match="before their first day"):
        kept("a", date(2026, 10, 1))


def test_a_page_holds_about_256_endpoints_and_its_name_depends_on_the_endpoint_alone() -> None:
    names = [f"endpoint-{i:04}" for i in range(1000)]
    pages = [page_of(name, 1000) for name in names]
    assert len(set(pages)) == 4
    assert max(pages.count(page) for page in set(pages)) < 300
    assert page_of("a", 10) == page_of("b", 200) == "1/0000"
    assert [page_of(name, 1000) for name in reversed(names)] == pages[::-1]


def test_a_longer_look_back_puts_fewer_endpoints_on_a_page() -> None:
    """63 days of 256 endpoints would not fit the memory of the function."""
    names = [f"endpoint-{i:04}" for i in range(1000)]
    pages = [page_of(name, 1000, 63) for name in names]
    assert max(pages.count(page) for page in set(pages)) <= 256 * 14 / 63
    assert page_of("a", 56, 63) == "1/0000"
    assert page_of("a", 58, 63).startswith("2/")
