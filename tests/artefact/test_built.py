"""Every built function runs under the real runtime client, with the sandbox as a server."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from bench.calls import deploy
from sandbox.account import Sandbox
from sandbox.runtime import Answer, BuiltFunction, ExecutionEnvironment, built

pytestmark = [pytest.mark.artefact, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
SLACK = {"SlackSecretArn": "arn:aws:secretsmanager:eu-west-1:111122223333:secret:slack-AbCdEf"}
NOT_OURS = {"Runtime.ImportModuleError", "Runtime.HandlerNotFound", "Runtime.UserCodeSyntaxError", "Runtime.ExitError"}
DOORS = sorted({path.parent.name for path in (ROOT / "functions").glob("*/app.py")} - {"hours"})


@dataclass
class Deployed:
    """The build, the account that it runs in, and where that answers."""

    functions: dict[str, BuiltFunction]
    box: Sandbox
    url: str
    python: Path

    def invoke(self, door: str, event: Any) -> Answer:
        with ExecutionEnvironment(self.functions[door.capitalize()], self.python, self.url) as environment:
            return environment.invoke(event, timeout=120)


@pytest.fixture(scope="module")
def deployed(build: Path, runtime_python: Path) -> Iterator[Deployed]:
    with Sandbox() as box:
        box.add_endpoint("chat-7b", instance_type="ml.g5.2xlarge", count=1)
        variables = deploy(box)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        references = {"Table": variables["RIGHTSIZER_TABLE"], "EvaluationQueue": variables["RIGHTSIZER_QUEUE_URL"]}
        try:
            functions = built(build, references, SLACK)
            yield Deployed(functions, box, f"http://{host}:{port}", runtime_python)
        finally:
            server.stop()


def event(name: str) -> Any:
    return json.loads((ROOT / "events" / f"{name}.json").read_text())


def test_the_sweep_lists_the_account_and_sends_a_page(deployed: Deployed) -> None:
    answer = deployed.invoke("sweep", event("scheduler/sweep-full"))
    assert answer.ok, answer.log
    queue = deployed.functions["Sweep"].variables["RIGHTSIZER_QUEUE_URL"]
    (message,) = deployed.box.client("sqs").receive_message(QueueUrl=queue).get("Messages", [])
    assert "chat-7b" in message["Body"]


def test_the_evaluation_of_a_page_leaves_a_recommendation_in_the_table(deployed: Deployed) -> None:
    body = json.loads(event("sqs/sweep-page")["Records"][0]["body"]) | {"endpoints": ["chat-7b"]}
    batch = event("sqs/sweep-page")
    batch["Records"][0]["body"] = json.dumps(body)
    answer = deployed.invoke("evaluate", batch)
    assert answer.ok, answer.log
    assert answer.payload == {"batchItemFailures": []}
    key = {"pk": {"S": "ENDPOINT#chat-7b"}, "sk": {"S": "RECOMMENDATION"}}
    item = deployed.box.client("dynamodb").get_item(TableName="rightsizer", Key=key).get("Item")
    assert item is not None, answer.log
    assert item["finding"]["S"] == "NotEnoughData"


OLD = "import botocore, runpy; botocore.__version__ = '1.37.0'; runpy.run_module('awslambdaric', run_name='__main__')"


@pytest.mark.parametrize("door", ["sweep", "respond"])
def test_an_older_botocore_is_told_once_at_the_start_of_a_function(door: str, deployed: Deployed) -> None:
    """In both kinds of session that doors open."""
    function = deployed.functions[door.capitalize()]
    with ExecutionEnvironment(function, deployed.python, deployed.url, start=("-c", OLD)) as environment:
        for _ in range(2):
            answer = environment.invoke(event("scheduler/sweep-light"), timeout=120)
    told = [line for line in answer.log.splitlines() if '"WARNING"' in line and "botocore 1.37.0" in line]
    assert len(told) == 1, answer.log


@pytest.mark.parametrize("door", DOORS)
def test_a_door_starts_and_names_what_is_wrong_with_an_event_that_is_none(door: str, deployed: Deployed) -> None:
    answer = deployed.invoke(door, {"nonsense": True})
    assert "No module named" not in answer.log
    if answer.error is not None:
        assert answer.error["errorType"] not in NOT_OURS | {"Sandbox.Timedout"}
        assert answer.error["errorMessage"]
