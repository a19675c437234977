"""Scenarios of changing: an endpoint, what is asked of it, and what counts as new and as old."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from rightsizer.autoscaling.target_tracking import REQUESTS
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Option, OptionKind, ScaleIn, Target, VariantTarget
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.preflight import pass_role_command
from rightsizer.domain.recommendation import Gate
from sandbox.account import Sandbox
from sandbox.seeding import ROLE
from tests.changing.world import NAME, NEW_TYPE, an_option

STEPS = {
    "PolicyName": "burst",
    "PolicyType": "StepScaling",
    "StepScalingPolicyConfiguration": {
        "AdjustmentType": "ChangeInCapacity",
        "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}],
        "Cooldown": 300,
    },
}
NIGHT = {
    "ScheduledActionName": "night",
    "Schedule": "cron(0 22 * * ? *)",
    "Timezone": "Europe/Berlin",
    "ScalableTargetAction": {"MinCapacity": 1, "MaxCapacity": 2},
}
DAY = {
    "ScheduledActionName": "day",
    "Schedule": "cron(12 9 * * ? *)",
    "ScalableTargetAction": {"MinCapacity": 2, "MaxCapacity": 6},
}
"""Fires while a change that was approved at 9:00 deploys."""
VARIANT = "sagemaker:variant:DesiredInstanceCount"
LONG = ChangeLimits(probation=timedelta(hours=24), rewire_alarms=True)


def autoscaled(box: Sandbox) -> None:
    """Target tracking, a step policy that an alarm of the customer's starts, a scheduled action, a suspension, tags."""
    box.autoscale(NAME, 1, 4, policies=(STEPS,), scheduled=(NIGHT,))
    scaling = box.client("application-autoscaling")
    who = {"ServiceNamespace": "sagemaker", "ResourceId": f"endpoint/{NAME}/variant/AllTraffic"}
    suspended = {"ScheduledScalingSuspended": True}
    scaling.register_scalable_target(**who, ScalableDimension=VARIANT, SuspendedState=suspended)
    (arn,) = [t.arn for t in box.world.scaling.targets.values()]
    box.world.tags.put(arn, {"team": "search", "aws:cloudformation:stack-name": "autoscaling-of-search"})
    policies = scaling.describe_scaling_policies(**who)["ScalingPolicies"]
    arn = next(p["PolicyARN"] for p in policies if p["PolicyName"] == "burst")
    box.client("cloudwatch").put_metric_alarm(
        AlarmName="burst-now",
        Namespace="AWS/SageMaker",
        MetricName="Invocations",
        Dimensions=[{"Name": "EndpointName", "Value": NAME}, {"Name": "VariantName", "Value": "AllTraffic"}],
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=100_000.0,
        ComparisonOperator="GreaterThanThreshold",
        TreatMissingData="notBreaching",
        AlarmActions=[arn, f"arn:aws:sns:eu-west-1:{box.account}:pager"],
    )


def busier(box: Sandbox) -> None:
    """As `autoscaled`, and autoscaling has raised the count since the configuration was written."""
    autoscaled(box)
    (variant,) = box.world.fleet.endpoint(NAME).variants.values()
    variant.count = variant.desired_count = 3


def scheduled(box: Sandbox) -> None:
    """Autoscaled by day and by night, and nothing is suspended."""
    box.autoscale(NAME, 1, 4, policies=(STEPS,), scheduled=(DAY, NIGHT))


def components(box: Sandbox) -> None:
    """Three copies of one component and one of another, both opted in."""
    for name, copies in (("small", 3), ("large", 1)):
        box.add_component(name, NAME, copies=copies)
        arn = box.world.fleet.arn("inference-component", name)
        box.world.tags.put(arn, {"rightsizer:mode": "propose"})


@dataclass(frozen=True)
class Scenario:
    """One kind of change."""

    name: str
    option: Option
    endpoint: Mapping[str, Any] = field(default_factory=dict)
    seed: Callable[[Sandbox], None] | None = None
    kind: EndpointKind = EndpointKind.REAL_TIME
    judged: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recommendation."""
    deploys: bool = True
    """Whether a new configuration is deployed, so that endings of deployments apply."""
    limits: ChangeLimits | None = None

    @property
    def turns(self) -> bool:
        """Whether one write changes the counts or the configuration."""
        return self.deploys or self.option.kind is OptionKind.INSTANCE_COUNT


PLAIN = Scenario("plain type change", an_option())
AUTOSCALED = Scenario("autoscaled type change", an_option(target=Target(NEW_TYPE, 2)), {"count": 1}, autoscaled)
BUSIER = replace(AUTOSCALED, name="more live than written", seed=busier)
SCHEDULED = replace(AUTOSCALED, name="schedule in the middle", seed=scheduled)
DAYLONG = replace(SCHEDULED, name="a day of probation", limits=LONG)
COUNT = Scenario(
    "count only",
    an_option(kind=OptionKind.INSTANCE_COUNT, target=Target("ml.g5.4xlarge", 1)),
    {"count": 3},
    deploys=False,
)
SEVERAL = Scenario(
    "several variants",
    an_option(),
    {"more_variants": ({"VariantName": "Second", "InstanceType": "ml.g5.4xlarge", "InitialInstanceCount": 1},)},
    kind=EndpointKind.MULTI_VARIANT,
)
BOTH = replace(
    SEVERAL,
    name="two variants at once",
    option=an_option(
        kind=OptionKind.TYPE_AND_COUNT,
        target=Target(NEW_TYPE, 1, others=(VariantTarget("Second", "ml.g5.2xlarge", 1, Decimal("1.515")),)),
        mean_instances=2.0,
    ),
)
POOLS = Scenario(
    "instance pools",
    an_option(kind=OptionKind.INSTANCE_POOLS, target=Target(NEW_TYPE, 1, pools=(NEW_TYPE, "ml.g5.4xlarge"))),
)
BOUNDS = Scenario(
    "autoscaling bounds",
    an_option(kind=OptionKind.AUTOSCALING, target=Target("ml.g5.4xlarge", 2, minimum=1, maximum=2)),
    {"count": 2},
    autoscaled,
    deploys=False,
)
HOURS = Scenario(
    "counts by the hour",
    an_option(
        kind=OptionKind.SCHEDULE, target=Target("ml.g5.4xlarge", 2, hourly_counts=(1,) * 8 + (2,) * 12 + (1,) * 4)
    ),
    {"count": 2},
    deploys=False,
)
OUR_HOURS = tuple(
    {
        "ScheduledActionName": f"rightsizer-c-old-{hour:02}",
        "Schedule": f"cron(0 {hour} * * ? *)",
        "ScalableTargetAction": {"MinCapacity": count, "MaxCapacity": count},
    }
    for hour, count in ((8, 2), (20, 1))
)


def in_hours(box: Sandbox) -> None:
    """Counts by the hour that an earlier change of ours set, and nothing else."""
    box.autoscale(NAME, 1, 2, scheduled=OUR_HOURS, invocations_per_instance=None)


LARGER_HOURS = Scenario(
    "larger counts by the hour",
    an_option(
        kind=OptionKind.SCHEDULE,
        target=Target("ml.g5.4xlarge", 3, hourly_counts=(1,) * 8 + (3,) * 12 + (1,) * 4),
        restores=True,
    ),
    {"count": 2},
    in_hours,
    deploys=False,
)
TRACKED = Scenario(
    "target tracking added",
    an_option(
        kind=OptionKind.AUTOSCALING,
        target=Target("ml.g5.4xlarge", 1, minimum=1, maximum=3, metric=REQUESTS, target_value=84.0),
    ),
    {"count": 3},
    deploys=False,
)
SHADOW = Scenario(
    "shadow test",
    an_option(test_hours=1.0),
    {"count": 2, "tags": {"rightsizer:mode": "auto", "rightsizer:shadow-ok": "true"}},
    autoscaled,
    judged={"gate": Gate.TEST},
)
COMPONENTS = Scenario(
    "inference components",
    an_option(kind=OptionKind.COPIES, target=Target("ml.g5.4xlarge", 1, copies=(("small", 1), ("large", 2)))),
    {"inference_components": True},
    components,
    kind=EndpointKind.INFERENCE_COMPONENTS,
    deploys=False,
)
MANAGED = {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 4}


def may_pass(box: Sandbox) -> None:
    """Two components, and an operator who let our role pass the endpoint's execution role, by the printed line."""
    components(box)
    follow(box, pass_role_command("apply", ROLE))


def follow(box: Sandbox, line: str) -> None:
    """Do what a printed line of the AWS CLI does: ``aws SERVICE OPERATION --NAME VALUE ...``."""
    _, service, operation, *words = shlex.split(line)
    names = ["".join(part.title() for part in word[2:].split("-")) for word in words[::2]]
    given = dict(zip(names, words[1::2], strict=True))
    getattr(box.client(service), operation.replace("-", "_"))(**given)


SCALE_IN = Scenario(
    "scale-in policy",
    an_option(
        kind=OptionKind.SCALE_IN,
        target=Target("ml.g5.4xlarge", 2, scale_in=ScaleIn("AllTraffic", "CONSOLIDATION", 1, 30)),
        saving_usd_per_month=Decimal(0),
    ),
    {"inference_components": True, "count": 2, "variant_extra": {"ManagedInstanceScaling": MANAGED}},
    may_pass,
    kind=EndpointKind.INFERENCE_COMPONENTS,
)
PLACEMENT = Scenario(
    "component placement",
    an_option(
        kind=OptionKind.PLACEMENT,
        target=Target("ml.g5.4xlarge", 2, placement=(("small", "BINPACK"), ("large", "BINPACK"))),
        saving_usd_per_month=Decimal(0),
    ),
    {"inference_components": True, "count": 2, "variant_extra": {"ManagedInstanceScaling": MANAGED}},
    components,
    kind=EndpointKind.INFERENCE_COMPONENTS,
    deploys=False,
)
COMPONENTS_ZERO = Scenario(
    "components to zero",
    an_option(kind=OptionKind.SCALE_TO_ZERO, target=Target("ml.g5.4xlarge", 1, minimum=0, idle_minutes=15)),
    {
        "inference_components": True,
        "count": 1,
        "variant_extra": {"ManagedInstanceScaling": MANAGED},
        "tags": {"rightsizer:mode": "propose", "rightsizer:cold-start-ok": "true"},
    },
    may_pass,
    kind=EndpointKind.INFERENCE_COMPONENTS,
)
BY_TAG = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/chat:2.5.1-gpu"
TAGGED = Scenario("type change of an image by tag", an_option(), {"image": BY_TAG}, autoscaled)
"""The other scenarios name their image by its digest, which costs no call."""
ASYNC = Scenario("async type change", an_option(), {"asynchronous": True}, kind=EndpointKind.ASYNC)
ZERO = Scenario(
    "async to zero",
    an_option(
        kind=OptionKind.SCALE_TO_ZERO,
        target=Target("ml.g5.4xlarge", 2, minimum=0, idle_minutes=15),
        restart_needed=False,
    ),
    {"count": 2, "asynchronous": True},
    kind=EndpointKind.ASYNC,
    deploys=False,
)
ZERO_AUTOSCALED = replace(ZERO, name="autoscaled async to zero", seed=autoscaled)
ALL = (
    PLAIN,
    AUTOSCALED,
    BUSIER,
    SCHEDULED,
    DAYLONG,
    COUNT,
    SEVERAL,
    BOTH,
    POOLS,
    BOUNDS,
    HOURS,
    LARGER_HOURS,
    TRACKED,
    SHADOW,
    COMPONENTS,
    SCALE_IN,
    PLACEMENT,
    TAGGED,
    ASYNC,
    ZERO,
    ZERO_AUTOSCALED,
    COMPONENTS_ZERO,
)
