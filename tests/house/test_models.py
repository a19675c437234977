"""Cutting a service model keeps what is called and all that it needs; tests/artefact uses the result."""

import json
from pathlib import Path
from typing import Any

import botocore
import pytest
from botocore.model import ServiceModel

from slim_models import names_in, read, slim, slim_service

DATA = Path(botocore.__file__).parent / "data"


def test_an_operation_that_is_called_or_paged_is_kept_with_its_shapes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "fleet.py").write_text(
        'client = make("sagemaker")\nclient.update_endpoint(x=1)\nclient.get_paginator("list_endpoints")\n'
    )
    assert slim_service(DATA / "sagemaker", names_in(source), tmp_path / "out") == 2
    (model,) = (tmp_path / "out").rglob("service-2.json")
    cut = json.loads(model.read_text())
    assert set(cut["operations"]) == {"UpdateEndpoint", "ListEndpoints"}
    assert {"UpdateEndpointInput", "DeploymentConfig", "RollingUpdatePolicy", "EndpointSummary"} <= set(cut["shapes"])
    assert len(model.read_text()) < 20_000
    assert (model.parent / "endpoint-rule-set-1.json").exists()


def test_a_search_brings_the_records_that_are_read_and_no_others() -> None:
    cut = slim(whole("sagemaker"), {"Search"})["shapes"]
    assert {"Endpoint", "Model", "ContainerDefinition", "ProductionVariantSummary"} <= set(cut)
    assert {"TrainingJob", "Pipeline", "TransformJob"}.isdisjoint(cut)


def test_a_service_that_is_only_mentioned_gets_no_model(tmp_path: Path) -> None:
    assert slim_service(DATA / "rds", frozenset({"rds"}), tmp_path) == 0
    assert list(tmp_path.iterdir()) == []


def test_every_shape_that_a_cut_model_mentions_is_in_it() -> None:
    version = max(path for path in (DATA / "cloudwatch").iterdir() if path.is_dir())
    cut = slim(read(version / "service-2"), {"GetMetricData", "PutMetricAlarm"})
    mentioned = json.dumps(cut)
    for name in cut["shapes"]:
        assert f'"shape": "{name}"' in mentioned
    assert '"documentation"' not in mentioned


CUT = ("s3", "sqs", "dynamodb", "sns", "savingsplans")


def whole(service: str) -> dict[str, Any]:
    return read(max(path for path in (DATA / service).iterdir() if path.is_dir()) / "service-2")


def test_s3_keeps_the_documentation_that_botocore_reads_with_each_request() -> None:
    """Without it every call of S3 ends in a KeyError."""
    model = whole("s3")
    expected = ServiceModel(model, "s3").client_context_parameters
    assert len(expected) > 0
    assert ServiceModel(slim(model, {"PutObject"}), "s3").client_context_parameters == expected


@pytest.mark.parametrize("service", CUT)
def test_only_operations_and_shapes_lose_their_documentation(service: str) -> None:
    model = whole(service)
    cut = slim(model, sorted(model["operations"])[:1])
    left_out = {"operations", "shapes", "documentation"}
    assert {k: v for k, v in cut.items() if k not in left_out} == {k: v for k, v in model.items() if k not in left_out}
