"""How large a model's weights are: the sizes that S3 lists, never what the objects hold."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import reading

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

SMALLEST = 1 << 30
"""Bytes. What is smaller is no model's weights but an adapter, or a configuration that names them elsewhere."""
PAGES = 5
"""Pages of 1,000 objects; a prefix with more is no model."""
WEIGHTS = ".safetensors"


def weights_size(client: "S3Client", places: Sequence[str]) -> int | None:
    """Bytes of the weights under these ``s3://`` addresses, which are prefixes or whole keys; None where it is unclear.

    Where there are safetensors they alone count: the same weights may lie there in other formats. ReadError.
    """
    sizes: dict[str, int] = {}
    for place in places:
        bucket, _, key = place.removeprefix("s3://").partition("/")
        with reading("s3:ListBucket", f"measuring models in s3://{bucket}"):
            token: dict[str, Any] = {}
            for _ in range(PAGES):
                page = client.list_objects_v2(Bucket=bucket, Prefix=key, **token)
                rows = [row for row in page.get("Contents", ()) if key.endswith("/") or row["Key"] == key]
                sizes |= {f"{bucket}/{row['Key']}": row["Size"] for row in rows}
                if not page.get("IsTruncated"):
                    break
                token = {"ContinuationToken": page["NextContinuationToken"]}
            else:
                return None
    weights = [size for name, size in sizes.items() if name.endswith(WEIGHTS)] or list(sizes.values())
    return sum(weights) if sum(weights) >= SMALLEST else None
