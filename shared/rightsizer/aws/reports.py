"""Where reports and details pages are kept: a bucket, or a local folder. Links to the bucket are made in `links`."""

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.errors import DENIED, THROTTLED, code_of, text_of, translate
from rightsizer.errors import InputError, WriteRefusedError

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


class BucketReports:
    """Files in one bucket."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, body: bytes, content_type: str) -> str:
        """Store the file and return its address, ``s3://bucket/key``; `PageLinks` makes a link when asked for."""
        doing = f"storing {key} in the bucket {self._bucket}"
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=_safe(key),
                Body=body,
                ContentType=content_type,
                CacheControl="no-store",
            )
        except ClientError as error:
            if code_of(error) in DENIED | THROTTLED:
                raise translate(error, "s3:PutObject", doing) from error
            raise WriteRefusedError(doing, code_of(error), text_of(error)) from error
        except BotoCoreError as error:
            raise WriteRefusedError(doing, type(error).__name__, str(error)) from error
        return f"s3://{self._bucket}/{key}"


class FolderReports:
    """Files below one folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, key: str, body: bytes, content_type: str) -> str:  # noqa: ARG002  (a folder keeps no content type)
        """Store the file and return its path. An unfinished file is never seen under its name."""
        path = self._folder / _safe(key)
        unfinished = path.with_name(path.name + ".part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_bytes(body)
            unfinished.replace(path)
        except OSError as error:
            raise WriteRefusedError(f"writing {path}", type(error).__name__, str(error)) from error
        return str(path)


def _safe(key: str) -> str:
    path = PurePosixPath(key)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise InputError(f"a report's key must be a relative path without '..', not {key!r}")
    return key
