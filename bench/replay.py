"""`make replay`: the engine and the rules to beat, in the referee, on the development data.

The referee is not part of the project: it is looked for beside it (or where RIGHTSIZER_REFEREE says) and run in a
process of its own, so that nothing here imports it.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = "bench.policy:RightsizerPolicy"
NO_TESTS = "bench.policy:MetricsOnlyPolicy"
PRODUCTION = "bench.policy:ProductionPolicy"
TO_BEAT = ("referee.baselines:GuardedComputeOptimizerLike", "referee.baselines:GuardedStatic20Memory")
"""The best two rules of the field; a full run plays all of them."""


def numbers(text: str) -> str:
    """The seeds as the referee takes them."""
    if not re.fullmatch(r"\d+(,\d+)*", text):
        raise argparse.ArgumentTypeError(f"{text!r}: seeds are whole numbers with commas between them, as in 1,2,3")
    return text


def commands(fast: bool, seeds: str) -> list[list[str]]:
    """Arguments of the referee: eager beside the rules of the field, then (not fast) with the production gates."""
    eager = ["--account", "all", "--seeds", seeds, "--policy", OURS]
    if fast:
        return [[*eager, *(part for name in TO_BEAT for part in ("--policy", name)), "--fast"]]
    gates = ["--account", "gentd,mixed,events", "--seeds", seeds, "--days", "15", "--warmup", "7"]
    return [[*eager, "--policy", NO_TESTS, "--baselines"], [*gates, "--policy", PRODUCTION]]


def main(arguments: list[str] | None = None) -> int:
    """Run the referee and print its tables; 2 with one sentence where there is none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="thinned accounts, eager only")
    parser.add_argument(
        "--seeds", default="1", type=numbers, help="whole numbers with commas between them, as in 1,2,3"
    )
    given = parser.parse_args(arguments)
    referee = Path(os.environ.get("RIGHTSIZER_REFEREE", str(ROOT.parent / "shared" / "referee")))
    if not (referee / "referee" / "__main__.py").exists():
        sentence = f"no referee in {referee}: set RIGHTSIZER_REFEREE to its folder to replay the decision engine"
        print(sentence, file=sys.stderr)
        return 2
    path = os.pathsep.join(map(str, (referee, ROOT, ROOT / "shared")))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    for command in commands(given.fast, given.seeds):
        done = subprocess.run([sys.executable, "-m", "referee", *command], cwd=referee, env=environment, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
