"""What is made in the account so that a request is refused. Names are not used twice: the tests share one account."""

from collections.abc import Callable
from itertools import count
from typing import Any

from sandbox.account import Sandbox
from sandbox.spot import Spot
from tests.sandbox.strictness.accepted import TARGET, VARIANT

type Change = dict[str, Any]
type Given = Callable[[Sandbox], Change]

_numbers = count()
VARIANT_NAME = "AllTraffic"
TOKEN = {"NextToken": "bm9uZQ=="}
WEIGHTS = "UpdateEndpointWeightsAndCapacities"
SERVERLESS = {"MemorySizeInMB": 1024, "MaxConcurrency": 1}
MIG = {"AcceleratorPartitionTypes": ["mig-1g.10gb"]}
BATCH = {"Type": "INSTANCE_COUNT", "Value": 1}


def name(kind: str = "e") -> str:
    """A name that nothing has yet."""
    return f"{kind}{next(_numbers)}"


def endpoint(box: Sandbox, *arguments: Any, **members: Any) -> str:
    """The name of a new endpoint."""
    made = name()
    box.add_endpoint(made, *arguments, **members)
    return made


def config(box: Sandbox, of: str, kind: str = "ml.g5.2xlarge", instances: int = 1, **more: Any) -> str:
    """The name of a new configuration for the model of an endpoint."""
    made = name("c")
    row = {
        "VariantName": VARIANT_NAME,
        "ModelName": f"{of}-model",
        "InstanceType": kind,
        "InitialInstanceCount": instances,
    }
    request = {"EndpointConfigName": made, "ProductionVariants": [row]} | more
    box.world.api("sagemaker").CreateEndpointConfig(request)  # type: ignore[attr-defined]
    return made


def new(**change: Any) -> Given:
    """A configuration with a name that nothing has; `change` is of the variant, or of the request in capitals."""

    def given(box: Sandbox) -> Change:
        row = VARIANT | {"ModelName": f"{endpoint(box)}-model"} | change
        return {
            "EndpointConfigName": name("c"),
            "ProductionVariants": [{k: v for k, v in row.items() if v is not None}],
        }

    return given


def variants(production: int, shadow: int = 0, same: bool = False) -> Given:
    """A configuration with so many variants."""

    def given(box: Sandbox) -> Change:
        model = f"{endpoint(box)}-model"
        rows = [VARIANT | {"ModelName": model, "VariantName": "v" if same else f"v{n}"} for n in range(production)]
        extra = [VARIANT | {"ModelName": model, "VariantName": f"s{n}"} for n in range(shadow)]
        made = {"EndpointConfigName": name("c"), "ProductionVariants": rows}
        return made | ({"ShadowProductionVariants": extra} if extra else {})

    return given


def update(endpoint_of: Callable[[Sandbox], str] = endpoint, of: Change | None = None, **change: Any) -> Given:
    """An update of a new endpoint to another configuration, which has the members `of`."""

    def given(box: Sandbox) -> Change:
        made = endpoint_of(box)
        return {"EndpointName": made, "EndpointConfigName": config(box, made, **(of or {}))} | change

    return given


def busy(box: Sandbox) -> str:
    """An endpoint that is being updated."""
    made = endpoint(box)
    box.world.fleet.system_update(box.world.fleet.endpoint(made))
    return made


def failed(box: Sandbox) -> str:
    """An endpoint that has failed."""
    made = endpoint(box)
    box.world.fleet.endpoint(made).status = "Failed"
    return made


def of_four(box: Sandbox) -> str:
    """An endpoint with four instances."""
    return endpoint(box, "ml.g5.xlarge", 4)


def of_two_variants(box: Sandbox) -> str:
    """An endpoint with two variants."""
    other = {"VariantName": "other", "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 2}
    return endpoint(box, "ml.g5.xlarge", 2, more_variants=[other])


def scaled(box: Sandbox) -> str:
    """An endpoint whose variant is a scalable target."""
    made = endpoint(box)
    box.autoscale(made, 1, 2)
    return made


def scheduled_often(box: Sandbox) -> str:
    """A scalable target with as many scheduled actions as there may be."""
    made = scaled(box)
    who = TARGET | {"ResourceId": f"endpoint/{made}/variant/{VARIANT_NAME}"}
    for number in range(200):
        box.client("application-autoscaling").put_scheduled_action(
            **who,
            ScheduledActionName=f"s-{number}",
            Schedule="cron(30 6 ? * MON *)",
            ScalableTargetAction={"MinCapacity": 1},
        )
    return made


def same_config(box: Sandbox) -> Change:
    """An update to the configuration in use."""
    made = endpoint(box)
    return {"EndpointName": made, "EndpointConfigName": f"{made}-config"}


def to_serverless(box: Sandbox) -> Change:
    """An update of an endpoint with instances to a serverless variant."""
    made, other = endpoint(box), endpoint(box, serverless={"MemorySizeInMB": 1024, "MaxConcurrency": 1})
    return {"EndpointName": made, "EndpointConfigName": f"{other}-config"}


def above_quota(box: Sandbox) -> Change:
    """An update to a type without any quota."""
    made = endpoint(box)
    box.set_quota("ml.g6.xlarge", 0)
    return {"EndpointName": made, "EndpointConfigName": config(box, made, "ml.g6.xlarge")}


def two_variants_rolling(box: Sandbox) -> Change:
    """A rolling update of an endpoint with two variants, to the same two."""
    made = of_two_variants(box)
    rows = [
        {"VariantName": each, "ModelName": f"{made}-model", "InstanceType": "ml.g5.2xlarge", "InitialInstanceCount": 2}
        for each in (VARIANT_NAME, "other")
    ]
    return {
        "EndpointName": made,
        "EndpointConfigName": config(box, made, ProductionVariants=rows),
        "DeploymentConfig": rolling(),
    }


def guarded_to_others(box: Sandbox) -> Change:
    """A guarded update to a configuration with another variant."""
    made = endpoint(box)
    rows = [VARIANT | {"ModelName": f"{made}-model"}]
    target = config(box, made, ProductionVariants=rows)
    return {"EndpointName": made, "EndpointConfigName": target, "DeploymentConfig": all_at_once()}


def other_layouts(box: Sandbox) -> Change:
    """An update to another partition layout."""
    made = endpoint(box)
    row = VARIANT | {"ModelName": f"{made}-model", "VariantName": VARIANT_NAME, "AcceleratorPartitionLayouts": [MIG]}
    return {"EndpointName": made, "EndpointConfigName": config(box, made, ProductionVariants=[row])}


def routing(kind: str, **sizes: Any) -> Change:
    """A blue/green policy with this traffic routing."""
    row = {"Type": kind, "WaitIntervalInSeconds": 600, **sizes}
    return {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": row}}


def all_at_once(**members: Any) -> Change:
    """All at once, with more members of the policy."""
    return {"BlueGreenUpdatePolicy": routing("ALL_AT_ONCE")["BlueGreenUpdatePolicy"] | members}


def rolling(**members: Any) -> Change:
    """A rolling policy."""
    return {"RollingUpdatePolicy": {"MaximumBatchSize": BATCH, "WaitIntervalInSeconds": 60, **members}}


def weights(of: Callable[[Sandbox], str] = endpoint, *rows: Change) -> Given:
    """A change of an endpoint's counts."""
    wanted = list(rows) or [{"VariantName": VARIANT_NAME, "DesiredInstanceCount": 2}]
    return lambda box: {"EndpointName": of(box), "DesiredWeightsAndCapacities": wanted}


def more_than_quota(box: Sandbox) -> Change:
    """More instances than the quota has."""
    made = endpoint(box, "ml.g6.2xlarge")
    box.set_quota("ml.g6.2xlarge", 1)
    return {
        "EndpointName": made,
        "DesiredWeightsAndCapacities": [{"VariantName": VARIANT_NAME, "DesiredInstanceCount": 2}],
    }


def component(box: Sandbox, busy: bool = False, copies: int = 4) -> str:
    """The name of a new inference component."""
    host, made = endpoint(box, inference_components=True), name("component")
    box.add_component(made, host, copies=copies)
    if busy:
        box.world.components.known[made].status = "Updating"
    return made


def of_component(busy: bool = False, **change: Any) -> Given:
    """An update of a component."""
    return lambda box: {"InferenceComponentName": component(box, busy), **change}


def of_model(shadowed: bool = False, **model: Any) -> Given:
    """A configuration of a model with these members: with a shadow, or serverless."""

    def given(box: Sandbox) -> Change:
        row: Change = VARIANT | {"ModelName": f"{endpoint(box, model=model)}-model"}
        if shadowed:
            shadow = [VARIANT | {"VariantName": "s"}]
            return {"EndpointConfigName": name("c"), "ProductionVariants": [row], "ShadowProductionVariants": shadow}
        row = {"VariantName": "v", "ModelName": row["ModelName"], "ServerlessConfig": SERVERLESS}
        return {"EndpointConfigName": name("c"), "ProductionVariants": [row]}

    return given


def partitioned(box: Sandbox) -> Change:
    """An update of a component on a variant without partitions to one of them."""
    needs = {"MinMemoryRequiredInMb": 1024, "NumberOfAcceleratorDevicesRequired": 1.0}
    return of_component(
        Specification={"ComputeResourceRequirements": needs | {"AcceleratorPartitionType": "mig-1g.10gb"}}
    )(box)


def tagged(*keys: str) -> Given:
    """Tags for a new endpoint."""

    def given(box: Sandbox) -> Change:
        arn = box.world.fleet.endpoint(endpoint(box)).arn
        return {"ResourceArn": arn, "Tags": [{"Key": key, "Value": "v"} for key in keys]}

    return given


def many_tags(box: Sandbox) -> Change:
    """A tag for an endpoint that has 50."""
    made = tagged("one-more")(box)
    box.world.tags.put(made["ResourceArn"], {f"k{n}": "v" for n in range(50)})
    return made


def target(of: Callable[[Sandbox], str] = endpoint, **change: Any) -> Given:
    """A request about a variant of a new endpoint as a scalable target."""
    return lambda box: TARGET | {"ResourceId": f"endpoint/{of(box)}/variant/{VARIANT_NAME}"} | change


def burstable(box: Sandbox) -> str:
    """An endpoint on a burstable type."""
    return endpoint(box, "ml.t2.medium")


def serverless(box: Sandbox) -> str:
    """A serverless endpoint."""
    return endpoint(box, serverless={"MemorySizeInMB": 1024, "MaxConcurrency": 1})


def composites(box: Sandbox) -> Change:
    """Two composite alarms, to be deleted."""
    names = [name("a"), name("a")]
    for each in names:
        box.world.alarms.put({"AlarmName": each, "AlarmRule": "TRUE"})
    return {"AlarmNames": names}


def insights(box: Sandbox) -> Change:
    """An alarm on a Metrics Insights query that looks back for more than three hours."""
    text = 'SELECT AVG(GPUUtilization) FROM SCHEMA("/aws/sagemaker/Endpoints", EndpointName, VariantName) '
    query = {"Id": "q1", "Period": 300, "Expression": f"{text}GROUP BY EndpointName, VariantName ORDER BY AVG() ASC"}
    return {
        "AlarmName": name("a"),
        "Metrics": [query],
        "EvaluationPeriods": 37,
        "Threshold": 1.0,
        "ComparisonOperator": "LessThanThreshold",
    }


def promql(**change: str) -> Given:
    """A query in PromQL."""
    return lambda box: {"query": 'max_over_time({"m"}[60s])', "start": "0", "end": "600", "step": "60"} | change


def written_item(box: Sandbox) -> Change:
    """A put on the condition that the item is not there, where it is."""
    key = {"pk": {"S": name("pk")}, "sk": {"S": "b"}}
    box.client("dynamodb").put_item(TableName="ledger", Item=key)
    return {"TableName": "ledger", "Item": key, "ConditionExpression": "attribute_not_exists(pk)"}


def large_update(box: Sandbox) -> Change:
    """An update that takes an item of 250 KB beyond 400 KB."""
    key = {"pk": {"S": name("pk")}, "sk": {"S": "b"}}
    box.client("dynamodb").put_item(TableName="ledger", Item=key | {"doc": {"S": "x" * 250_000}})
    added = {"UpdateExpression": "SET more = :more", "ExpressionAttributeValues": {":more": {"S": "x" * 250_000}}}
    return {"TableName": "ledger", "Key": key, **added}


def transaction(box: Sandbox) -> Change:
    """The same in a transaction."""
    return {"TransactItems": [{"Put": written_item(box)}]}


def deleted_secret(box: Sandbox) -> Change:
    """A secret that is to be deleted."""
    made, secrets = name("secret"), box.client("secretsmanager")
    secrets.create_secret(Name=made, SecretString="x")
    secrets.delete_secret(SecretId=made)
    return {"SecretId": made}


def written_object(box: Sandbox) -> Change:
    """An object on the condition that it is not there, where it is."""
    box.client("s3").put_object(Bucket="reports", Key="taken", Body=b"x")
    return {"Bucket": "reports", "Key": "taken", "Body": b"y", "IfNoneMatch": "*"}


def group(spot: Spot) -> str:
    """The name of a new Auto Scaling group."""
    made = name("g")
    spot.group(made, desired=2, maximum=3)
    return made


def outside_group(box: Sandbox) -> Change:
    """An instance of one group detached from another."""
    spot = spots[box]
    return {
        "InstanceIds": [spot.members(group(spot))[0]],
        "AutoScalingGroupName": group(spot),
        "ShouldDecrementDesiredCapacity": False,
    }


def too_many(box: Sandbox) -> Change:
    """A desired capacity above the group's maximum."""
    return {"AutoScalingGroupName": group(spots[box]), "DesiredCapacity": 4}


def asked_out(box: Sandbox) -> Change:
    """A request for scores when all of the day's are used."""
    spots[box].pools.score_requests.update((n,) for n in range(10))
    return {"InstanceTypes": ["g5.xlarge", name("g"), "g6.xlarge"], "TargetCapacity": 1}


def no_pool(box: Sandbox) -> Change:
    """The release of a warm pool of a job that has none."""
    made = name("job")
    spots[box].jobs.train(made)
    return {"TrainingJobName": made, "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}


spots: dict[Sandbox, Spot] = {}
"""The Spot side of the account of the tests."""
