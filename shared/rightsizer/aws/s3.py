"""Objects in the bucket: daily usage, reports and details pages.

Daily usage of complete days: one object per page of endpoints, written on the condition that nobody else did. Reports
go there too. Links to the bucket are made in `light`.
"""

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer import wire
from rightsizer.aws.errors import TRIES, code_of, translate_write_errors
from rightsizer.domain.usage import KeptUsage
from rightsizer.errors import InputError, ReadError
from rightsizer.telemetry import logger

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

FORMAT = 1
LOST = frozenset({"PreconditionFailed", "ConditionalRequestConflict"})
MISSING = frozenset({"NoSuchKey", "404", "AccessDenied"})
"""S3 says AccessDenied of an object that is not there to a role that may not list the bucket, as ours may not."""
FORGET = timedelta(days=63)
"""An endpoint that was not read for so long is gone: CloudWatch has forgotten its five-minute datapoints too."""


@dataclass(frozen=True, slots=True)
class _Page:
    kept: tuple[KeptUsage, ...]


class S3DailyUsage:
    """Port `DailyUsageStore`. Every failure is a cache miss, told in the log: the metrics themselves are the truth.

    No page stays in memory: one takes up to 300 MiB there, and a process meets them all.
    """

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def load(self, page: str) -> Sequence[KeptUsage]:
        """Usage stored under `page`."""
        return self._read(page)[1]

    def _read(self, page: str) -> tuple[str, tuple[KeptUsage, ...]]:
        """The page's ETag and what it keeps; an empty ETag where there is no page, or it could not be read."""
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=_key(page))
            tag, body = answer["ETag"], answer["Body"].read()
        except (ClientError, BotoCoreError) as error:
            if not isinstance(error, ClientError) or code_of(error) not in MISSING:
                logger.warning("the daily usage is not read", extra={"page": page, "problem": str(error)})
            return "", ()
        return tag, unpack_usage(body, page)

    def save(self, page: str, kept: Sequence[KeptUsage]) -> None:
        """Merge `kept` into the page as it is now; when another writer comes between, the page is read once more."""
        for _ in range(TRIES):
            tag, there = self._read(page)
            condition: dict[str, Any] = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"}
            try:
                self._client.put_object(
                    Bucket=self._bucket,
                    Key=_key(page),
                    Body=pack_usage(merge_usage(there, kept)),
                    ContentType="application/json",
                    ContentEncoding="gzip",
                    **condition,
                )
            except (ClientError, BotoCoreError) as error:
                if isinstance(error, ClientError) and code_of(error) in LOST:
                    continue
                logger.warning("the daily usage is not stored", extra={"page": page, "problem": str(error)})
                return
            return
        problem = f"another writer won {TRIES} times"
        logger.warning("the daily usage is not stored", extra={"page": page, "problem": problem})


def merge_usage(there: Sequence[KeptUsage], ours: Sequence[KeptUsage]) -> list[KeptUsage]:
    """One record for each variant: of two the later modification, then the one that was read further."""
    found = {(usage.endpoint, usage.variant): usage for usage in there}
    for usage in ours:
        other = found.get((usage.endpoint, usage.variant))
        if other is None or (usage.modified_at, usage.until) >= (other.modified_at, other.until):
            found[usage.endpoint, usage.variant] = usage
    newest = max((usage.until for usage in found.values()), default=date.min)
    return [found[key] for key in sorted(found) if newest - found[key].until < FORGET]


def _key(page: str) -> str:
    return f"digests/{page}.json.gz"


def pack_usage(kept: Sequence[KeptUsage]) -> bytes:
    """The records as they are stored, with a checksum."""
    records = wire.dumps(_Page(tuple(kept)))
    body = f'{{"format":{FORMAT},"crc32":{zlib.crc32(records.encode())},"records":{json.dumps(records)}}}'
    return gzip.compress(body.encode(), 6, mtime=0)


def unpack_usage(body: bytes, page: str) -> tuple[KeptUsage, ...]:
    """The records, or nothing when anything about the object is not as it was written."""
    try:
        outer = json.loads(gzip.decompress(body))
        records = outer["records"]
        if outer["format"] != FORMAT or outer["crc32"] != zlib.crc32(records.encode()):
            raise InputError("its format or its checksum is another")
        return wire.loads(_Page, records).kept
    except (
        OSError,
        EOFError,
        zlib.error,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        InputError,
    ) as error:
        logger.warning("digests corrupt: the metrics are read in full", extra={"page": page, "problem": str(error)})
        return ()


class BucketReports:
    """Files in one bucket."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, body: bytes, content_type: str) -> str:
        """Store the file and return its address, ``s3://bucket/key``; `PageLinks` makes a link when asked for."""
        with translate_write_errors("s3:PutObject", f"storing {key} in the bucket {self._bucket}"):
            self._client.put_object(
                Bucket=self._bucket,
                Key=_safe_path(key),
                Body=body,
                ContentType=content_type,
                CacheControl="no-store",
            )
        return f"s3://{self._bucket}/{key}"

    def read(self, key: str) -> bytes | None:
        """The stored file; None where there is none."""
        try:
            return self._client.get_object(Bucket=self._bucket, Key=_safe_path(key))["Body"].read()
        except ClientError as error:
            if code_of(error) in MISSING:
                return None
            raise ReadError(f"reading {key} in the bucket {self._bucket}: {code_of(error)}") from error
        except BotoCoreError as error:
            raise ReadError(f"reading {key} in the bucket {self._bucket}: {error}") from error


def _safe_path(key: str) -> str:
    path = PurePosixPath(key)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise InputError(f"a report's key must be a relative path without '..', not {key!r}")
    return key
