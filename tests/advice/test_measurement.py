"""Requests of measurements are ones that the SageMaker API understands."""

from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from rightsizer.advice.advise import advise

LLM = {"kind": "llm", "name": "llama-3-8b"}
RUNNING = {"instance_type": "ml.g5.xlarge", "p95_ms": 80, "count": 3}


@pytest.mark.parametrize(
    ("described", "operation"),
    [
        ({"task": "training", "model": LLM}, "CreateTrainingJob"),
        ({"task": "fine-tuning", "model": LLM, "constraints": {"checkpoints": True}}, "CreateTrainingJob"),
        ({"task": "real-time", "model": LLM, "objectives": {"p95_ms": 30000}}, "CreateInferenceRecommendationsJob"),
        ({"task": "real-time", "model": {"kind": "vision"}, "running": RUNNING}, "CreateInferenceExperiment"),
    ],
)
def test_the_request_is_valid(described: dict[str, Any], operation: str) -> None:
    answer = advise(described)
    (made,) = answer.measurements
    service = botocore.session.get_session().get_service_model("sagemaker")
    shape = service.operation_model(operation).input_shape
    assert shape is not None
    report = ParamValidator().validate(made.parameters, shape)
    assert made.operation == operation
    assert not report.has_errors(), report.generate_report()
    kind = "TrainingInstanceType" if operation == "CreateTrainingJob" else "ProductionVariantInstanceType"
    types = service.shape_for(kind).metadata["enum"]
    assert answer.options[0].instance_type in types
    assert answer.options[0].instance_type in str(made.parameters)


def test_spot_comes_with_checkpoints_and_a_wait() -> None:
    (made,) = advise({"task": "fine-tuning", "model": LLM, "constraints": {"checkpoints": True}}).measurements
    assert made.parameters["EnableManagedSpotTraining"] is True
    stop = made.parameters["StoppingCondition"]
    assert stop["MaxWaitTimeInSeconds"] > stop["MaxRuntimeInSeconds"]
    assert made.parameters["CheckpointConfig"]


def test_a_rate_beyond_all_bounds_sends_three_users() -> None:
    traffic = {"requests_per_month": 1e13, "hours_per_day": 5e-324, "days_per_month": 1}
    (made,) = advise({"task": "real-time", "model": {"kind": "vision"}, "traffic": traffic}).measurements
    assert made.parameters["InputConfig"]["TrafficPattern"]["Phases"][0]["SpawnRate"] == 3


def test_nothing_is_measured_where_nothing_is_open() -> None:
    assert advise({"task": "notebook"}).measurements == ()
    assert advise({"task": "real-time", "model": {"kind": "llm", "parameters": 9e12}}).measurements == ()
