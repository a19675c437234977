"""What the layer holds, and what it must not."""

import io
import json
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.artefact

LIMIT_MIB = 9
MACHINES = {"x86": 0x3E, "build": 0xB7}
"""The e_machine field of an ELF header: x86-64, AArch64."""


@pytest.fixture(scope="module")
def layer(build: Path) -> Path:
    return build / "RightsizerLayer"


def test_the_layer_is_at_most_nine_mebibytes_zipped(layer: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(layer.rglob("*")):
            archive.write(path, path.relative_to(layer))
    assert packed.tell() / 2**20 <= LIMIT_MIB


@pytest.mark.parametrize(
    "package", ["boto3", "botocore", "numpy", "matplotlib", "typer", "rich", "moto", "slack_sdk", "pydantic/v1"]
)
def test_the_layer_does_not_hold(package: str, layer: Path) -> None:
    assert not (layer / "python" / package).exists()


@pytest.mark.parametrize("module", ["cli", "__main__"])
def test_the_terminal_stays_out_of_the_layer(module: str, layer: Path) -> None:
    assert (layer / "python" / "rightsizer" / "bootstrap" / "__init__.py").exists()
    assert not (layer / "python" / "rightsizer" / f"{module}.py").exists()


@pytest.mark.parametrize("package", ["terminal", "prometheus"])
def test_what_no_function_imports_stays_out_of_the_layer(package: str, layer: Path) -> None:
    assert not (layer / "python" / "rightsizer" / package).exists()


def test_every_module_of_the_layer_and_of_the_functions_is_compiled_for_the_runtime(build: Path) -> None:
    folders = [build / "RightsizerLayer" / "python", *(path.parent for path in build.glob("*/app.py"))]
    without = [
        str(path.relative_to(build))
        for folder in folders
        for path in folder.rglob("*.py")
        if not (path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc").exists()
    ]
    assert without == []


def test_the_bytecode_is_not_checked_against_file_times(layer: Path) -> None:
    (compiled,) = (layer / "python" / "rightsizer" / "__pycache__").glob("errors.cpython-313.pyc")
    _, flags = struct.unpack("<4sI", compiled.read_bytes()[:8])
    assert flags == 0b01  # by hash, unchecked (PEP 552)


def test_compiled_extensions_are_for_the_processor_of_the_build(build: Path, layer: Path) -> None:
    extensions = list(layer.rglob("*.so"))
    assert extensions
    for path in extensions:
        (machine,) = struct.unpack("<H", path.read_bytes()[18:20])
        assert machine == MACHINES[build.name], path.name


COMPILED = """
import importlib, json, sys
found = []
def note(event, arguments):
    if event == "compile" and arguments[0] and "__dataclass" in str(arguments[0]):
        found.append(str(arguments[0])[:200])
sys.addaudithook(note)
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(found))
"""


def test_no_function_compiles_the_methods_of_a_dataclass_when_it_starts(
    layer: Path, build: Path, runtime_python: Path
) -> None:
    modules = [
        ".".join(path.relative_to(layer / "python").with_suffix("").parts)
        for folder in ("domain", "flows", "aws", "bootstrap", "intake", "render")
        for path in sorted((layer / "python" / "rightsizer" / folder).glob("*.py"))
        if path.stem != "__init__"
    ]
    ours = {"PYTHONPATH": str(layer / "python"), "AWS_DEFAULT_REGION": "eu-west-1"}
    done = subprocess.run([runtime_python, "-c", COMPILED, *modules], env=ours, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


CREATE = """
import json, sys
from pathlib import Path
import botocore.session
session = botocore.session.get_session()
found = {}
for folder in sorted(Path(sys.argv[1]).iterdir()):
    client = session.create_client(folder.name, region_name="eu-west-1")
    found[folder.name] = [len(client.meta.service_model.operation_names), len(client.meta.method_to_api_mapping)]
print(json.dumps(found))
"""


def test_the_runtimes_botocore_makes_clients_from_the_cut_models(layer: Path, runtime_python: Path) -> None:
    models = layer / "models"
    done = subprocess.run(
        [runtime_python, "-c", CREATE, models], env={"AWS_DATA_PATH": str(models)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {"sagemaker", "cloudwatch", "dynamodb"} <= set(found)
    for service, (operations, methods) in found.items():
        (model,) = (models / service).glob("*/service-2.json")
        assert 0 < operations == methods == len(json.loads(model.read_text())["operations"])
        assert operations < 60, f"{service}: the model does not look cut"
