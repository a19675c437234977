"""One endpoint as SageMaker and Application Auto Scaling describe it now."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

from rightsizer.domain.checks import aware, not_empty
from rightsizer.domain.reason import Code, Reason

KV_CACHE_SERVERS = frozenset({"vllm", "sglang"})
"""Servers whose KV cache detailed observability shows (SageMaker guide, OpenTelemetry metrics reference)."""
LEAST = "LEAST_OUTSTANDING_REQUESTS"
"""The routing strategy that sends a request to the instance with the fewest in service."""
AT_RANDOM = frozenset({"", "RANDOM"})
"""Routing without a look at the instances; AWS's default where nothing is set."""
POLICY_TITLE = "Scaling policy "
"""Begins the title of a scaling policy among the facts for people."""
MODE_TAG = "rightsizer:mode"
"""The tag by which an owner says what is allowed; it has the values of `Mode`."""


class EndpointKind(StrEnum):
    """Kind of endpoint; only `REAL_TIME` is the plain kind (SageMaker DescribeEndpointConfig)."""

    REAL_TIME = "real-time"
    ASYNC = "asynchronous"
    SERVERLESS = "serverless"
    INFERENCE_COMPONENTS = "inference components"
    MULTI_MODEL = "multi-model"
    PIPELINE = "inference pipeline"
    MULTI_VARIANT = "several production variants"
    SHADOW = "shadow variant"
    INSTANCE_POOLS = "instance pools"
    MIG = "partitioned GPUs (MIG)"
    RESERVED = "reserved capacity"
    MARKETPLACE = "AWS Marketplace"
    UNKNOWN = "unknown"


class Mode(StrEnum):
    """Permission of the owner, from the tag ``rightsizer:mode``."""

    OFF = "off"
    REPORT = "report"
    PROPOSE = "propose"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class EndpointRef:
    """An endpoint's full name."""

    account: str
    region: str
    name: str
    partition: str = "aws"

    def __post_init__(self) -> None:
        not_empty("EndpointRef.name", self.name)

    @property
    def arn(self) -> str:
        """SageMaker lower-cases the name in the ARN."""
        return f"arn:{self.partition}:sagemaker:{self.region}:{self.account}:endpoint/{self.name.lower()}"


def has_digest(image: str) -> bool:
    """Whether the name of a container image holds its digest, so that it always means the same code."""
    return "@sha256:" in image


@dataclass(frozen=True, slots=True)
class Image:
    """A container image as asked for and as resolved when it was deployed."""

    specified: str
    resolved: str


@dataclass(frozen=True, slots=True)
class Variant:
    """One production variant: its configuration and its live state."""

    name: str
    model_name: str
    instance_type: str
    """Empty for serverless variants and instance pools."""
    current_count: int
    desired_count: int
    weight: float
    images: tuple[Image, ...] = ()
    routing: str = ""
    """A routing strategy of AWS, such as ``PREFIX_AWARE``; empty when not set (AWS then routes at random)."""
    least_instances: int | None = None
    """MinInstanceCount of managed instance scaling, where that is enabled: instances then follow the components."""
    consolidates: bool = False
    """Whether its scale-in policy moves copies together to empty instances (CONSOLIDATION)."""


@dataclass(frozen=True, slots=True)
class ScalableTarget:
    """A registration with Application Auto Scaling, with everything needed to restore it.

    `policies` and `scheduled` hold the API's own records, as they must be sent back.
    """

    resource_id: str
    dimension: str
    minimum: int
    maximum: int
    suspended: Mapping[str, bool] = field(default_factory=dict)
    policies: tuple[Mapping[str, Any], ...] = ()
    scheduled: tuple[Mapping[str, Any], ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def variant_name(self) -> str | None:
        """The variant that is scaled; None for an inference component."""
        parts = self.resource_id.split("/")
        return parts[3] if len(parts) == 4 and (parts[0], parts[2]) == ("endpoint", "variant") else None

    @property
    def component_name(self) -> str | None:
        """The inference component that is scaled; None for a variant."""
        kind, _, name = self.resource_id.partition("/")
        return name if kind == "inference-component" else None


SCALING_NAMESPACE: Literal["sagemaker"] = "sagemaker"
"""The ServiceNamespace of SageMaker in Application Auto Scaling."""


def variant_resource_id(endpoint: str, variant: str) -> str:
    """The resource id of a variant in Application Auto Scaling (API RegisterScalableTarget)."""
    return f"endpoint/{endpoint}/variant/{variant}"


def component_resource_id(component: str) -> str:
    """The resource id of an inference component in Application Auto Scaling (API RegisterScalableTarget)."""
    return f"inference-component/{component}"


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """Effect of an option on a scaling policy of the owner, for people."""

    policy: str
    effect: str

    @property
    def title(self) -> str:
        """The policy as people read it beside other facts."""
        return f"{POLICY_TITLE}{self.policy}"


MAY_GROW_TAG = "rightsizer:may-grow"
MAY_GROW_WANTED = "the US dollars a month that growth may add, such as 500"
ERROR_TAG = "rightsizer:error-percent"
P95_TAG = "rightsizer:p95-ms"


def may_grow_usd(tags: Mapping[str, str]) -> Decimal | None:
    """US dollars a month that growth may add without a person, by the owner's tag.

    None where the tag is absent or is no plain number: then a person is asked. 0 allows growth that costs nothing.
    """
    text = tags.get(MAY_GROW_TAG, "").strip()
    return Decimal(text) if re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,2})?", text) else None


def growth_refusal(tags: Mapping[str, str], added: Decimal) -> Reason | None:
    """Why the owner's tag does not allow growth of `added` US dollars a month in all; None where it does."""
    allowed, costs = may_grow_usd(tags), f"it costs USD {added:,.2f} a month more"
    if MAY_GROW_TAG not in tags:
        return Reason(Code.NEEDS_APPROVAL, f"{costs}, and no tag {MAY_GROW_TAG} says how much may be added")
    if allowed is None:
        text = f"the tag {MAY_GROW_TAG} is {tags[MAY_GROW_TAG]!r}, which allows nothing: it should be {MAY_GROW_WANTED}"
        return Reason(Code.BAD_TAG, f"{costs}, and {text}")
    if added > allowed:
        return Reason(Code.NEEDS_APPROVAL, f"{costs}, and the tag {MAY_GROW_TAG} allows USD {allowed:,.2f} in all")
    return None


def tracked_p95_s(scaling: Sequence[ScalableTarget]) -> float | None:
    """The p95 of ModelLatency, seconds, that the owner's own target tracking holds; the least of several, or None.

    Only a policy on that one percentile tells it: of an average or a maximum no p95 follows. The metric is in
    microseconds (Application Auto Scaling API, CustomizedMetricSpecification; SageMaker guide, invocation metrics).
    """
    found = []
    for policy in (policy for target in scaling for policy in target.policies):
        tracking = policy.get("TargetTrackingScalingPolicyConfiguration") or {}
        queries = list((tracking.get("CustomizedMetricSpecification") or {}).get("Metrics") or ())
        stat = queries[0].get("MetricStat") or {} if len(queries) == 1 else {}
        name = (stat.get("Metric") or {}).get("MetricName")
        ours = (stat.get("Metric") or {}).get("Namespace") == "AWS/SageMaker"
        if ours and name == "ModelLatency" and stat.get("Stat") == "p95" and tracking.get("TargetValue"):
            found.append(float(tracking["TargetValue"]) / 1_000_000)
    return min(found, default=None)


@dataclass(frozen=True, slots=True)
class Objective:
    """Promises of the owner to their users.

    From tags; None where nothing is declared.
    """

    p95_s: float | None = None
    """Seconds."""
    error_share: float | None = None
    """0..1 of requests."""
    min_instances: int | None = None
    """Instances that must always run, 1 or more; None: two or more are never made one without a person."""
    source: str = f"tag {P95_TAG}"
    """Where the p95 was said."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint as observed."""

    ref: EndpointRef
    status: str
    config_name: str
    created_at: datetime
    modified_at: datetime
    kind: EndpointKind
    kinds: tuple[EndpointKind, ...]
    """Every kind that applies; `kind` is the first that keeps us from acting."""
    variants: tuple[Variant, ...]
    tags: Mapping[str, str]
    mode: Mode
    mode_declared: bool
    """False when the tag is absent, so that IAM conditions on it do not match."""
    objective: Objective
    owner: str
    """Whom to ask: the tag ``rightsizer:owner`` or ``owner``; empty when nobody is named."""
    owned_by: str
    """The stack or tool that owns it (``CloudFormation stack x``, ``Terraform``); empty when none is found."""
    scaling: tuple[ScalableTarget, ...] = ()
    unknown_fields: tuple[str, ...] = ()
    """Paths in the raw configuration that the service model does not know: never clone these."""
    configuration_replaced: bool = False
    """The configuration of that name is younger than the endpoint's last change."""
    framework: str = ""
    """Guessed from the image: vllm, tgi, lmi, sglang, triton, pytorch, tensorflow; empty when unknown."""
    failure_reason: str = ""
    bad_tags: tuple[Reason, ...] = ()
    kms_key: str = ""
    deploying: bool = False
    """A PendingDeploymentSummary is present."""
    models: tuple[str, ...] = ()
    """Models that the variants of its configuration name, shadows included; components name theirs themselves."""
    model_data_bytes: int | None = None
    """Bytes of the model's weights, where they are asked for (`may_show_kv_cache`) and S3 tells them."""
    enhanced_metrics: bool = False
    """Whether its configuration has CloudWatch publish each instance and each GPU (EnableEnhancedMetrics)."""
    environment: str = ""
    """The environment that a rule of the policy document assigns; empty: its tags say which."""
    environment_source: str = ""
    """The rule that assigns it."""
    asks_because: str = ""
    """Why `mode` is ``propose`` although the tag says ``auto``: the policy document, or a tag that is not clear."""
    detailed_observability: bool = False
    """Whether its configuration has SageMaker publish OpenTelemetry metrics (EnableDetailedObservability)."""
    publish_s: int = 60
    """Seconds between two samples of utilisation of one instance (MetricPublishFrequencyInSeconds, 10 to 300)."""
    elastic_inference: tuple[str, ...] = ()
    """Elastic Inference accelerators that its configuration still names, such as ``ml.eia2.medium``."""
    notes: tuple[Reason, ...] = ()
    """What could not be read about it (tags, autoscaling, a model), and why."""
    tags_unread: Reason | None = None
    """Why its tags could not be read; `mode` is then `report`, since nobody is known to allow more."""
    kind_tag: Literal["endpoint"] = "endpoint"

    def __post_init__(self) -> None:
        aware("Endpoint.created_at", self.created_at)
        aware("Endpoint.modified_at", self.modified_at)

    @property
    def is_plain(self) -> bool:
        """One production variant, real-time, instance-based: the kind that can be changed in place."""
        return self.kind is EndpointKind.REAL_TIME and len(self.variants) == 1

    @property
    def other_variants(self) -> tuple[Variant, ...]:
        """The production variants after the first."""
        return self.variants[1:]

    @property
    def views(self) -> tuple["Endpoint", ...]:
        """The endpoint once for each production variant, with that variant first and its autoscaling only.

        Who reads, sizes and prices takes the first variant; the bounds of the others say nothing about it.
        """
        if not self.other_variants:
            return (self,)
        return tuple(
            replace(
                self,
                variants=(mine, *(v for v in self.variants if v is not mine)),
                scaling=tuple(t for t in self.scaling if t.variant_name in (None, mine.name)),
            )
            for mine in self.variants
        )

    @property
    def scheduled_minimum(self) -> Reason | None:
        """Why the minimum is not ours to lower: scheduled actions of its owner set it again. None: there is none."""
        rows = [row for target in self.scaling if target.policies for row in target.scheduled]
        if not rows:
            return None
        names = ", ".join(str(row.get("ScheduledActionName", "without a name")) for row in rows[:3])
        text = "its scheduled actions set the bounds of its autoscaling, and would set theirs again"
        return Reason(Code.AUTOSCALED, f"{text}: its owner lowers them there ({names})")

    @property
    def may_show_kv_cache(self) -> bool:
        """Whether CloudWatch may know how full the server's KV cache is."""
        return self.detailed_observability and self.framework in KV_CACHE_SERVERS

    @property
    def fingerprint(self) -> str:
        """Changes whenever the endpoint's configuration or live deployment changed."""
        counts = ",".join(f"{v.name}={v.desired_count}" for v in self.variants)
        return f"{self.config_name}|{self.modified_at.isoformat()}|{counts}"


@dataclass(frozen=True, slots=True)
class Unobserved:
    """An endpoint that could not be read, and why; the others go on."""

    ref: EndpointRef
    reason: Reason
    kind_tag: Literal["unobserved"] = "unobserved"


type Observation = Endpoint | Unobserved
