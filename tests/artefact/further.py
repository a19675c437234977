"""What a door does beside the main path: one event or order for each operation that the main path does not need."""

import json
from datetime import timedelta
from typing import Any

from moto.s3.models import s3_backends

from rightsizer import bootstrap
from rightsizer.domain.endpoint import EndpointKind, EndpointRef
from rightsizer.domain.option import Option, OptionKind, Target
from rightsizer.domain.proposal import Decision, ProposalState
from rightsizer.domain.recommendation import Gate
from sandbox.traffic import DAYS, Workload, write_past
from tests import samples
from tests.artefact.course import Course
from tests.changing.scenarios import MANAGED, NIGHT, STEPS, VARIANT
from tests.changing.world import NEW_TYPE, OLD_TYPE, an_option, steady
from tests.doors.scene import APPROVER, REGION, ROOT
from tests.spot.test_jobs import CLUSTER, MANY, row

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
PROPOSE = {"rightsizer:mode": "propose"}
VLLM = "763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:0.9"


def play_further(on: Course) -> None:
    """Everything of this module, in one account after the main path, on a day when Lambda starts functions anew.

    What a function is asked by an operator, such as a self-test event, has its place here as a further stage.
    """
    on.functions.cold()
    endpoints_of_other_kinds(on)
    groups_jobs_and_clusters(on)
    orders_of_every_kind(on)


def endpoints_of_other_kinds(on: Course) -> None:
    """Autoscaled, covered by a Savings Plan, serving from a KV cache, and looked at because of an alarm."""
    at = on.at
    at.add("autoscaled-feed")
    weights = {"S3Uri": "s3://weights/llama/", "S3DataType": "S3Prefix", "CompressionType": "None"}
    container = {"Image": VLLM, "ModelDataSource": {"S3DataSource": weights}}
    with at.box.gate.unrecorded():
        at.box.world.plans.buy(1.0)
        at.box.client("s3").create_bucket(Bucket="weights")
        at.box.client("s3").put_object(Bucket="weights", Key="llama/model-1.safetensors", Body=b"x")
        held = s3_backends[at.box.account]["aws"].buckets["weights"].keys["llama/model-1.safetensors"]
        held.contentsize = 14 << 30  # what ListObjectsV2 tells of it
    work = Workload(lambda _: 30.0, "ml.g6e.xlarge", gpu_s=0.5, preallocates=True)
    at.box.add_endpoint("cached", work.home, tags=PROPOSE, observability=True, model={"Containers": [container]})
    write_past(at.box, "cached", work)
    at.box.add_endpoint("packed", OLD_TYPE, tags=PROPOSE, inference_components=True)
    at.box.add_component("packed-one", "packed")
    start, minutes = at.box.clock.now - timedelta(days=DAYS), int(DAYS * 1440)
    at.box.world.telemetry.put("vllm:kv_cache_usage_perc", "cached", "AllTraffic", start, 60, [0.1] * minutes)
    at.sweep("Daily")
    at.sweep("Hourly")
    alarm_of_a_user(on)


def alarm_of_a_user(on: Course) -> None:
    """An alarm's own action whose event names no endpoint, so that CloudWatch is asked which ones it means."""
    with on.at.box.gate.unrecorded():
        on.at.box.client("cloudwatch").put_metric_alarm(**alarm("feed-quiet", "autoscaled-feed"))
    event = json.loads((ROOT / "events" / "direct" / "composite.json").read_text())
    event["alarmData"]["alarmName"] = "feed-quiet"
    event["alarmArn"] = on.at.box.world.arn("cloudwatch", "alarm:feed-quiet")
    event["time"] = f"{on.at.box.clock.now:%Y-%m-%dT%H:%M:%S.000+0000}"
    on.at.stack.invoke("evaluate", event)


def alarm(name: str, endpoint: str, **over: Any) -> dict[str, Any]:
    """An alarm of the customer's on the requests of an endpoint."""
    return {
        "AlarmName": name,
        "Namespace": "AWS/SageMaker",
        "MetricName": "Invocations",
        "Dimensions": [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": "AllTraffic"}],
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 100_000.0,
        "ComparisonOperator": "GreaterThanThreshold",
        "TreatMissingData": "notBreaching",
    } | over


def groups_jobs_and_clusters(on: Course) -> None:
    """Interruptions of every kind, a job that waits, a warm pool that idles, a cluster without capacity."""
    at, spot = on.at, on.spot
    before = at.box.clock.now - timedelta(days=60)
    for zone in ZONES:
        for name, usd in (("g5.xlarge", 0.60), ("g5.2xlarge", 0.20), ("g6.xlarge", 0.30), ("g6.2xlarge", 0.31)):
            spot.pools.price(name, zone, before, usd)
    spot.pools.scores = {"use1-az1": 7}
    spot.group("dearer", zones=ZONES)
    spot.group("narrow", zones=ZONES, mode="propose")
    spot.group("hooked", zones=ZONES, hooks=["autoscaling:EC2_INSTANCE_TERMINATING"])
    stranded = spot.group("stranded", zones=ZONES, types=("g6.xlarge",), tags={"rightsizer:fallback": "on-demand"})
    stranded.mixed["LaunchTemplate"] = {"LaunchTemplateSpecification": launch_template(on), "Overrides": []}
    at.sweep("Hourly")
    spot.group("unknown", zones=ZONES)
    spot.empty("stranded")
    for name in ("dearer", "narrow", "hooked", "stranded", "unknown"):
        spot.groups.warn(spot.members(name)[0])
    alone = {"InstanceId": "i-0ffffffffffffffff", "InstanceType": "g5.xlarge", "State": {"Name": "running"}}
    spot.ec2.loose["i-0ffffffffffffffff"] = alone
    stranger = {"instance-id": "i-0ffffffffffffffff", "instance-action": "terminate"}
    at.box.world.emit("aws.ec2", "EC2 Spot Instance Interruption Warning", [], stranger)
    jobs(on)
    at.pass_time(minutes=10)


def launch_template(on: Course) -> dict[str, str]:
    """A launch template that names the instance type, for a group that names none itself."""
    with on.at.box.gate.unrecorded():
        made = on.at.box.client("ec2").create_launch_template(
            LaunchTemplateName="stranded", LaunchTemplateData={"InstanceType": "g6.xlarge"}
        )
    return {"LaunchTemplateId": made["LaunchTemplate"]["LaunchTemplateId"], "Version": "$Latest"}


def jobs(on: Course) -> None:
    """A training job that was interrupted, an idle warm pool that may be released, a HyperPod cluster."""
    at, known = on.at, on.spot.jobs
    now = at.box.clock.now
    past = [
        {"Status": "Training", "StartTime": now - timedelta(hours=10), "EndTime": now - timedelta(hours=8)},
        {"Status": "Interrupted", "StartTime": now - timedelta(hours=8)},
    ]
    known.train("bert", SecondaryStatusTransitions=past, SecondaryStatus="Interrupted")
    resources = {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 50}
    known.train(
        "idle",
        tags={"rightsizer:mode": "auto"},
        TrainingJobStatus="Completed",
        SecondaryStatus="Completed",
        TrainingEndTime=now - timedelta(hours=1),
        ResourceConfig=resources | {"KeepAlivePeriodInSeconds": 14_400},
        WarmPoolStatus={"Status": "Available", "ResourceRetainedBillableTimeInSeconds": 3600},
    )
    at.box.world.tags.put(known.jobs["idle"]["TrainingJobArn"], {"rightsizer:mode": "auto"})
    for name in ("bert", "idle"):
        known.emit(name)
    known.clusters["big"] = CLUSTER | {
        "InstanceGroups": [row("a", CurrentCount=4), row("b", InstanceRequirements=MANY)]
    }
    shortage = {
        "EventId": "e-1",
        "ClusterName": "big",
        "ClusterArn": CLUSTER["ClusterArn"],
        "EventLevel": "Error",
        "Description": "We currently do not have sufficient capacity to launch new ml.g5.8xlarge instances.",
    }
    at.box.world.emit("aws.sagemaker", "SageMaker HyperPod Cluster Event", [], {"EventDetails": shortage})
    at.stack.settle()


def orders_of_every_kind(on: Course) -> None:
    """Approved changes of every kind that apply knows, each on an endpoint of its own."""
    tagged = "111122223333.dkr.ecr.us-east-1.amazonaws.com/chat:2.5.1-gpu"
    with on.at.box.gate.unrecorded():
        subnet = on.at.box.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    network = {"VpcConfig": {"SecurityGroupIds": ["sg-0123456789abcdef0"], "Subnets": [subnet]}}
    components = {"inference_components": True, "count": 2, "variant_extra": {"ManagedInstanceScaling": MANAGED}}
    packed = (("placed-one", "BINPACK"), ("placed-two", "BINPACK"))
    made = {
        "of-a-type": ordered(on, "of-a-type", an_option(), image=tagged, config_extra=network),
        "scaled": autoscaled(on, "scaled"),
        "of-a-count": ordered(on, "of-a-count", counted(1), count=3),
        "copied": with_components(on, "copied", OptionKind.COPIES, copies=(("copied-one", 1), ("copied-two", 2))),
        "placed": with_components(on, "placed", OptionKind.PLACEMENT, placement=packed, **components),
        "asleep": asleep(on, "asleep"),
    }
    done = {ProposalState.PROVEN, ProposalState.APPLIED}
    at_work = [name for name in made if name != "asleep"]  # its proof is a request that wakes it, and none comes
    on.until(lambda: all(on.state(name) in done for name in at_work), hours=12)
    assert on.state("asleep") is ProposalState.APPLYING
    assert on.at.click("asleep", "Roll back", APPROVER)["statusCode"] == 200
    on.until(lambda: on.state("asleep") is ProposalState.ROLLED_BACK, hours=2)


def counted(count: int) -> Option:
    """Another count of the same type."""
    return an_option(kind=OptionKind.INSTANCE_COUNT, target=Target(OLD_TYPE, count))


def autoscaled(on: Course, name: str) -> str:
    """A change of type under target tracking, a step policy with an alarm of the customer's, a schedule and tags."""
    on.at.box.add_endpoint(name, OLD_TYPE, 1, tags=PROPOSE)
    on.at.box.autoscale(name, 1, 4, policies=(STEPS,), scheduled=(NIGHT,))
    who = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/{name}/variant/AllTraffic"}
    with on.at.box.gate.unrecorded():
        scaling = on.at.box.client("application-autoscaling")
        policies = scaling.describe_scaling_policies(**who, ScalableDimension=VARIANT)["ScalingPolicies"]
        steps = next(one["PolicyARN"] for one in policies if one["PolicyName"] == STEPS["PolicyName"])
        on.at.box.client("cloudwatch").put_metric_alarm(**alarm(f"{name}-burst", name, AlarmActions=[steps]))
    return approved(on, name, an_option(target=Target(NEW_TYPE, 2)))


def asleep(on: Course, name: str) -> str:
    """An autoscaled endpoint with a queue that may go to zero instances; its way back deletes what it added."""
    on.at.box.add_endpoint(name, OLD_TYPE, 2, tags=PROPOSE, asynchronous=True)
    on.at.box.autoscale(name, 1, 4, policies=(STEPS,))
    target = Target(OLD_TYPE, 2, minimum=0, idle_minutes=15)
    return approved(on, name, an_option(kind=OptionKind.SCALE_TO_ZERO, target=target), kind=EndpointKind.ASYNC)


def with_components(on: Course, name: str, kind: OptionKind, **target: Any) -> str:
    """A change of two inference components; what the endpoint needs beside them stands among `target`."""
    setup: dict[str, Any] = {
        key: target.pop(key) for key in ("inference_components", "count", "variant_extra") if key in target
    }
    on.at.box.add_endpoint(name, OLD_TYPE, tags=PROPOSE, **setup | {"inference_components": True})
    for component, copies in ((f"{name}-one", 3), (f"{name}-two", 1)):
        on.at.box.add_component(component, name, copies=copies)
        on.at.box.world.tags.put(on.at.box.world.fleet.arn("inference-component", component), PROPOSE)
    count = setup.get("count", 1)
    option = an_option(kind=kind, target=Target(OLD_TYPE, count, **target))
    return approved(on, name, option, kind=EndpointKind.INFERENCE_COMPONENTS)


def ordered(on: Course, name: str, option: Option, **endpoint: Any) -> str:
    """A plain endpoint and an approved change of it."""
    setup: dict[str, Any] = {"instance_type": OLD_TYPE, "count": 1, "tags": PROPOSE} | endpoint
    on.at.box.add_endpoint(name, **setup)
    return approved(on, name, option)


def approved(on: Course, name: str, option: Option, **judged: Any) -> str:
    """Put an approved proposal into the table, as a click leaves it: the stream starts the change."""
    box = on.at.box
    box.load(name, steady())
    with box.gate.unrecorded():
        live = box.client("sagemaker").describe_endpoint(EndpointName=name)
        counts = ",".join(f"{v['VariantName']}={v['DesiredInstanceCount']}" for v in live["ProductionVariants"])
        made = samples.recommendation(
            name,
            ref=EndpointRef(box.account, REGION, name),
            fingerprint=f"{live['EndpointConfigName']}|{live['LastModifiedTime'].isoformat()}|{counts}",
            options=(option,),
            gate=Gate.PROPOSE,
            evaluated_at=box.clock.now,
            **judged,
        )
        proposal = samples.proposal(
            f"p-{name}",
            recommendation=made,
            created_at=box.clock.now,
            expires_at=box.clock.now + timedelta(days=14),
            state=ProposalState.APPROVED,
            decision=Decision(ProposalState.APPROVED, f"slack:{APPROVER}", box.clock.now),
        )
        bootstrap.store().save(made, proposal)
    return name
