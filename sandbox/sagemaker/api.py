"""The operations of SageMaker's control plane that concern endpoints.

Sources: API reference of each operation; rules of UpdateEndpoint in `checks`. Instance types are botocore's enum.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sandbox.paging import page
from sandbox.refusals import AwsRefusal, invalid
from sandbox.sagemaker import checks
from sandbox.sagemaker.describe import described
from sandbox.sagemaker.fleet import Fleet, green_fleet
from sandbox.sagemaker.nouns import Endpoint, Params, Record, Variant
from sandbox.sagemaker.search import searched
from sandbox.strict import on

WEIGHTS = "UpdateEndpointWeightsAndCapacities"

if TYPE_CHECKING:
    from sandbox.world import World


class SageMaker:
    """One method for each simulated operation."""

    def __init__(self, world: "World") -> None:
        self._world = world

    @property
    def _fleet(self) -> Fleet:
        return self._world.fleet

    # models

    def CreateModel(self, p: Params) -> Params:
        """Create a model."""
        checks.name("modelName", p["ModelName"])
        if bool(p.get("PrimaryContainer")) == bool(p.get("Containers")):
            raise invalid("Specify exactly one of PrimaryContainer and Containers.")  # [assumed] text
        return {"ModelArn": self._create("model", p["ModelName"], p, self._fleet.models)}

    def DescribeModel(self, p: Params) -> Params:
        """Describe a model."""
        record = self._fleet.models.get(p["ModelName"])
        if record is None and on("DescribeModel", "unknown"):
            raise invalid(f'Could not find model "{self._fleet.arn("model", p["ModelName"])}".')
        assert record is not None
        return {**record.request, "ModelArn": record.arn, "CreationTime": record.created}

    def DeleteModel(self, p: Params) -> Params:
        """Delete a model."""
        self.DescribeModel(p)
        self._world.tags.forget(self._fleet.models.pop(p["ModelName"]).arn)
        return {}

    def ListModels(self, p: Params) -> Params:
        """List models."""
        rows, token = _listed(self._fleet.models.values(), p, "Model")
        return {"Models": rows, "NextToken": token}

    # configurations

    def CreateEndpointConfig(self, p: Params) -> Params:
        """Create a configuration; it can never be changed, and its name not be used again."""
        checks.name("endpointConfigName", p["EndpointConfigName"])
        checks.config(p, self._fleet.models)
        if not self._fleet.takes_metrics_config and "MetricsConfig" in p:
            raise invalid("MetricsConfig is not supported in this Region.")  # [assumed], that it happens too
        # MetricsConfig: "default for new endpoint configurations is True"
        kept = (
            p
            if not self._fleet.takes_metrics_config
            else p | {"MetricsConfig": {"EnableDetailedObservability": True} | (p.get("MetricsConfig") or {})}
        )
        return {
            "EndpointConfigArn": self._create("endpoint-config", p["EndpointConfigName"], kept, self._fleet.configs)
        }

    def DescribeEndpointConfig(self, p: Params) -> Params:
        """Describe a configuration."""
        record = self._fleet.config(p["EndpointConfigName"])
        shown = {**record.request, "EndpointConfigArn": record.arn, "CreationTime": record.created}
        # the service returns a volume for serverless variants though none can be set (ACK, endpoint_config hooks)
        shown["ProductionVariants"] = [
            spec | ({"VolumeSizeInGB": 5} if "ServerlessConfig" in spec else {}) for spec in shown["ProductionVariants"]
        ]
        return shown

    def DeleteEndpointConfig(self, p: Params) -> Params:
        """Delete a configuration; AWS does not look whether it is in use."""
        record = self._fleet.config(p["EndpointConfigName"])
        del self._fleet.configs[record.name]
        self._world.tags.forget(record.arn)
        return {}

    def ListEndpointConfigs(self, p: Params) -> Params:
        """List configurations."""
        rows, token = _listed(self._fleet.configs.values(), p, "EndpointConfig")
        return {"EndpointConfigs": rows, "NextToken": token}

    # endpoints

    def CreateEndpoint(self, p: Params) -> Params:
        """Create an endpoint."""
        fleet, now = self._fleet, self._world.clock.now
        arn = fleet.arn("endpoint", p["EndpointName"])
        if p["EndpointName"] in fleet.endpoints and on("CreateEndpoint", "exists"):
            raise invalid(f'Cannot create already existing endpoint "{arn}".')
        config = fleet.config(p["EndpointConfigName"], "no config", "CreateEndpoint")
        variants, shadows = fleet.fleets_of(config.request)
        endpoint = Endpoint(p["EndpointName"], arn, config.name, now, now, variants, shadows)
        fleet.check_quota(_instances([*variants.values(), *shadows.values()]), "CreateEndpoint")
        self._world.tags.add(arn, p.get("Tags") or [], "CreateEndpoint")
        scarce = {variant.instance_type for variant in variants.values()} & fleet.scarce
        endpoint.until = now + (fleet.timing.capacity_gives_up if scarce else fleet.timing.create)
        fleet.endpoints[endpoint.name] = endpoint
        fleet.note(endpoint, now)
        return {"EndpointArn": arn}

    def DescribeEndpoint(self, p: Params) -> Params:
        """Describe an endpoint."""
        return described(self._fleet, self._fleet.endpoint(p["EndpointName"]))

    def ListEndpoints(self, p: Params) -> Params:
        """List endpoints; pages of 10 unless asked for more."""
        rows, token = _listed(self._fleet.endpoints.values(), p, "Endpoint")
        return {"Endpoints": rows, "NextToken": token}

    def Search(self, p: Params) -> Params:
        """Search the index of endpoints and models; what changed since it was refreshed is not in it."""
        return searched(self._fleet, p)

    def DeleteEndpoint(self, p: Params) -> Params:
        """Delete an endpoint."""
        endpoint = self._fleet.endpoint(p["EndpointName"], "DeleteEndpoint")
        _not_busy(endpoint, "DeleteEndpoint")
        if endpoint.name in self._fleet.monitors.values() and on("DeleteEndpoint", "monitored"):
            raise invalid(f'Endpoint "{endpoint.arn}" has monitoring schedules; delete them first.')  # [assumed] text
        self._fleet.begin_delete(endpoint)
        return {}

    def ListMonitoringSchedules(self, p: Params) -> Params:
        """Model Monitor schedules that watch an endpoint."""
        rows = [
            {"MonitoringScheduleName": name, "EndpointName": endpoint, "MonitoringScheduleStatus": "Scheduled"}
            for name, endpoint in sorted(self._fleet.monitors.items())
            if p.get("EndpointName", endpoint) == endpoint
        ]
        shown, token = page(rows, p.get("NextToken"), p.get("MaxResults") or 10, operation="ListMonitoringSchedules")
        return {"MonitoringScheduleSummaries": shown, "NextToken": token}

    def DescribeTrainingPlan(self, p: Params) -> Params:
        """Describe reserved capacity; by its name or its ARN."""
        name = p["TrainingPlanName"].rpartition("/")[2]
        now = self._world.clock.now
        if name not in self._fleet.plans and on("DescribeTrainingPlan", "unknown"):
            raise AwsRefusal("ResourceNotFound", f"Training plan {name} does not exist")
        begins, ends = self._fleet.plans.get(name, (now, now))
        return {
            "TrainingPlanArn": self._world.arn("sagemaker", f"training-plan/{name}"),
            "TrainingPlanName": name,
            "Status": "Scheduled" if now < begins else "Active" if now < ends else "Expired",
            "StartTime": begins,
            "EndTime": ends,
            "TargetResources": ["endpoint"],
        }

    def UpdateEndpoint(self, p: Params) -> Params:
        """Deploy another configuration; HTTP 200 only means that it was accepted."""
        endpoint = self._fleet.endpoint(p["EndpointName"], "UpdateEndpoint")
        _not_busy(endpoint, "UpdateEndpoint")
        if endpoint.status == "Failed" and on(
            "UpdateEndpoint", "failed"
        ):  # EndpointStatus: DeleteEndpoint is the only operation left; [assumed] text
            raise invalid(f'Cannot update failed endpoint "{endpoint.arn}".')
        new = self._fleet.config(p["EndpointConfigName"], "no config")
        old = self._fleet.configs.get(endpoint.config_name, new)
        if endpoint.status == "UpdateRollbackFailed" and new is old:
            pass  # the documented repair is another UpdateEndpoint, which may be to the old configuration
        else:
            checks.update(endpoint, old.request, new.request, new.name)
        checks.scalable_targets(endpoint.variants, new.request, self._world.scaling.registered(endpoint.name))
        request = _deployment_config(p, endpoint)
        if request:
            checks.deployment(request, endpoint.variants, new.request)
        variants = _retained(p, endpoint, self._fleet.fleets_of(new.request)[0])
        deployment = self._fleet.prepare(endpoint, new.name, variants, request)
        self._fleet.check_quota(green_fleet(deployment))
        self._fleet.deploy(endpoint, deployment)
        return {"EndpointArn": endpoint.arn}

    def UpdateEndpointWeightsAndCapacities(self, p: Params) -> Params:
        """Change the weight of variants, or the capacity of one."""
        endpoint = self._fleet.endpoint(p["EndpointName"], WEIGHTS)
        _not_busy(endpoint, WEIGHTS)
        if endpoint.status == "Failed" and on(WEIGHTS, "failed"):
            raise invalid(f'Cannot update failed endpoint "{endpoint.arn}".')
        wanted = p["DesiredWeightsAndCapacities"]
        counted = sum("DesiredInstanceCount" in row for row in wanted)
        if counted > 1 and on(WEIGHTS, "several"):  # API text: "or capacity of one variant"
            raise invalid("The capacity of only one variant can be updated in a request.")  # [assumed] text
        for row in wanted:
            self._check_row(endpoint, row)
        for row in wanted:
            variant = endpoint.variants[row["VariantName"]]
            variant.desired_count = row.get("DesiredInstanceCount", variant.desired_count)
            variant.desired_weight = row.get("DesiredWeight", variant.desired_weight)
            variant.serverless = (variant.serverless or {}) | row.get("ServerlessUpdateConfig", {}) or None
        counts = any(v.desired_count != v.count for v in endpoint.variants.values())
        self._fleet.scale(endpoint, self._fleet.timing.scale if counts else timedelta(minutes=1))
        return {"EndpointArn": endpoint.arn}

    def _check_row(self, endpoint: Endpoint, row: Params) -> None:
        variant = endpoint.variants.get(row["VariantName"])
        if variant is None and on(WEIGHTS, "variant"):
            raise invalid(f'Could not find variant "{row["VariantName"]}" in endpoint "{endpoint.arn}".')  # [assumed]
        count = row.get("DesiredInstanceCount")
        assert variant is not None
        if count is None:
            return
        if variant.instance_type is None and on(WEIGHTS, "serverless"):
            raise invalid("DesiredInstanceCount cannot be set for a serverless variant.")  # [assumed] text
        config = self._fleet.configs.get(endpoint.config_name)
        asynchronous = bool(config and config.request.get("AsyncInferenceConfig"))
        if count == 0 and not asynchronous and variant.spec.get("ModelName") and on(WEIGHTS, "zero"):
            # guide, endpoint-auto-scaling-zero-instances: only async and inference components go to zero; [assumed]
            raise invalid("DesiredInstanceCount must be at least 1 for a real-time variant.")
        if count > variant.count and variant.instance_type:
            self._fleet.check_quota({variant.instance_type: count - variant.count}, WEIGHTS)

    # tags

    def AddTags(self, p: Params) -> Params:
        """Tag a resource."""
        self._world.tags.add(self._known(p["ResourceArn"], "AddTags"), p["Tags"])
        return {"Tags": self._world.tags.listed(p["ResourceArn"])}

    def ListTags(self, p: Params) -> Params:
        """Tags of a resource."""
        tags = self._world.tags.listed(self._known(p["ResourceArn"], "ListTags"))
        rows, token = page(tags, p.get("NextToken"), p.get("MaxResults") or 50, operation="ListTags")
        return {"Tags": rows, "NextToken": token}

    def DeleteTags(self, p: Params) -> Params:
        """Take tags off a resource."""
        self._world.tags.remove(self._known(p["ResourceArn"], "DeleteTags"), p["TagKeys"])
        return {}

    def _known(self, arn: str, operation: str) -> str:
        kind = arn.rpartition(":")[2].partition("/")[0]
        known = kind in {"model", "endpoint-config", "endpoint", "inference-component"}
        if (not known or (kind != "inference-component" and arn not in self._fleet.arns(kind))) and on(
            operation, "unknown"
        ):
            raise invalid(f"Could not find resource {arn}.")  # [assumed] text
        return arn

    def _create(self, kind: str, name: str, p: Params, records: dict[str, Record]) -> str:
        arn = self._fleet.arn(kind, name)
        if name in records and on("CreateEndpointConfig", "exists"):
            raise invalid(f'Cannot create already existing {kind.replace("-config", " configuration")} "{arn}".')
        self._world.tags.add(arn, p.get("Tags") or [], "CreateEndpointConfig")
        request = {key: value for key, value in p.items() if key != "Tags"}
        records[name] = Record(name, arn, self._world.clock.now, request)
        return arn


def _not_busy(endpoint: Endpoint, operation: str) -> None:
    if endpoint.busy and on(operation, "busy"):
        raise invalid(f'Cannot update in-progress endpoint "{endpoint.arn}".')


def _deployment_config(p: Params, endpoint: Endpoint) -> Mapping[str, Any]:
    if not p.get("RetainDeploymentConfig"):
        return p.get("DeploymentConfig") or {}
    if p.get("DeploymentConfig") and on("UpdateEndpoint", "retain"):
        raise invalid("DeploymentConfig cannot be given with RetainDeploymentConfig.")  # [assumed] text
    return endpoint.last_deployment_config or {}


def _retained(p: Params, endpoint: Endpoint, fresh: dict[str, Variant]) -> dict[str, Variant]:
    """RetainAllVariantProperties: same-named variants keep live counts and weights, but for the excluded ones."""
    excluded = {row["VariantPropertyType"] for row in p.get("ExcludeRetainedVariantProperties") or []}
    if "DataCaptureConfig" in excluded and on("UpdateEndpoint", "capture"):
        raise invalid("Excluding DataCaptureConfig is not currently supported.")  # API text
    if not p.get("RetainAllVariantProperties"):
        if excluded and on("UpdateEndpoint", "exclude"):
            raise invalid("ExcludeRetainedVariantProperties needs RetainAllVariantProperties.")  # [assumed] text
        return fresh
    for name, variant in fresh.items():
        live = endpoint.variants.get(name)
        if live is None:
            continue
        if "DesiredInstanceCount" not in excluded:
            least = (variant.spec.get("ManagedInstanceScaling") or {}).get("MinInstanceCount", 0)
            if live.desired_count < least and on("UpdateEndpoint", "least"):
                raise invalid(f"Variant {name} cannot keep {live.desired_count} instances below {least}.")  # [assumed]
            variant.count = variant.desired_count = live.desired_count
        if "DesiredWeight" not in excluded:
            variant.weight = variant.desired_weight = live.desired_weight
    return fresh


def _instances(variants: list[Variant]) -> dict[str, int]:
    wanted: dict[str, int] = {}
    for variant in variants:
        if variant.instance_type:
            wanted[variant.instance_type] = wanted.get(variant.instance_type, 0) + variant.desired_count
    return wanted


def _listed(records: Any, p: Params, kind: str) -> tuple[list[Params], str | None]:
    """Filtered, sorted and paged rows of a List operation (pages of 10 by default, 100 at most)."""
    rows = [record for record in records if _wanted(record, p)]
    order = {"Name": lambda r: r.name, "Status": lambda r: (r.status, r.name)}.get(
        p.get("SortBy", "CreationTime"), lambda r: (r.created, r.name)
    )
    rows.sort(key=order, reverse=p.get("SortOrder", "Descending") == "Descending")
    shown, token = page(rows, p.get("NextToken"), p.get("MaxResults") or 10, operation=f"List{kind}s")
    made = []
    for record in shown:
        row = {f"{kind}Name": record.name, f"{kind}Arn": record.arn, "CreationTime": record.created}
        if isinstance(record, Endpoint):
            row |= {"LastModifiedTime": record.modified, "EndpointStatus": record.status}
        made.append(row)
    return made, token


def _wanted(record: Any, p: Params) -> bool:
    return all(
        (
            p.get("NameContains", "").lower() in record.name.lower(),
            p.get("StatusEquals", getattr(record, "status", "")) == getattr(record, "status", ""),
            record.created > p["CreationTimeAfter"] if "CreationTimeAfter" in p else True,
            record.created < p["CreationTimeBefore"] if "CreationTimeBefore" in p else True,
            record.modified > p["LastModifiedTimeAfter"] if "LastModifiedTimeAfter" in p else True,
            record.modified < p["LastModifiedTimeBefore"] if "LastModifiedTimeBefore" in p else True,
        )
    )
