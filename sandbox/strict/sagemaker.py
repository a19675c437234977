"""SageMaker. Guide pages: endpoint-scaling-update, deployment-guardrails-*, serverless-endpoints."""

import re
from collections.abc import Iterator, Mapping

from sandbox.strict import Check, Key, Params, shape, state
from sandbox.strict.words import same_tag_twice, twice

SERVICE = "sagemaker"
INVALID, LIMIT, MISSING = "ValidationException", "ResourceLimitExceeded", "ResourceNotFound"
_KEY = re.compile(r"(arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:)?(key/|alias/).+|(mrk-)?[0-9a-f-]{32,36}")
_FREQUENCIES = (10, 30, 60, 120, 180, 240, 300)


def _variants(p: Params) -> Iterator[Params]:
    yield from [*(p.get("ProductionVariants") or []), *(p.get("ShadowProductionVariants") or [])]


def _cross_region(p: Params) -> bool:
    if "CrossRegionTrafficConfig" not in p:
        return False
    return "AsyncInferenceConfig" in p or any("ServerlessConfig" in v for v in _variants(p))


def _prefix_routing(p: Params) -> bool:
    routing = [v.get("RoutingConfig") or {} for v in _variants(p)]
    return any("PrefixAwareRoutingConfig" in r and r.get("RoutingStrategy") != "PREFIX_AWARE" for r in routing)


def _prefix_needs(p: Params) -> bool:
    aware = [r for v in _variants(p) if (r := v.get("RoutingConfig") or {}).get("RoutingStrategy") == "PREFIX_AWARE"]
    given = [r.get("PrefixAwareRoutingConfig") or {} for r in aware]
    return any("PrefixLength" not in one or "ConcurrencyThreshold" not in one for one in given)


def _frequency(p: Params) -> bool:
    seconds = (p.get("MetricsConfig") or {}).get("MetricPublishFrequencyInSeconds", 60)
    return seconds not in _FREQUENCIES


def _clarify(p: Params, member: str) -> Params:
    explainer = (p.get("ExplainerConfig") or {}).get("ClarifyExplainerConfig") or {}
    found: Params = explainer.get(member) or {}
    return found


def _baseline(p: Params) -> bool:
    given = _clarify(p, "ShapConfig").get("ShapBaselineConfig")
    return given is not None and ("ShapBaseline" in given) == ("ShapBaselineUri" in given)


def _baseline_kind(p: Params) -> bool:
    kind = (_clarify(p, "ShapConfig").get("ShapBaselineConfig") or {}).get("MimeType", "text/csv")
    return kind not in {"text/csv", "application/jsonlines"}


def _feature_types(p: Params) -> bool:
    types = _clarify(p, "InferenceConfig").get("FeatureTypes")
    return types is not None and ("text" not in types or "TextConfig" not in _clarify(p, "ShapConfig"))


def _serverless_with(p: Params) -> bool:
    capture = (p.get("DataCaptureConfig") or {"EnableCapture": False}).get("EnableCapture", True)
    more = "VpcConfig" in p or p.get("EnableNetworkIsolation") or capture or len(list(_variants(p))) > 1
    return bool(more) and any("ServerlessConfig" in v for v in _variants(p))


def _shadow_with(p: Params) -> bool:
    odd = any("ServerlessConfig" in v or str(v.get("InstanceType")).startswith("ml.inf1.") for v in _variants(p))
    return bool(p.get("ShadowProductionVariants")) and (odd or "AsyncInferenceConfig" in p)


def _more_provisioned(p: Params) -> bool:
    rows = [row.get("ServerlessUpdateConfig") or {} for row in p["DesiredWeightsAndCapacities"]]
    return any(r.get("ProvisionedConcurrency", 0) > r.get("MaxConcurrency", float("inf")) for r in rows)


def _scraped(p: Params) -> bool:
    held = [(one.get("Container") or {}).get("ContainerMetricsConfig") or {} for one in _specifications(p)]
    rows = [row for one in held for row in one.get("MetricsEndpoints") or []]
    return any(row.get("MetricPublishFrequencyInSeconds", 60) not in _FREQUENCIES for row in rows)


def _adapter(p: Params) -> bool:
    return any("BaseInferenceComponentName" in s and "ComputeResourceRequirements" in s for s in _specifications(p))


def _managed_bounds(p: Params) -> bool:
    scaling = [v.get("ManagedInstanceScaling") or {} for v in _variants(p)]
    return any(s.get("MinInstanceCount", 0) > s.get("MaxInstanceCount", float("inf")) for s in scaling)


def _provisioned(p: Params) -> bool:
    serverless = [v.get("ServerlessConfig") or {} for v in _variants(p)]
    return any(s.get("ProvisionedConcurrency", 0) > s.get("MaxConcurrency", 0) for s in serverless if s)


def _excluded_twice(p: Params) -> bool:
    return twice([row["VariantPropertyType"] for row in p.get("ExcludeRetainedVariantProperties") or []])


def _specifications(p: Params) -> list[Params]:
    return [*(p.get("Specifications") or []), *filter(None, [p.get("Specification")])]


def _type_missing(p: Params) -> bool:
    several = p.get("Specifications") or []
    types = [one.get("InstanceType") for one in several]
    return len(several) > 1 and (None in types or twice(types))


def _partition(p: Params) -> bool:
    needs = [one.get("ComputeResourceRequirements") or {} for one in _specifications(p)]
    return any("AcceleratorPartitionType" in n and n.get("NumberOfAcceleratorDevicesRequired") != 1 for n in needs)


def _keys(p: Params) -> Iterator[str]:
    output = (p.get("AsyncInferenceConfig") or {}).get("OutputConfig") or {}
    dumps = [v.get("CoreDumpConfig") or {} for v in _variants(p)]
    held = (p, p.get("DataCaptureConfig") or {}, output, *dumps)
    yield from (str(one["KmsKeyId"]) for one in held if one.get("KmsKeyId"))


def _odd_key(p: Params) -> bool:
    return any(not _KEY.fullmatch(key) for key in _keys(p))


def _memory_turned(p: Params) -> bool:
    needs = [one.get("ComputeResourceRequirements") or {} for one in _specifications(p)]
    return any(n.get("MaxMemoryRequiredInMb", float("inf")) < n.get("MinMemoryRequiredInMb", 0) for n in needs)


def _archive(p: Params) -> bool:
    urls = [(one.get("Container") or {}).get("ArtifactUrl", ".tar.gz") for one in _specifications(p)]
    return any(not url.endswith(".tar.gz") for url in urls)


def _environment(p: Params) -> bool:
    held = [(one.get("Container") or {}).get("Environment") or {} for one in _specifications(p)]
    return any(len(one) > 16 for one in held)


def _text_order(p: Params) -> bool:
    filters = (p.get("SearchExpression") or {}).get("Filters") or []
    ordered = ("GreaterThan", "GreaterThanOrEqualTo", "LessThan", "LessThanOrEqualTo")
    return any(one.get("Operator") in ordered and not str(one["Name"]).endswith("Time") for one in filters)


_NAME = shape(SERVICE, "a name outside its pattern")
_ENDPOINT = state("unknown", "an endpoint that does not exist")
_BUSY = state("busy", "an endpoint that is being updated", source="Kubeflow and ACK operators")
_FAILED = state("failed", "an endpoint that has failed", source="EndpointStatus")
_QUOTA = state("quota", "instances above the quota", LIMIT)
_PAGE = state("token", "a token that it did not give")
_LIST = (shape(SERVICE, "pages of more than 100, a filter outside its pattern or enum"), _PAGE)
_COMPONENT = state("unknown", "a component that does not exist")
_COMPONENT_BUSY = state("busy", "a component that is being updated")

CHECKS: Mapping[Key, tuple[Check, ...]] = {
    (SERVICE, "CreateEndpointConfig"): (
        shape(
            SERVICE,
            "an instance type outside the enum, a name outside its pattern, more than 10 variants, none or more than 5"
            " security groups or 16 subnets, a baseline of more than 4 KB",
        ),
        Check("tags", "a tag key twice", INVALID, same_tag_twice),
        Check(
            "cross region",
            "CrossRegionTrafficConfig with serverless variants or AsyncInferenceConfig",
            INVALID,
            _cross_region,
        ),
        Check("prefix", "PrefixAwareRoutingConfig without PREFIX_AWARE", INVALID, _prefix_routing),
        Check("prefix needs", "PREFIX_AWARE without PrefixLength and ConcurrencyThreshold", INVALID, _prefix_needs),
        Check("baseline", "an explainer without exactly one of ShapBaseline and ShapBaselineUri", INVALID, _baseline),
        Check(
            "baseline kind", "a baseline that is neither text/csv nor application/jsonlines", INVALID, _baseline_kind
        ),
        Check(
            "feature types", "FeatureTypes without `text` among them, or without TextConfig", INVALID, _feature_types
        ),
        Check(
            "serverless with",
            "a serverless variant with VpcConfig, network isolation, data capture or another variant",
            INVALID,
            _serverless_with,
            source="guide, serverless-endpoints",
        ),
        Check(
            "shadow with",
            "a shadow with AsyncInferenceConfig, a serverless variant or an inf1 type",
            INVALID,
            _shadow_with,
            source="guide, shadow-tests-exclusions",
        ),
        Check("frequency", "metrics at other than 10, 30, 60, 120, 180, 240 or 300 s", INVALID, _frequency),
        Check("managed bounds", "managed scaling with a maximum below the minimum", INVALID, _managed_bounds),
        Check("provisioned", "more provisioned than maximum concurrency", INVALID, _provisioned),
        Check(
            "key", "a key, of volumes, capture, dumps or output, that is no id, alias or ARN of one", INVALID, _odd_key
        ),
        state("exists", "a name that is used"),
        state("variants", "more than 10 variants, shadows included"),
        state("shadows", "shadows beside more than one variant"),
        state("names", "a variant's name twice"),
        state("role", "a variant without a model and no ExecutionRoleArn"),
        state("model", "a model that does not exist"),
        state(
            "shadow containers",
            "a shadow with a model of several containers or of many models",
            source="guide, shadow-tests-exclusions",
        ),
        state(
            "serverless containers",
            "a serverless variant with a pipeline, many models, a VPC or network isolation",
            source="guide, serverless-endpoints",
        ),
        state("capacity", "a variant without exactly one of type, pools and serverless"),
        state("serverless count", "an instance count of a serverless variant"),
        state("memory", "serverless memory that is no multiple of 1,024 MB"),
        state("count", "instances without an initial count"),
        state("priorities", "two pools of one priority"),
        state("managed", "managed scaling of a variant with a model", source="hashicorp/terraform-provider-aws#45926"),
        state("volume", "a volume for a type with local storage", source="sagemaker-python-sdk"),
        state("ami", "an inference AMI of another kind of accelerator"),
        state("layouts", "more than one partition layout"),
        state("aws tags", "tag keys that begin with `aws:`"),
    ),
    (SERVICE, "AddTags"): (
        shape(SERVICE, "a tag key of more than 128 characters"),
        Check("tags", "a tag key twice", INVALID, same_tag_twice),
        state("unknown", "a resource that does not exist"),
        state("aws tags", "tag keys that begin with `aws:`"),
        state("many", "more than 50 tags of one resource", LIMIT),
    ),
    (SERVICE, "UpdateEndpoint"): (
        shape(SERVICE, "waits of more than 3,600 s, more than 10 alarms, a time-out of other than 600 to 28,800 s"),
        Check("excluded twice", "a property excluded twice", INVALID, _excluded_twice),
        _ENDPOINT,
        _BUSY,
        _FAILED,
        state("no config", "a configuration that does not exist"),
        state("same", "the configuration in use", source="Kubeflow operator"),
        state("async", "AsyncInferenceConfig taken away or added", source="aws/sagemaker-python-sdk#3124"),
        state("serverless", "an instance-based endpoint made serverless", source="guide, serverless-endpoints-update"),
        state("layouts", "another partition layout"),
        state(
            "scalable",
            "another type for, or no, variant that is a scalable target",
            source="guide, endpoint-scaling-update",
        ),
        state("retain", "DeploymentConfig with RetainDeploymentConfig"),
        state("capture", "excluding DataCaptureConfig"),
        state("exclude", "excluded properties without RetainAllVariantProperties"),
        state("least", "retained counts below the minimum of managed instance scaling"),
        state("policy", "a DeploymentConfig without exactly one policy"),
        state("guarded variants", "a guarded deployment to other variants", source="guide, deployment-guardrails"),
        state("routing", "a canary without CanarySize, linear without LinearStepSize, or either with the other's"),
        state("share", "a canary above 50 %, a linear step outside 10 to 50 %, a batch outside 5 to 50 %"),
        state("roll-back batch", "a roll-back batch above 100 %", source="RollingUpdatePolicy; CapacitySize"),
        state("time-out", "a time-out that the waits exceed"),
        state("rolling", "rolling of several or serverless variants", source="guide, deployment-guardrails-exclusions"),
        _QUOTA,
    ),
    (SERVICE, "CreateEndpoint"): (
        shape(SERVICE, "a name outside its pattern, more than 50 tags"),
        state("exists", "a name that is taken, also by an endpoint that is being deleted"),
        state("no config", "a configuration that does not exist"),
        state("aws tags", "tags that begin with aws:", source="Tagging guide"),
        _QUOTA,
    ),
    (SERVICE, "DeleteEndpoint"): (
        _NAME,
        _ENDPOINT,
        _BUSY,
        state("monitored", "an endpoint that monitoring schedules watch", source="SageMaker Python SDK, Model Monitor"),
    ),
    (SERVICE, "ListMonitoringSchedules"): _LIST,
    (SERVICE, "DescribeTrainingPlan"): (
        shape(SERVICE, "a name outside its pattern"),
        state("unknown", "a training plan that does not exist", "ResourceNotFound"),
    ),
    (SERVICE, "UpdateEndpointWeightsAndCapacities"): (
        shape(SERVICE, "a negative weight or count"),
        Check("provisioned", "more provisioned than maximum concurrency", INVALID, _more_provisioned),
        _ENDPOINT,
        _BUSY,
        _FAILED,
        state("several", "the capacity of more than one variant"),
        state("variant", "a variant that does not exist"),
        state("serverless", "an instance count of a serverless variant"),
        state("zero", "no instance for a real-time variant", source="guide, endpoint-auto-scaling-zero-instances"),
        _QUOTA,
    ),
    (SERVICE, "UpdateInferenceComponent"): (
        shape(SERVICE, "a name outside its pattern, more than 5 specifications, less than 128 MB"),
        Check("types", "several specifications of which one has no type, or two have one", INVALID, _type_missing),
        Check("partition", "a partition with other than 1 accelerator", INVALID, _partition),
        Check("memory", "a maximum of memory below the minimum", INVALID, _memory_turned),
        Check("archive", "an artifact that is no .tar.gz", INVALID, _archive),
        Check("environment", "more than 16 variables", INVALID, _environment),
        Check("frequency", "metrics at other than 10, 30, 60, 120, 180, 240 or 300 s", INVALID, _scraped),
        Check("adapter", "BaseInferenceComponentName with ComputeResourceRequirements", INVALID, _adapter),
        _COMPONENT,
        _COMPONENT_BUSY,
        state("both", "Specification with Specifications"),
        state("profile", "a partition that the layout of the variant has not, or none where it has a layout"),
        state("share", "a batch outside 5 to 50 % of the copies"),
    ),
    (SERVICE, "UpdateInferenceComponentRuntimeConfig"): (
        shape(SERVICE, "a negative number of copies"),
        _COMPONENT,
        _COMPONENT_BUSY,
    ),
    (SERVICE, "DescribeEndpoint"): (_NAME, _ENDPOINT),
    (SERVICE, "DescribeEndpointConfig"): (_NAME, state("unknown", "a configuration that does not exist")),
    (SERVICE, "DescribeModel"): (_NAME, state("unknown", "a model that does not exist")),
    (SERVICE, "ListTags"): (
        shape(SERVICE, "pages of fewer than 50, an ARN outside its pattern"),
        state("unknown", "a resource that does not exist"),
        _PAGE,
    ),
    (SERVICE, "ListEndpoints"): _LIST,
    (SERVICE, "ListEndpointConfigs"): _LIST,
    (SERVICE, "ListModels"): _LIST,
    (SERVICE, "Search"): (
        shape(SERVICE, "pages of more than 100, more than 20 filters, a value of more than 1,024 characters"),
        Check("order", "an order between texts (GreaterThan and the like)", INVALID, _text_order, source="API Filter"),
        state("property", "a property that the resource does not have", source="API Filter"),
        _PAGE,
    ),
    (SERVICE, "ListInferenceComponents"): _LIST,
    (SERVICE, "DescribeInferenceComponent"): (_NAME, _COMPONENT),
    (SERVICE, "DescribeTrainingJob"): (_NAME, state("unknown", "a job that does not exist")),
    (SERVICE, "ListTrainingJobs"): (
        shape(SERVICE, "pages of more than 100, a filter outside its pattern or enum"),
        _PAGE,
    ),
    (SERVICE, "DescribeProcessingJob"): (_NAME, state("unknown", "a job that does not exist")),
    (SERVICE, "ListProcessingJobs"): (
        shape(SERVICE, "pages of more than 100, a filter outside its pattern or enum"),
        _PAGE,
    ),
    (SERVICE, "UpdateTrainingJob"): (
        shape(SERVICE, "a name outside its pattern"),
        state("unknown", "a job that does not exist"),
        state("pool", "a keep-alive where no warm pool waits"),
    ),
    (SERVICE, "DescribeCluster"): (_NAME, state("unknown", "a cluster that does not exist", MISSING)),
}
