"""Models of an endpoint before and after a night: DescribeModel, and the files that it names as S3 lists them.

SageMaker copies model data to the instances when an endpoint starts, so what lies there in the morning is what serves.
ListObjectsV2 tells key, ETag and time of each file without reading it (S3 API reference); an ETag changes with content.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rightsizer.aws.components import utc
from rightsizer.aws.errors import translate_read_errors
from rightsizer.domain.hours_record import ModelBefore
from rightsizer.errors import ReadError, VanishedError

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_sagemaker import SageMakerClient

OUTPUT_ONLY = frozenset({"ModelArn", "CreationTime", "ResponseMetadata", "DeploymentRecommendation"})
LISTED_PAGES = 5
"""Of 1,000 files each; data of more files is not compared."""


def read_models(sagemaker: "SageMakerClient", s3: "S3Client", names: Sequence[str]) -> dict[str, ModelBefore]:
    """The models of these that exist, by name. ReadError of DescribeModel alone: files that cannot be listed say ""."""
    found = {}
    for name in names:
        try:
            with translate_read_errors("sagemaker:DescribeModel", f"looking at model {name}"):
                answer: Any = sagemaker.describe_model(ModelName=name)
        except VanishedError:
            continue
        body = {key: value for key, value in answer.items() if key not in OUTPUT_ONLY}
        found[name] = _with_files(s3, ModelBefore(name, body))
    return found


def _with_files(s3: "S3Client", model: ModelBefore) -> ModelBefore:
    lines, newest, missing = list[str](), list[datetime](), list[str]()
    try:
        for address, is_prefix in _addresses(model.body):
            files = list(_files(s3, address, is_prefix))
            lines += [f"{address} {key} {tag}" for key, tag, _ in files]
            newest += [at for _, _, at in files]
            missing += [] if files else [address]
    except ReadError:
        return model  # SageMaker's own role may read what ours may not, so this stands against nothing
    digest = hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest() if lines else ""
    return ModelBefore(model.name, model.body, digest, max(newest, default=None), tuple(missing))


def _addresses(body: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Each ``s3://`` address that is copied when it starts, and whether it is a prefix; not those loaded on demand."""
    for container in (body.get("PrimaryContainer"), *(body.get("Containers") or ())):
        if not container or container.get("Mode") == "MultiModel":
            continue
        if container.get("ModelDataUrl"):
            yield str(container["ModelDataUrl"]), False
        for source in (container.get("ModelDataSource"), *(container.get("AdditionalModelDataSources") or ())):
            place = (source or {}).get("S3DataSource") or {}
            if place.get("S3Uri") and not place.get("HubAccessConfig"):
                yield str(place["S3Uri"]), place.get("S3DataType") == "S3Prefix"


def _files(s3: "S3Client", address: str, is_prefix: bool) -> Iterator[tuple[str, str, datetime]]:
    bucket, _, key = address.removeprefix("s3://").partition("/")
    token: dict[str, Any] = {}
    for _ in range(LISTED_PAGES):
        with translate_read_errors("s3:ListBucket", f"listing the model data at {address}"):
            page = s3.list_objects_v2(Bucket=bucket, Prefix=key, **token)
        for row in page.get("Contents", ()):
            if is_prefix or row["Key"] == key:
                yield row["Key"], row.get("ETag", ""), utc(row["LastModified"])
        if not page.get("IsTruncated"):
            return
        token = {"ContinuationToken": page["NextContinuationToken"]}
    raise ReadError(f"listing the model data at {address}: more than {LISTED_PAGES * 1000} files")
