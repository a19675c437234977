"""What advice ends in: the endpoint as neutral facts, and the request of the measurement that settles what is open."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rightsizer.advice.answer import Action, Advice, AdvisedOption, Hosting, Measurement, Purchase
from rightsizer.advice.capacity import TARGET_USE
from rightsizer.advice.workload import ModelKind, Task, Traffic, Workload
from rightsizer.errors import InputError

VARIANT = "AllTraffic"
ENDPOINTS = (Hosting.REALTIME, Hosting.ASYNC, Hosting.SERVERLESS)
"""Kinds of hosting that one endpoint and its configuration describe."""
BACKLOG = 5
"""Requests that wait for each instance before an asynchronous endpoint grows; an assumption."""
ERRORS = 5
"""Answers of 5XX a minute that roll an update back; an assumption."""
BAKE_S = 300
"""Seconds that a canary is watched."""
OPENS, LASTS, LATEST = 9, 8, 23
"""Hour in which a scheduled endpoint starts, hours that it runs where none are given, and its latest end."""
WORKING_DAYS = 22
"""Days a month up to which a schedule takes working days only."""
NO_TYPE = "The size of the model is not known, so no type is advised: measure its memory on any large GPU, then choose."
NO_MEMORY = "MB of memory. The size of the model is not known, so none is advised: measure it, then choose."


@dataclass(frozen=True, slots=True)
class Blueprint:
    """One endpoint with its scaling, guardrail and tags."""

    hosting: Hosting
    comment: str
    instance_type: str = ""
    """Empty where the size of the model is not known: the template then asks for it."""
    count: int = 1
    most: int = 2
    """Instances that autoscaling may start."""
    requests_per_minute: float | None = None
    """Requests a minute that one instance should get; None where nobody knows yet."""
    p95_ms: float | None = None
    memory_mb: int = 0
    """Of a serverless endpoint; 0 where the size of the model is not known."""
    tags: Mapping[str, str] = field(default_factory=dict)
    hours: tuple[str, str] | None = None
    """Cron expressions by which the endpoint is created and deleted, where it runs in working hours only."""

    @property
    def is_serverless(self) -> bool:
        """Whether there are no instances to count."""
        return self.hosting is Hosting.SERVERLESS

    @property
    def is_asynchronous(self) -> bool:
        """Whether requests wait in a queue."""
        return self.hosting is Hosting.ASYNC

    @property
    def least(self) -> int:
        """Instances that autoscaling keeps."""
        return 0 if self.is_asynchronous else self.count

    @property
    def has_canary(self) -> bool:
        """Whether an update can show itself on one instance first."""
        return not self.is_serverless and self.count > 1


def blueprint(workload: Workload, answer: Advice) -> Blueprint:
    """The endpoint of the best option that is one; InputError where the advice is a job or nothing."""
    option = next((each for each in answer.options if each.hosting in ENDPOINTS), None)
    if option is None:
        what = answer.options[0].hosting.value.lower() if answer.options else "nothing"
        raise InputError(f"a template describes an endpoint, and the advice is {what}; ask for --task real-time")
    variant = next((v for v in answer.environments if v.environment == workload.constraints.environment), None)
    tags: Mapping[str, str] = {"rightsizer:mode": "propose"}
    if variant is not None:
        tags = variant.tags
        option = variant.option if variant.option.hosting in ENDPOINTS else option
    return _of_option(workload, option, tags)


def _of_option(workload: Workload, option: AdvisedOption, tags: Mapping[str, str]) -> Blueprint:
    environment = workload.constraints.environment.value
    guessed = option.action is Action.UNKNOWN or not workload.model.has_size
    if option.hosting is Hosting.SERVERLESS:
        memory = 0 if guessed else int((option.memory.usable_gib if option.memory else 1) * 1024)
        text = f"{environment}: serverless, {option.plan}"
        return Blueprint(option.hosting, text, p95_ms=workload.objectives.p95_ms, memory_mb=memory, tags=tags)
    monthly = option.cost.usd_per_month
    price = "" if monthly is None else f", USD {monthly:,.2f} a month in {option.cost.region} ({option.cost.as_of})"
    rate = next((e.interval.middle for e in option.estimates if e.name.startswith("requests a second of one")), None)
    scheduled = option.purchase is Purchase.SCHEDULE and option.hosting is Hosting.REALTIME
    what = f"{option.count} x {option.instance_type}{price}; {option.action.value}"
    if guessed:
        what = f"{option.count} x a type that you name; the size of the model is not known"
    return Blueprint(
        option.hosting,
        f"{environment}: {what}",
        "" if guessed else option.instance_type,
        option.count,
        max(2 * option.count, option.count + 2),
        None if rate is None or guessed else rate * 60 * TARGET_USE,
        workload.objectives.p95_ms,
        tags=tags,
        hours=_hours(workload.traffic) if scheduled else None,
    )


def _hours(traffic: Traffic) -> tuple[str, str]:
    """When the endpoint starts and ends: the given hours of a day, or eight from nine o'clock."""
    lasts = min(LATEST, max(1, round(traffic.hours_per_day or LASTS)))
    opens = min(OPENS, LATEST - lasts)
    days = "MON-FRI" if (traffic.days_per_month or WORKING_DAYS) <= WORKING_DAYS else "*"
    return f"cron(0 {opens} ? * {days} *)", f"cron(0 {opens + lasts} ? * {days} *)"


CANDIDATES = 3
"""Instance types that one recommendation job compares."""
SAMPLED_PERCENT = 20
"""Share of the requests that a shadow variant gets."""
SHORT_RUN_S = 3600
ROLE = "<ARN of an execution role>"


def measurements(workload: Workload, options: Sequence[AdvisedOption]) -> tuple[Measurement, ...]:
    """The requests that would settle the advice, one at most; none where nothing has to be measured."""
    return tuple(_requests(workload, options))


def _requests(workload: Workload, options: Sequence[AdvisedOption]) -> Iterator[Measurement]:
    if workload.task.is_training:
        first = next((option for option in options if option.hosting is Hosting.JOB and option.instance_type), None)
        if first is not None:
            yield _short_run(first, workload.model.kind is not ModelKind.CLASSICAL)
    elif workload.running is not None:
        moved = next((option for option in options if option.action in (Action.TEST, Action.PROPOSE)), None)
        if moved is not None and moved.instance_type not in ("", workload.running.instance_type):
            yield _shadow_test(workload.running.instance_type, workload.running.count, moved)
    elif workload.task is Task.REAL_TIME:
        types = list(dict.fromkeys(option.instance_type for option in options if option.instance_type))[:CANDIDATES]
        if types:
            yield _recommendation_job(workload, types)


def _short_run(option: AdvisedOption, in_steps: bool) -> Measurement:
    """A training job on the advised type: a hundred steps of a network, a tenth of the data of a classical model."""
    spot = option.purchase is Purchase.SPOT
    stop = {"MaxRuntimeInSeconds": SHORT_RUN_S, **({"MaxWaitTimeInSeconds": 2 * SHORT_RUN_S} if spot else {})}
    parameters: dict[str, Any] = {
        "TrainingJobName": "<name of the job>",
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": "<image of your framework>", "TrainingInputMode": "File"},
        **({"HyperParameters": {"max_steps": "100"}} if in_steps else {}),
        "OutputDataConfig": {"S3OutputPath": "s3://<bucket>/advice/"},
        "ResourceConfig": {
            "InstanceType": option.instance_type,
            "InstanceCount": option.count,
            "VolumeSizeInGB": 200,
        },
        "StoppingCondition": stop,
    }
    if spot:
        parameters["EnableManagedSpotTraining"] = True
        parameters["CheckpointConfig"] = {"S3Uri": "s3://<bucket>/checkpoints/"}
    settles = (
        "seconds a step, memory and loss of the plan" if in_steps else "duration and memory on a tenth of the data"
    )
    return Measurement("CreateTrainingJob", settles, parameters)


def _shadow_test(today: str, count: int, option: AdvisedOption) -> Measurement:
    """A shadow variant on the other type beside the one that serves."""

    def variant(name: str, instance_type: str, number: int) -> dict[str, Any]:
        real_time = {"InstanceType": instance_type, "InstanceCount": number}
        config = {"InfrastructureType": "RealTimeInference", "RealTimeInferenceConfig": real_time}
        return {"ModelName": "<name of the model>", "VariantName": name, "InfrastructureConfig": config}

    parameters = {
        "Name": "<name of the test>",
        "Type": "ShadowMode",
        "RoleArn": ROLE,
        "EndpointName": "<name of the endpoint>",
        "ModelVariants": [variant("production", today, count), variant("shadow", option.instance_type, 1)],
        "ShadowModeConfig": {
            "SourceModelVariantName": "production",
            "ShadowModelVariants": [{"ShadowModelVariantName": "shadow", "SamplingPercentage": SAMPLED_PERCENT}],
        },
    }
    return Measurement("CreateInferenceExperiment", f"p95 and memory on {option.instance_type}", parameters)


def _recommendation_job(workload: Workload, types: Sequence[str]) -> Measurement:
    """A job that sends load to the first types and reports latency and requests a minute."""
    rate, limit = workload.traffic.peak, workload.objectives.p95_ms
    users = max(1, round(min(3.0, rate))) if rate else 1
    phase = {"InitialNumberOfUsers": 1, "SpawnRate": users, "DurationInSeconds": 300}
    parameters: dict[str, Any] = {
        "JobName": "<name of the job>",
        "JobType": "Advanced",
        "RoleArn": ROLE,
        "InputConfig": {
            "ModelPackageVersionArn": "<ARN of a version of a model package>",
            "EndpointConfigurations": [{"InstanceType": each} for each in types],
            "TrafficPattern": {"TrafficType": "PHASES", "Phases": [phase]},
            "ResourceLimit": {"MaxNumberOfTests": len(types), "MaxParallelOfTests": 1},
        },
    }
    if limit is not None:
        threshold = {"Percentile": "P95", "ValueInMilliseconds": max(1, round(limit))}
        parameters["StoppingConditions"] = {"ModelLatencyThresholds": [threshold]}
    what = "latency and requests a minute of the first types, with your own payload"
    return Measurement("CreateInferenceRecommendationsJob", what, parameters)
