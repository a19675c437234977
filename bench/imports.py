"""What a cold start costs each door, as a ratio to a lean floor: `python -m bench.imports [--runs 9]`.

Runs on the build (`make build`) with an interpreter that holds boto3 and awslambdaric only, as the Lambda runtime does.
A door's cost is the CPU time of a process that imports its handler and builds its flow and clients; the floor is one
bare botocore client, Logger, Metrics and twenty dataclasses. The runs are interleaved and the minimum counts, so that
only the ratio within one run means something: absolute times differ from machine to machine.
"""

import argparse
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / (".aws-sam/build" if platform.machine() in ("aarch64", "arm64") else ".aws-sam/x86")
PYTHON = ROOT / ".venv-lambda" / "bin" / "python"
LIMITS = {"respond": 1.25}
LIMIT = 1.6
"""CPU at a cold start, against the floor of the same run."""

MEASURED = "import resource as r; u = r.getrusage(r.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"
FLOOR = f"""
import botocore.session
from dataclasses import make_dataclass
from aws_lambda_powertools import Logger, Metrics
Logger(service="floor"), Metrics(namespace="floor", service="floor")
for index in range(20):
    make_dataclass(f"Noun{{index}}", [("name", str), ("count", int)], frozen=True)
botocore.session.get_session().create_client("cloudwatch", region_name="eu-west-1")
{MEASURED}
"""
DOOR = (
    """
import app
from rightsizer import bootstrap
bootstrap.{door}()
"""
    + MEASURED
)


def environment(folder: Path) -> dict[str, str]:
    """What Lambda would set, as far as an import looks at it."""
    layer = BUILD / "RightsizerLayer"
    names = ("TABLE", "BUCKET", "QUEUE_URL", "TOPIC_ARN", "SLACK_SECRET", "SLACK_CHANNEL", "APPROVERS")
    return {
        "PYTHONPATH": f"{folder}:{layer / 'python'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "AWS_DATA_PATH": str(layer / "models"),
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "POWERTOOLS_METRICS_NAMESPACE": "rightsizer",
        **{f"RIGHTSIZER_{name}": "bench" for name in names},
    }


def cpu(code: str, folder: Path) -> float:
    """CPU seconds of a fresh process that runs the code."""
    done = subprocess.run([PYTHON, "-c", code], env=environment(folder), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{folder.name} does not start:\n{done.stderr}")
    return float(done.stdout.split()[-1])


def measure(doors: Sequence[str], runs: int) -> dict[str, float]:
    """The least CPU seconds of the floor and of each door."""
    best = dict.fromkeys(["floor", *doors], float("inf"))
    for _ in range(runs):
        for name in best:
            code = FLOOR if name == "floor" else DOOR.format(door=name)
            best[name] = min(best[name], cpu(code, BUILD / name.capitalize()))
    return best


def main() -> int:
    """Print the table; the exit code says whether every limit holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    given = parser.parse_args()
    if not PYTHON.exists() or not (BUILD / "template.yaml").exists():
        raise SystemExit("nothing is built: run make bench, or make build first")
    doors = sorted(path.parent.name.lower() for path in BUILD.glob("*/app.py"))
    best = measure(doors, given.runs)
    print(f"{'door':<14}{'CPU ms':>8}{'of floor':>10}{'limit':>7}")
    over = False
    for name, seconds in best.items():
        ratio, limit = seconds / best["floor"], LIMITS.get(name, LIMIT)
        over = over or ratio > limit
        print(f"{name:<14}{seconds * 1000:>8.0f}{ratio:>10.2f}{limit if name != 'floor' else '':>7}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
