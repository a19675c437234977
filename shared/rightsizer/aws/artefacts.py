"""What an endpoint runs: digests behind image tags in ECR, and the files of its models in S3."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from rightsizer.aws.components import utc
from rightsizer.aws.errors import code_of, is_transient, text_of, translate_read_errors
from rightsizer.domain.endpoint import EndpointRef
from rightsizer.domain.hours_record import ModelBefore
from rightsizer.domain.live_state import ImageSight
from rightsizer.errors import ReadError, VanishedError

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_sagemaker import SageMakerClient


IMAGE = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/"
    r"(?P<repository>[a-z0-9._/-]+)(?::(?P<tag>\w[\w.-]*))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)
MANIFESTS = (
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
)
"""What is accepted as the answer; an index that is not accepted would be answered by one of its images."""
ABSENT = frozenset({"ImageNotFound", "ImageTagDoesNotMatchDigest", "RepositoryNotFoundException"})


class RegistryClient(Protocol):
    """The one call that is made of ECR."""

    def batch_get_image(self, **params: Any) -> Mapping[str, Any]:
        """BatchGetImage."""
        ...


def images(ecr: RegistryClient, ref: EndpointRef, names: Sequence[str]) -> Mapping[str, ImageSight]:
    """Images by name, each as its registry has it today, or with the reason why it could not be read."""
    return {name: _image(ecr, ref, name) for name in dict.fromkeys(names)}


def _image(ecr: RegistryClient, ref: EndpointRef, name: str) -> ImageSight:
    parts = IMAGE.fullmatch(name)
    if parts is None:
        return ImageSight(name, problem="its registry is not Amazon ECR")
    if parts["region"] != ref.region:
        return ImageSight(name, problem=f"its registry belongs to account {parts['account']} in {parts['region']}")
    theirs = "" if parts["account"] == ref.account else f" by the registry of account {parts['account']}"
    wanted = {"imageDigest": parts["digest"]} if parts["digest"] else {"imageTag": parts["tag"] or "latest"}
    try:
        answer = ecr.batch_get_image(
            registryId=parts["account"],
            repositoryName=parts["repository"],
            imageIds=[wanted],
            acceptedMediaTypes=list(MANIFESTS),
        )
    except ClientError as error:
        if code_of(error) in ABSENT and not theirs:  # another account may hide a repository that it does not share
            return ImageSight(name, gone=True)
        text = f"ecr:BatchGetImage was refused{theirs} ({code_of(error)}: {text_of(error)})"
        return ImageSight(name, problem=text, passing=is_transient(error))
    except BotoCoreError as error:
        return ImageSight(name, problem=f"ecr:BatchGetImage had no answer ({error})", passing=is_transient(error))
    digests = tuple(d for found in answer.get("images") or () for d in _digests(found))
    codes = {failure.get("failureCode", "") for failure in answer.get("failures") or ()}
    if not digests and codes and codes <= ABSENT:
        return ImageSight(name, gone=True)
    return ImageSight(name, digests, problem="" if digests else f"ecr:BatchGetImage answered {sorted(codes)}")


def _digests(found: Mapping[str, Any]) -> list[str]:
    """The digest of what the tag names, then those of the images in it where it is an index."""
    digests = [(found.get("imageId") or {}).get("imageDigest")]
    try:
        manifest = json.loads(found.get("imageManifest") or "{}")
        digests += [one.get("digest") for one in manifest.get("manifests") or ()]
    except (ValueError, AttributeError):
        pass  # a manifest that cannot be read holds no more digests; the first one stands
    return [digest for digest in digests if isinstance(digest, str) and digest]


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
