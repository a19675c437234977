"""What a cold start costs each door: `python -m bench.doors [--runs 7] [--door apply] [--cut] [--json]`.

From the start of the process to the end of the first invocation, of the built function under the Lambda runtime client,
beside a bare handler in the same environment that makes the same calls by plain boto3. First each door does its job
once, cold, in a simulated account, and its calls and their answers are kept; then door and bare handler run in turns
against these answers, each time as a new process. A run that makes other calls or answers otherwise ends the benchmark.

The figure is the ratio of the processor times of a pair, its median over the pairs; absolute times differ from machine
to machine and from hour to hour. The bare handler has Python, the runtime client and boto3 with its own service models;
with `--cut` it has the cut models of our layer.
"""

import argparse
import json
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from bench.built import PYTHON, cpu_seconds, functions
from bench.tape import AT_A_TIME, NOTING, Recording, Tape, noted
from sandbox.account import Sandbox
from sandbox.artefact import deployed
from sandbox.functions import Function, InProcess, Invoker
from sandbox.runtime import BuiltFunction, ExecutionEnvironment
from sandbox.server import serve
from sandbox.spot import Spot, add_spot
from tests.doors.scene import APPROVER, Scene, scene

JOBS = {
    "sweep": "sqs:SendMessageBatch",
    "evaluate": "dynamodb:TransactWriteItems",
    "propose": "slack:chat.postMessage",
    "respond": "dynamodb:PutItem",
    "apply": "sagemaker:CreateEndpointConfig",
    "interruption": "autoscaling:DetachInstances",
    "report": "s3:PutObject",
}
"""The call that each door's job comes to: without it the door has not done it."""
RECORDED = {
    "sweep": 1.35,
    "evaluate": 1.02,
    "propose": 1.28,
    "respond": 1.24,
    "apply": 1.01,
    "interruption": 1.43,
    "report": 1.40,
}
"""The ratios that docs/performance.md shows."""
GOALS: Mapping[str, float] = {door: {"respond": 1.25, "evaluate": 2.0}.get(door, 1.6) for door in RECORDED}
NOISE = 0.05
"""By so much the medians of two runs of one build differed."""
CEILINGS: Mapping[str, float] = {
    door: round(min(1.25 * ratio, GOALS[door] + NOISE), 2) for door, ratio in RECORDED.items()
}
"""The goal with room for noise; lower where a quarter above what was recorded is lower: a regression worth a look."""
ASKED, OTHERS, GROUP = "product-ranking", ("chat-7b", "chat-13b"), "gpu"
"""An endpoint with fourteen days of metrics, two without any, and an Auto Scaling group of Spot instances."""
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
BARE = Path(__file__).parent / "bare"
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Run:
    """Processor and wall-clock seconds of one cold start."""

    cpu_s: float
    wall_s: float


@dataclass
class Pairs:
    """A door beside its bare handler, run by run."""

    calls: int
    door: list[Run] = field(default_factory=list)
    bare: list[Run] = field(default_factory=list)

    def ratios(self) -> list[float]:
        """Processor time of the door over that of the bare handler, pair by pair."""
        return [door.cpu_s / bare.cpu_s for door, bare in zip(self.door, self.bare, strict=True)]

    def figures(self) -> dict[str, Any]:
        """Least, median and most of everything that was measured, seconds."""
        columns = {
            "door_cpu_s": [run.cpu_s for run in self.door],
            "bare_cpu_s": [run.cpu_s for run in self.bare],
            "door_wall_s": [run.wall_s for run in self.door],
            "bare_wall_s": [run.wall_s for run in self.bare],
            "ratio": self.ratios(),
        }
        found = {name: {"min": min(all_), "median": median(all_), "max": max(all_)} for name, all_ in columns.items()}
        return {"calls": self.calls, "runs": len(self.door)} | found


class Recorder:
    """Runs the functions of a stack (`sandbox.functions.Invoker`): a wanted door built and cold, the rest as source."""

    def __init__(self, box: Sandbox, tape: Tape, url: str, built: Mapping[str, BuiltFunction]) -> None:
        self._box, self._tape, self._url, self._built = box, tape, url, built
        self._source: Invoker = InProcess(lambda: box.clock.now, box.region)
        self.wanted: set[str] = set()
        self.made: dict[str, tuple[BuiltFunction, Recording]] = {}

    def cold(self) -> None:
        """Start the source anew; a built function is cold each time."""
        self._source.cold()

    def __call__(self, function: Function, event: Any, request_id: str) -> Any:
        """The handler's answer; the first one of a wanted door is kept."""
        if function.door not in self.wanted:
            return self._source(function, event, request_id)
        self.wanted.remove(function.door)
        region = function.arn.split(":")[3]
        ours = {"AWS_REGION": region, "AWS_DEFAULT_REGION": region, "RIGHTSIZER_SLACK_ENDPOINT": f"{self._url}/api"}
        cold = deployed(self._built, replace(function, environment={**function.environment, **ours}))
        recording = Recording(function.door, event, self._box.clock.now)
        recording.payload = self._record(cold, recording)
        self.made[function.door] = cold, recording
        return recording.payload

    def _record(self, cold: BuiltFunction, recording: Recording) -> Any:
        self._tape.recording = recording
        with tempfile.TemporaryDirectory() as folder:
            variables = {"BENCH_NOW": recording.at.isoformat(), "BENCH_CALLS": f"{folder}/calls"}
            with ExecutionEnvironment(cold, PYTHON, self._url, start=("-c", NOTING), **variables) as environment:
                answer = environment.invoke(recording.event, timeout=PATIENCE_S)
            recording.calls = noted(Path(folder, "calls")) if Path(folder, "calls").exists() else []
        self._tape.recording = None
        if not answer.ok:
            raise SystemExit(f"{recording.door} failed, so there is nothing to measure: {answer.error}\n{answer.log}")
        return answer.payload


@dataclass
class Bench:
    """Doors that did their job once, and the tape that answers them again."""

    tape: Tape
    url: str
    made: Mapping[str, tuple[BuiltFunction, Recording]]
    cut: bool = False
    """Whether the bare handler has the layer's cut service models too."""

    def pairs(self, doors: Sequence[str], runs: int) -> dict[str, Pairs]:
        """Each door and its bare handler in turns, all doors in each round, so that a slow minute is everybody's."""
        found = {door: Pairs(len(self.made[door][1].calls)) for door in doors}
        with tempfile.TemporaryDirectory() as folder:
            for door in doors:
                Path(folder, door).write_bytes(pickle.dumps(self.made[door][1].calls))
            for number in range(runs):
                for door in doors:
                    print(f"\rpair {number + 1} of {runs}: {door:<14}", end="", file=sys.stderr)
                    found[door].bare.append(self.measure_bare(door, Path(folder, door)))
                    found[door].door.append(self.measure_door(door))
        print(file=sys.stderr)
        return found

    def measure_door(self, door: str) -> Run:
        function, recording = self.made[door]
        variables = {"BENCH_NOW": recording.at.isoformat()}
        return self._run(door, function, recording, recording.payload, ("-c", AT_A_TIME), variables)

    def measure_bare(self, door: str, calls: Path) -> Run:
        function, recording = self.made[door]
        variables = {name: function.variables[name] for name in ("AWS_REGION", "AWS_DEFAULT_REGION")}
        variables |= {"CALLS": str(calls)} | ({"AWS_DATA_PATH": str(function.layers[0] / "models")} if self.cut else {})
        bare = BuiltFunction("Bare", BARE, "app.lambda_handler", (), function.memory, function.timeout, variables)
        answer = {"calls": len(recording.calls)}
        return self._run(f"the bare handler of {door}", bare, recording, answer, ("-m", "awslambdaric"), {})

    def _run(
        self, who: str, function: BuiltFunction, recording: Recording, payload: Any, start: Sequence[str],
        variables: Mapping[str, str],
    ) -> Run:  # fmt: skip
        """A cold start that asks what was recorded and answers `payload`; SystemExit where it does not."""
        self.tape.play(recording)
        began = time.monotonic()
        with ExecutionEnvironment(function, PYTHON, self.url, start=start, **variables) as environment:
            answer = environment.invoke(recording.event, timeout=PATIENCE_S)
            wall = time.monotonic() - began
            used = cpu_seconds(environment.pid) if environment.pid is not None else 0.0
        otherwise = self.tape.told_otherwise()
        if not answer.ok or answer.payload != payload or otherwise:
            raise SystemExit(
                f"{who} did not do what was recorded, so its time means nothing: {otherwise or 'the same calls'}; "
                f"answered {answer.payload}, recorded {payload}; {answer.error or 'no error'}\n{answer.log[-2000:]}"
            )
        return Run(used, wall)


@contextmanager
def recorded(*, cut: bool = False) -> Iterator[Bench]:
    """All doors after their job. SystemExit where one has not done it."""
    held: list[tuple[Recorder, Tape, str]] = []

    @contextmanager
    def invoker(box: Sandbox, parameters: Mapping[str, str]) -> Iterator[Recorder]:
        tape = Tape()
        with serve(box, around=tape.before) as url:
            recorder = Recorder(box, tape, url, functions(parameters))
            held.append((recorder, tape, url))
            yield recorder

    with scene(functions=invoker) as at:
        ((recorder, tape, url),) = held
        tape.slack, at.slack.hooks = at.slack.hooks, url
        jobs(at, add_spot(at.box), recorder.wanted)
        for door, call in JOBS.items():
            asked = recorder.made[door][1].names() if door in recorder.made else {}
            if call not in asked:
                raise SystemExit(f"{door} has not done its job, which ends in {call}: it made {dict(asked)}")
        yield Bench(tape, url, recorder.made, cut)


def jobs(at: Scene, spot: Spot, wanted: set[str]) -> None:
    """One endpoint goes from evaluation to change, three are swept, a Spot instance is warned, the week ends."""
    at.stack.quiet |= {"Sweep.Hourly", "Sweep.Daily", "Report.Weekly", "Report.Monthly"}
    at.add(ASKED)
    wanted |= {"evaluate", "propose"}
    at.sweep("Daily")
    at.drive(ASKED)
    at.pass_time(minutes=10)
    wanted |= {"respond", "apply"}
    at.click(ASKED, "Approve without it", APPROVER)
    at.stack.settle()
    for name in OTHERS:
        at.box.add_endpoint(name, instance_type="ml.g5.2xlarge", count=1)
    spot.group(GROUP, zones=ZONES)
    wanted |= {"sweep"}
    at.sweep("Daily")
    wanted |= {"interruption"}
    spot.groups.warn(spot.members(GROUP)[0])
    at.stack.settle()
    wanted |= {"report"}
    at.stack.fire("Report.Weekly")


def table(found: Mapping[str, Pairs]) -> str:
    """The figures of each door in a line: milliseconds, and ratios."""
    lines = [
        f"{'door':<14}{'calls':>6}  {'CPU ms: door':<19}{'bare':<19}{'ratio':<19}{'ceiling':<9}wall ms: door, bare"
    ]
    for door, pairs in found.items():
        figures = pairs.figures()
        cpu, bare = (_three(figures[name], 1000, 0) for name in ("door_cpu_s", "bare_cpu_s"))
        walls = ", ".join(f"{1000 * figures[name]['median']:.0f}" for name in ("door_wall_s", "bare_wall_s"))
        ratio, ceiling = _three(figures["ratio"], 1, 2), CEILINGS[door]
        lines.append(f"{door:<14}{pairs.calls:>6}  {cpu:<19}{bare:<19}{ratio:<19}{ceiling:<9}{walls}")
    return "\n".join([*lines, "of CPU and ratio: least / median / most; of wall-clock times the median"])


def _three(figures: Mapping[str, float], times: float, digits: int) -> str:
    return " / ".join(f"{times * figures[name]:.{digits}f}" for name in ("min", "median", "max"))


def over(ratios: Mapping[str, float]) -> list[str]:
    """A sentence for each door whose ratio is above its ceiling."""
    return [
        f"{door} takes {ratio:.2f} times the bare handler's processor time, above {CEILINGS[door]}"
        for door, ratio in ratios.items()
        if ratio > CEILINGS[door]
    ]


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; the exit code says whether every ceiling holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7, help="pairs for each door")
    parser.add_argument("--door", action="append", choices=JOBS, help="only this door; may be given again")
    parser.add_argument("--cut", action="store_true", help="give the bare handler the layer's cut service models too")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    given = parser.parse_args(arguments)
    with recorded(cut=given.cut) as bench:
        found = bench.pairs(given.door or list(JOBS), given.runs)
    figures = {door: pairs.figures() for door, pairs in found.items()}
    print(json.dumps(figures, indent=2) if given.json else table(found))
    broken = over({door: row["ratio"]["median"] for door, row in figures.items()})
    for sentence in broken:
        print(f"over its ceiling: {sentence}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
