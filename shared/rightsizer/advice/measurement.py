"""The request of the measurement that settles what advice cannot know, as parameters of the SageMaker API.

Names in angle brackets are for the reader to fill in. Nothing is sent.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from rightsizer.advice.answer import Action, AdvisedOption, Hosting, Measurement, Purchase
from rightsizer.advice.workload import ModelKind, Task, Workload

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
