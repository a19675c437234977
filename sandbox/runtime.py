"""Runs what `sam build` produced under the real Lambda runtime client, without containers.

The client (`awslambdaric`) is the one of the managed runtime; this module plays the other side, the Lambda Runtime API
(AWS Lambda Developer Guide, "Using the Lambda runtime API"). The interpreter should hold boto3 and awslambdaric only,
as the managed runtime does: a dependency that the layer forgot then fails here as it would on AWS.
"""

import json
import os
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from types import TracebackType
from typing import Any, Self

from sandbox.stack import PSEUDO, Resolver
from sandbox.template import parsed

VERSION = "/2018-06-01/runtime/"


@dataclass(frozen=True)
class BuiltFunction:
    """A function as the built template describes it."""

    name: str
    folder: Path
    handler: str
    layers: tuple[Path, ...]
    memory: int
    timeout: int
    variables: Mapping[str, str]


def built(build: Path, references: Mapping[str, str], parameters: Mapping[str, str]) -> dict[str, BuiltFunction]:
    """The functions of a build by logical id.

    References to resources in the environment become what `references` says; a resource that it does not know keeps
    its logical id. Conditions follow the parameters.
    """
    template = parsed((build / "template.yaml").read_text())
    values = {name: str(given["Default"]) for name, given in template["Parameters"].items()} | dict(parameters)
    resolver = Resolver(values, template["Conditions"], set(template["Resources"]))
    shared = resolver.resolve(template["Globals"]["Function"])
    return {
        name: _function(build, name, shared, resolver.resolve(resource["Properties"]), template, references)
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function" and resolver.holds(resource.get("Condition"))
    }


def _function(
    build: Path,
    name: str,
    shared: Mapping[str, Any],
    own: Mapping[str, Any],
    template: Mapping[str, Any],
    references: Mapping[str, str],
) -> BuiltFunction:
    both = {**shared, **own}
    named = dict.fromkeys(
        [*shared.get("Layers", []), *own.get("Layers", [])]
    )  # SAM adds a function's to the global ones
    layers = tuple(build / template["Resources"][layer]["Properties"]["ContentUri"] for layer in named)
    variables = {
        **shared.get("Environment", {}).get("Variables", {}),
        **own.get("Environment", {}).get("Variables", {}),
    }
    return BuiltFunction(
        name=name,
        folder=build / both["CodeUri"],
        handler=both["Handler"],
        layers=layers,
        memory=both["MemorySize"],
        timeout=both["Timeout"],
        variables={key: references.get(str(value), str(value)) for key, value in variables.items()},
    )


@dataclass(frozen=True)
class Answer:
    """What came back: a payload, or the error in Lambda's words. `log` is all that the process printed so far."""

    payload: Any
    error: Mapping[str, Any] | None
    log: str

    @property
    def ok(self) -> bool:
        """Whether the handler returned."""
        return self.error is None


class _RuntimeApi(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, function: BuiltFunction) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.function = function
        self.events: Queue[tuple[str, bytes, float]] = Queue()
        self.answers: Queue[tuple[str, bytes]] = Queue()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that the killed process dropped is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _RuntimeApi

    def do_GET(self) -> None:
        if self.path != f"{VERSION}invocation/next":
            return self._send(404, b"{}", {})
        identity, body, deadline = self.server.events.get()
        function = f"{PSEUDO['AWS::Region']}:{PSEUDO['AWS::AccountId']}:function:{self.server.function.name}"
        headers = {
            "Lambda-Runtime-Aws-Request-Id": identity,
            "Lambda-Runtime-Deadline-Ms": str(int(deadline * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": f"arn:aws:lambda:{function}",
            "Lambda-Runtime-Trace-Id": "Root=1-00000000-000000000000000000000000;Sampled=0",
            "Content-Type": "application/json",
        }
        return self._send(200, body, headers)

    def do_POST(self) -> None:
        body = self._body()
        self._send(202, b"", {})
        self.server.answers.put((self.path.rsplit("/", 1)[1], body))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """The process's own log is what matters."""


class ExecutionEnvironment:
    """One execution environment of a built function: starts on the first invocation, then stays warm.

    After a timeout or an exit the process is gone, and the next invocation starts a new one, as on AWS.
    """

    def __init__(
        self,
        function: BuiltFunction,
        python: Path,
        endpoint_url: str,
        *,
        start: Sequence[str] = ("-m", "awslambdaric"),
        **variables: str,
    ) -> None:
        """`start`: what the interpreter is given before the handler's name, in place of the runtime client itself."""
        self.function, self.python, self.endpoint_url, self.variables = function, python, endpoint_url, variables
        self._start = start
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close)
        self._api: _RuntimeApi | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; what it printed is gone with it."""
        self._stop()
        self._log.close()

    @property
    def pid(self) -> int | None:
        """Process that runs the function; None while there is none."""
        return None if self._process is None else self._process.pid

    def invoke(self, event: Any, timeout: float | None = None) -> Answer:
        """Invoke synchronously; the timeout in seconds defaults to the function's own."""
        api = self._started()
        limit = self.function.timeout if timeout is None else timeout
        deadline = time.time() + limit
        identity = str(uuid.uuid4())
        api.events.put((identity, json.dumps(event).encode(), deadline))
        while time.time() < deadline:
            try:
                kind, body = api.answers.get(timeout=0.02)
            except Empty:
                if self._process is None or self._process.poll() is None:
                    continue
                return self._failed("Runtime.ExitError", f"{identity}: exit status {self._process.returncode}")
            return self._answered(kind, body)
        return self._failed("Sandbox.Timedout", f"{identity}: task timed out after {limit:.2f} seconds")

    def _answered(self, kind: str, body: bytes) -> Answer:
        document = json.loads(body or b"null")
        if kind == "response":
            return Answer(document, None, self.log())
        if self._process is not None and kind == "error" and self._process.poll() is None:
            return Answer(None, document, self.log())
        answer = Answer(None, document, self.log())
        self._stop()
        return answer

    def _failed(self, kind: str, message: str) -> Answer:
        self._stop()
        return Answer(None, {"errorType": kind, "errorMessage": message}, self.log())

    def log(self) -> str:
        """Everything that the processes of this environment printed."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def _started(self) -> _RuntimeApi:
        if self._api is not None and self._process is not None and self._process.poll() is None:
            return self._api
        self._stop()
        self._api = _RuntimeApi(self.function)
        threading.Thread(target=self._api.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self._process = subprocess.Popen(
            [self.python, *self._start, self.function.handler],
            cwd=self.function.folder,
            env=self._environment(self._api.server_address[1]),
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        return self._api

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._api is not None:
            self._api.shutdown()
            self._api.server_close()
            self._api = None

    def _environment(self, port: int) -> dict[str, str]:
        function = self.function
        mounted = str(function.layers[0]) if function.layers else "/opt"
        own = {key: value.replace("/opt", mounted, 1) for key, value in function.variables.items()}
        return {
            **{key: os.environ[key] for key in ("PATH", "LANG", "LC_ALL") if key in os.environ},
            "PYTHONPATH": os.pathsep.join(
                [str(function.folder), *(str(layer / "python") for layer in function.layers)]
            ),
            "PYTHONDONTWRITEBYTECODE": "1",  # the code folders of Lambda are read-only
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{port}",
            "AWS_LAMBDA_FUNCTION_NAME": function.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
            "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/rightsizer",
            "AWS_LAMBDA_LOG_STREAM_NAME": "sandbox",
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",  # without it Powertools believes it is not on Lambda
            "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
            "AWS_REGION": PSEUDO["AWS::Region"],
            "AWS_DEFAULT_REGION": PSEUDO["AWS::Region"],
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_SESSION_TOKEN": "testing",
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "LAMBDA_TASK_ROOT": str(function.folder),
            "_HANDLER": function.handler,
            **own,
            **self.variables,
        }
