"""Facts of a model: DescribeModel or Search, once for each model, and the sizes of its weights in S3."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rightsizer.aws.errors import translate_read_errors
from rightsizer.errors import RightsizerError

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_sagemaker import SageMakerClient

FRAMEWORKS = (
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("tgi", "tgi"),
    ("text-generation-inference", "tgi"),
    ("djl", "lmi"),
    ("lmi", "lmi"),
    ("triton", "triton"),
    ("tensorflow", "tensorflow"),
    ("pytorch", "pytorch"),
)
"""Part of an image's name and the framework it means; the first that matches counts."""
MODEL_NAMES = ("MODEL_ID", "_MODEL", "MODEL_PATH")
"""Ends of environment variables that name the model to load (HF_MODEL_ID, SM_VLLM_MODEL, SM_SGLANG_MODEL_PATH)."""
SMALLEST = 1 << 30
"""Bytes. What is smaller is no model's weights but an adapter, or a configuration that names them elsewhere."""
PAGES = 5
"""Pages of 1,000 objects; a prefix with more is no model."""
WEIGHTS = ".safetensors"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts of one model that decisions need."""

    images: tuple[str, ...]
    containers: int
    multi_model: bool
    """A container hosts many models behind one name (Mode MultiModel)."""
    direct: bool
    """The containers of the pipeline are invoked one by one (InferenceExecutionConfig)."""
    marketplace: bool
    """A model package of another account: AWS Marketplace products are published from AWS's own."""
    weights: tuple[str, ...] = ()
    """Where in S3 its weights lie as they are; empty where that is not sure (an archive, a model that is named)."""


class ModelReader:
    """Reads models once each; the answers, refusals too, are kept for the life of the reader.

    A model cannot be changed, but it can be deleted and made again under its name: a reader lives for one evaluation.
    """

    def __init__(self, client: "SageMakerClient") -> None:
        self._client = client
        self._known: dict[str, ModelFacts | RightsizerError] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def read(self, name: str, account: str) -> ModelFacts:
        """The facts of a model; raises ReadError, as often as asked, when it cannot be read."""
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            if name not in self._known:
                try:
                    self._known[name] = self._describe(name, account)
                except RightsizerError as error:
                    self._known[name] = error
            known = self._known[name]
        if isinstance(known, RightsizerError):
            raise known
        return known

    def knows(self, name: str) -> bool:
        """Whether the model was read, or refused, since the reader forgot."""
        with self._guard:
            return name in self._known

    def learn(self, name: str, answer: Mapping[str, Any], account: str) -> None:
        """Keep what a search told of a model, as if it had been described."""
        with self._guard:
            self._known[name] = facts_of(answer, account)

    def forget(self) -> None:
        """Drop what is known; called at the beginning of each observation."""
        with self._guard:
            self._known.clear()

    def _describe(self, name: str, account: str) -> ModelFacts:
        with translate_read_errors("sagemaker:DescribeModel", f"describing the model {name}"):
            answer: Mapping[str, Any] = self._client.describe_model(ModelName=name)
        return facts_of(answer, account)


def facts_of(answer: Mapping[str, Any], account: str) -> ModelFacts:
    """A DescribeModel answer reduced to facts."""
    containers = (
        [answer["PrimaryContainer"]] if answer.get("PrimaryContainer") else list(answer.get("Containers") or ())
    )
    packages = [container.get("ModelPackageName", "") for container in containers]
    return ModelFacts(
        images=tuple(container["Image"] for container in containers if container.get("Image")),
        containers=len(containers),
        multi_model=any(container.get("Mode") == "MultiModel" for container in containers),
        direct=(answer.get("InferenceExecutionConfig") or {}).get("Mode") == "Direct",
        marketplace=any(_is_foreign(package, account) for package in packages),
        weights=_weights(containers[0]) if len(containers) == 1 else (),
    )


def framework_of(images: tuple[str, ...]) -> str:
    """The serving framework that the images' names tell; empty when they tell none."""
    names = [image.lower().split("/", 1)[-1] for image in images]
    return next((framework for part, framework in FRAMEWORKS if any(part in name for name in names)), "")


def _weights(container: Mapping[str, Any]) -> tuple[str, ...]:
    """Addresses of what the container loads; none where a part of it is packed or may come from elsewhere."""
    named = (container.get("Environment") or {}).items()
    if any(name.upper().endswith(MODEL_NAMES) and not value.startswith("/") for name, value in named):
        return ()
    parts = [container.get("ModelDataSource") or {}, *(container.get("AdditionalModelDataSources") or ())]
    sources = [part.get("S3DataSource") or {} for part in parts]
    if container.get("ModelDataUrl") or any(source.get("CompressionType") != "None" for source in sources):
        return ()
    return tuple(source["S3Uri"] for source in sources)


def _is_foreign(package: str, account: str) -> bool:
    parts = package.split(":")
    return len(parts) > 5 and parts[4] != account


def weights_size(client: "S3Client", places: Sequence[str]) -> int | None:
    """Bytes of the weights under these ``s3://`` addresses, which are prefixes or whole keys; None where it is unclear.

    Where there are safetensors they alone count: the same weights may lie there in other formats. ReadError.
    """
    sizes: dict[str, int] = {}
    for place in places:
        bucket, _, key = place.removeprefix("s3://").partition("/")
        with translate_read_errors("s3:ListBucket", f"measuring models in s3://{bucket}"):
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
