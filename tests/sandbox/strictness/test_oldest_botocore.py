"""The built functions on the oldest supported botocore have each operation that the adapters call, and its parameters.

The layer brings the cut models of the pinned botocore, which are found first (`shared/slim_models.py`, AWS_DATA_PATH);
a service that is not among them falls back to the runtime's own. Both are looked up here as botocore does it.
"""

import ast
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import botocore
import botocore.session
import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel, Shape
from botocore.validate import ParamValidator

from rightsizer.aws.session import OLDEST_BOTOCORE
from rightsizer.domain.plan import StepKind
from slim_models import names_in, slim_service
from tests.house.source import nodes
from tests.sandbox.strictness.test_rows import LIBRARY, MEANT, OWN_MODELS, ROOT, adapters, called, operations

type Models = Callable[[str], ServiceModel]
"""The model of a service, by its name."""
OURS = {tuple(operation.split(":")) for operation in OWN_MODELS.values()}
"""Operations of the models that the program brings itself."""
GOLDEN = ROOT / "tests" / "golden" / "first-release"


@pytest.fixture(scope="module")
def own_data() -> Path:
    """Service models of the oldest supported botocore."""
    found = sorted((ROOT / ".venv-lambda-oldest").glob("lib/python3*/site-packages/botocore/data"))
    if not found:
        pytest.skip("there is no .venv-lambda-oldest; make artefact creates it")
    installed = found[0].parents[1] / f"botocore-{OLDEST_BOTOCORE}.dist-info"
    assert installed.exists(), "make artefact installs the oldest one"
    return found[0]


@pytest.fixture(scope="module")
def oldest(own_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Models:
    """Service models as a built function on the oldest botocore finds them."""
    cut, names = tmp_path_factory.mktemp("models"), names_in(LIBRARY)
    for folder in sorted((Path(botocore.__file__).parent / "data").iterdir()):
        if folder.is_dir() and folder.name in names:
            slim_service(folder, names, cut)
    return models_at(cut, own_data)


def models_at(*folders: Path) -> Models:
    """Service models of these folders, the first one first."""
    loader = Loader(extra_search_paths=[str(one) for one in folders], include_default_search_paths=False)
    return cache(lambda service: ServiceModel(loader.load_service_model(service, "service-2"), service_name=service))


@cache
def pinned(service: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(service)


def sent() -> Iterator[tuple[str, str, str, ast.Call]]:
    """Service, operation, place and call of each request that is written out in the adapters."""
    for path in adapters():
        for node in nodes(path):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            method, asked = node.func.attr, node.func.value
            if method == "paginate" and isinstance(asked, ast.Call) and isinstance(asked.args[0], ast.Constant):
                method = str(asked.args[0].value)
            named = operations().get(method, {})
            if named and method not in OWN_MODELS:
                service = MEANT[method] if len(named) > 1 else next(iter(named))
                yield service, named[service], f"{path.name}:{node.lineno}", node


def unknown(name: str, value: ast.expr | None, new: Shape | None, old: Shape | None) -> Iterator[str]:
    """Members that the pinned model has and the oldest lacks, among what is written out."""
    if isinstance(value, ast.Dict) and isinstance(getattr(new, "members", None), dict):
        for key, inner in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in new.members:  # type: ignore[union-attr]
                yield from member(f"{name}.{key.value!s}", str(key.value), inner, new, old)
    elif isinstance(value, ast.List) and new is not None and new.type_name == "list":
        for inner in value.elts:
            yield from unknown(name, inner, new.member, old.member)  # type: ignore[attr-defined, union-attr]


def member(path: str, key: str, value: ast.expr, new: Any, old: Any) -> Iterator[str]:
    if key not in old.members:
        yield path
    else:
        yield from unknown(path, value, new.members[key], old.members[key])


def missing_operations(models: Models) -> set[tuple[str, str]]:
    """Operations that the adapters call, and that these models lack."""
    calls = [key for key in called() if key not in OURS]
    assert len(calls) > 60
    return {(service, name) for service, name in calls if name not in models(service).operation_names}


def test_every_operation_that_the_adapters_call_is_there(oldest: Models) -> None:
    lacking = {f"{service}:{name} ({called()[service, name]})" for service, name in missing_operations(oldest)}
    assert not lacking, f"botocore {OLDEST_BOTOCORE} lacks them: raise OLDEST_BOTOCORE, or do without"


def test_an_operation_of_a_later_botocore_is_seen(own_data: Path) -> None:
    """Without the layer's models the oldest one would lack it."""
    assert missing_operations(models_at(own_data)) == {("cloudwatch", "DescribeAlarmContributors")}


def missing_parameters(models: Models) -> Iterator[str]:
    """Parameters that the adapters write out, and that these models lack."""
    checked = 0
    for service, name, where, call in sent():
        if name not in models(service).operation_names:
            continue
        new, old = (one(service).operation_model(name).input_shape for one in (pinned, models))
        for keyword in call.keywords:
            if keyword.arg is not None and keyword.arg in getattr(new, "members", {}):
                checked += 1
                found = member(keyword.arg, keyword.arg, keyword.value, new, old)
                yield from (f"{service}:{name} {path} ({where})" for path in found)
    assert checked > 100


def test_every_parameter_that_the_adapters_write_out_is_there(oldest: Models) -> None:
    lacking = list(missing_parameters(oldest))
    assert not lacking, f"botocore {OLDEST_BOTOCORE} lacks them: raise OLDEST_BOTOCORE, or do without"


def steps(value: Any) -> Iterator[dict[str, Any]]:
    """Every step of a stored plan, at whatever depth."""
    if isinstance(value, dict):
        if {"kind", "subject", "params"} <= value.keys():
            yield value
        for inner in value.values():
            yield from steps(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from steps(inner)


def invalid_requests(models: Models) -> Iterator[str]:
    """Requests of stored changes that these models refuse: plans make them, and they are sent as they are."""
    checked = set()
    for path in sorted(GOLDEN.glob("change-*.json")):
        for step in steps(json.loads(json.loads(path.read_text())["doc"]["S"])):
            service, _, name = StepKind(step["kind"]).partition(":")
            shape: Any = models(service).operation_model(name).input_shape
            report = ParamValidator().validate(step["params"], shape)
            if report.has_errors():
                yield f"{step['kind']}: {report.generate_report()}"
            checked.add(step["kind"])
    assert {"sagemaker:UpdateEndpoint", "sagemaker:CreateEndpointConfig", "cloudwatch:PutMetricAlarm"} <= checked


def test_the_requests_of_a_stored_change_are_valid_there(oldest: Models) -> None:
    assert list(invalid_requests(oldest)) == []


def test_a_request_of_a_later_botocore_is_seen(own_data: Path) -> None:
    found = set(invalid_requests(models_at(own_data)))
    assert found
    assert all(one.startswith('sagemaker:CreateEndpointConfig: Unknown parameter in input: "MetricsC') for one in found)


def test_a_parameter_of_a_later_botocore_is_seen(oldest: Models) -> None:
    call = ast.parse("c.create_endpoint_config(ProductionVariants=[{'VariantName': 'v', 'InstanceType': 't'}])").body[0]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    new = pinned("sagemaker").operation_model("CreateEndpointConfig").input_shape
    service = json.loads(json.dumps(vars(oldest("sagemaker"))["_service_description"]))
    del service["shapes"]["ProductionVariant"]["members"]["InstanceType"]
    old = ServiceModel(service).operation_model("CreateEndpointConfig").input_shape
    (keyword,) = call.value.keywords
    assert keyword.arg is not None
    assert list(member(keyword.arg, keyword.arg, keyword.value, new, old)) == ["ProductionVariants.InstanceType"]
