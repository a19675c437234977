"""CPU of a scan beside Cloud Custodian's on one account: `python -m bench.custodian --custodian /path/to/its/python`.

Custodian comes from a virtual environment of its own (`pip install c7n`): its Python by the option or the environment
variable CUSTODIAN_PYTHON; without one nothing is measured. Its release 0.9.53 has no `metrics` filter for endpoints of
SageMaker, so its own filter is registered for them, with the dimensions that they have. Both programs are processes of
their own against one server; they alternate, and the ratio is the median of the pairs. Both are compiled to bytecode
before, as what pip installs is.

Beside them runs a bare reader: the calls of the scan, made again by plain boto3, whose answers are thrown away. It
decides nothing; no scan that asks as much can need less, but for what it does in fewer or cheaper calls.

`--full`: every datapoint of two weeks. Without it a few hours have datapoints, and Custodian's work is the same.
"""

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

from bench import calls, canned
from bench.tape import noted
from sandbox.account import Sandbox
from sandbox.server import Application, serve

ROOT = Path(__file__).parents[1]
GOAL = 0.2
"""Of Custodian's CPU, the aim."""
RECORDED = {False: {200: 1.11, 1000: 1.54}, True: {100: 5.27}}
"""The ratio measured with every datapoint (True) or few, by the number of endpoints, with which it grows. The command
fails above 1.25 times that of the next larger account; beyond the largest there is no limit, which it says."""
SPARE = 1.25
DAYS = 14
CUSTODIAN = """
import sys
from c7n.filters.metrics import MetricsFilter
from c7n.resources.sagemaker import SagemakerEndpoint
class Metrics(MetricsFilter):
    def get_dimensions(self, resource):
        of = {"EndpointName": resource["EndpointName"], "VariantName": resource["ProductionVariants"][0]["VariantName"]}
        return [{"Name": name, "Value": value} for name, value in of.items()]
SagemakerEndpoint.filter_registry.register("metrics", Metrics)
from c7n.cli import main
main()
"""
SCAN = """
import sys
from rightsizer.aws.metrics import RateLimiter
RateLimiter.take = lambda *given: None  # to wait for the quota costs time and no CPU
from rightsizer.terminal.run import run
sys.exit(run(sys.argv[1:]))
"""
NOTED = f"""
import os, pickle
from botocore.client import BaseClient
made = BaseClient._make_api_call
def make(self, operation, parameters):
    with open(os.environ["CALLS"], "ab") as file:
        pickle.dump(("aws", self.meta.service_model.service_name, self.meta.region_name, operation, parameters), file)
    return made(self, operation, parameters)
BaseClient._make_api_call = make
{SCAN}
"""
"""The scan, which notes its calls for the bare reader."""
BARE = """
import sys
from bench.bare.app import lambda_handler
lambda_handler(None, None)
"""
METRICS = {
    "type": "metrics",
    "namespace": "AWS/SageMaker",
    "name": "Invocations",
    "statistics": "Sum",
    "days": DAYS,
    "value": 1,
    "op": "less-than",
    "missing-value": 0,
}
POLICY = {"policies": [{"name": "idle", "resource": "aws.sagemaker-endpoint", "filters": [METRICS]}]}


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a program cost."""

    cpu_s: float
    calls: int


@dataclass(frozen=True, slots=True)
class Account:
    """A simulated account and its server."""

    region: str
    url: str
    server: "Served"


class Served:
    """The account's server with GetMetricStatistics, which the simulated account has not and the product never calls.

    Two weeks as one period have one datapoint; each answer is alike.
    """

    def __init__(self, account: Application) -> None:
        self._account = account
        self.requests = 0
        self.statistics = 0
        """Requests for a metric of an endpoint."""
        self._guard = threading.Lock()

    def __call__(self, environ: canned.Environ, start: canned.Start) -> Iterable[bytes]:
        """Answer one request."""
        ours = environ.get("HTTP_X_AMZ_TARGET", "").endswith(".GetMetricStatistics")
        with self._guard:
            self.requests, self.statistics = self.requests + 1, self.statistics + ours
        if not ours:
            return self._account(environ, start)
        asked = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        point = {"Timestamp": asked["StartTime"], "Sum": 1_000_000.0, "Unit": "None"}
        body = json.dumps({"Label": asked["MetricName"], "Datapoints": [point]}).encode()
        start("200 OK", [("content-type", environ["CONTENT_TYPE"]), ("content-length", str(len(body)))])
        return [body]


@contextmanager
def account(endpoints: int, *, full: bool) -> Iterator[Account]:
    """An account at the machine's time, which Custodian's window follows, and its server."""
    now = datetime.now(UTC).replace(microsecond=0)
    with Sandbox(now=now) as box:
        if full:
            canned.seed(box, endpoints, DAYS)
        else:
            calls.seed(box, endpoints)
        boundless = sys.maxsize
        recorded: canned.Recorded = {}
        made: list[Served] = []

        def around(bare: Application) -> Application:
            made.append(Served(canned.Canned(box, recorded, boundless) if full else bare))
            return made[0]

        with serve(box, around=around) as url:
            yield Account(box.region, url, made[0])


@contextmanager
def compiled() -> Iterator[None]:
    """Programs started within it keep bytecode in a folder of theirs, whatever the environment says."""
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, {"PYTHONPYCACHEPREFIX": folder}):
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        yield


def child(of: Account, command: Sequence[str], fine: Sequence[int] = (0,)) -> Run:
    """Run the command to its end against the account; SystemExit where it failed."""
    keys = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_ENDPOINT_URL": of.url}
    region = {"AWS_REGION": of.region, "AWS_DEFAULT_REGION": of.region}
    before = of.server.requests
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen(
            command, env=os.environ | keys | region, stdout=subprocess.DEVNULL, stderr=said
        ) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        told = said.read()
    if process.returncode not in fine or "Retrieval error" in told:
        raise SystemExit(f"{command[0]} ended with {process.returncode}, its figures mean nothing:\n{told[-2000:]}")
    return Run(used.ru_utime + used.ru_stime, of.server.requests - before)


def custodian(of: Account, python: str, endpoints: int) -> Run:
    """`custodian run` of the policy, without its cache; SystemExit where an endpoint's metric was not asked for."""
    asked = of.server.statistics
    with tempfile.TemporaryDirectory() as folder:
        policy = Path(folder) / "policy.json"
        policy.write_text(json.dumps(POLICY))
        arguments = ["run", "--cache-period", "0", "--region", of.region, "-s", folder, str(policy)]
        run = child(of, [python, "-c", CUSTODIAN, *arguments])
    if of.server.statistics - asked != endpoints:
        raise SystemExit(
            f"Custodian asked for {of.server.statistics - asked} metrics of {endpoints} endpoints: no comparison"
        )
    return run


def scan(of: Account, program: str = SCAN) -> Run:
    """`rightsizer scan --json`, without its cache."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'shared')!r})\n{program}"]
    return child(of, [*command, "scan", "--region", of.region, "--json"], (0, 10))


@contextmanager
def noted_calls(of: Account) -> Iterator[None]:
    """The calls of a scan in a file that the variable CALLS names, as the bare reader wants them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls"
        with patch.dict(os.environ, {"CALLS": str(path)}):
            scan(of, NOTED)
            path.write_bytes(pickle.dumps(noted(path)))
            yield


def bare(of: Account) -> Run:
    """The noted calls by plain boto3."""
    with patch.dict(os.environ, {"PYTHONPATH": str(ROOT)}):
        return child(of, [sys.executable, "-c", BARE])


def over(ratio: float, endpoints: int, *, full: bool) -> str:
    """A sentence where the ratio is above the recorded limit, else nothing."""
    measured = RECORDED[full]
    size = min((each for each in measured if each >= endpoints), default=None)
    if size is None:
        print(f"no limit is recorded for more than {max(measured)} endpoints: the ratio is not judged")
        return ""
    limit = measured[size] * SPARE
    return f"a scan takes {ratio:.2f} of Custodian's CPU, above {limit:.2f}" if ratio > limit else ""


def compared(endpoints: int, pairs: int, python: str, *, full: bool) -> float:
    """Print each pair; the median ratio of their CPU."""
    ratios, floors = [], []
    head = f"{'pair':>4}{'scan, CPU s':>13}{'calls':>8}{'Custodian, CPU s':>18}{'calls':>8}{'ratio':>8}"
    with compiled(), account(endpoints, full=full) as of, noted_calls(of):
        custodian(of, python, endpoints)  # neither compiles its modules in a pair
        print(f"{head}{'bare reader, CPU s':>20}{'calls':>8}{'ratio':>8}", flush=True)
        for number in range(1, pairs + 1):
            theirs, ours, least = custodian(of, python, endpoints), scan(of), bare(of)
            ratios.append(ours.cpu_s / theirs.cpu_s)
            floors.append(least.cpu_s / theirs.cpu_s)
            row = (
                f"{number:>4}{ours.cpu_s:>13.2f}{ours.calls:>8}{theirs.cpu_s:>18.2f}{theirs.calls:>8}{ratios[-1]:>8.2f}"
            )
            print(f"{row}{least.cpu_s:>20.2f}{least.calls:>8}{floors[-1]:>8.2f}", flush=True)
    print(f"the bare reader, which decides nothing: {statistics.median(floors):.2f} of Custodian's CPU")
    return statistics.median(ratios)


def main(arguments: list[str] | None = None) -> int:
    """Print the pairs; the exit code says whether the recorded limit holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--full", action="store_true", help="every datapoint of two weeks")
    parser.add_argument("--custodian", default=os.environ.get("CUSTODIAN_PYTHON", ""), help="Python that has c7n")
    given = parser.parse_args(arguments)
    if not given.custodian:
        print("skipped: no Custodian; make an environment with c7n and name its Python (--custodian)")
        return 0
    try:
        found = subprocess.run([given.custodian, "-c", "import c7n"], capture_output=True, check=False).returncode == 0
    except OSError:
        found = False
    if not found:
        print(f"skipped: {given.custodian} cannot import c7n (Cloud Custodian); install it there: pip install c7n")
        return 0
    ratio = compared(given.endpoints, given.pairs, given.custodian, full=given.full)
    print(f"{given.endpoints} endpoints: {ratio:.2f} of Custodian's CPU, the aim is {GOAL} ({ratio / GOAL:.1f} times)")
    told = over(ratio, given.endpoints, full=given.full)
    if told:
        print(f"over its limit: {told}", file=sys.stderr)
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
