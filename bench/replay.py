"""`make replay`: the engine and the rules to beat, in the referee, on the development data.

The referee is not part of the project: it is looked for beside it (or where RIGHTSIZER_REFEREE says) and run in a
process of its own, so that nothing here imports it.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = "bench.policy:RightsizerPolicy"
NO_TESTS = "bench.policy:MetricsOnlyPolicy"
PRODUCTION = "bench.policy:ProductionPolicy"
TO_BEAT = ("referee.baselines:GuardedComputeOptimizerLike", "referee.baselines:GuardedStatic20Memory")
"""The best two rules of the field; a full run plays all of them."""
POLICIES = {
    "shipped-auto": "bench.policy:ShippedAuto",
    "shipped-approved": "bench.policy:ShippedApproved",
    "eager": OURS,
    "no-tests": NO_TESTS,
    "production-gates": PRODUCTION,
}
"""Names that `--policy` takes."""
NO_REFEREE = "no referee in {}: set RIGHTSIZER_REFEREE to its folder to replay the decision engine"


def folder() -> Path:
    """Where the referee is looked for."""
    return Path(os.environ.get("RIGHTSIZER_REFEREE", str(ROOT.parent / "shared" / "referee")))


def no_referee() -> str:
    """One sentence where there is no referee, else nothing."""
    return "" if (folder() / "referee" / "__main__.py").exists() else NO_REFEREE.format(folder())


def days_of(account: str) -> tuple[int, int]:
    """Days that are played and days of warm-up: a week of history first; lora's data are good for twelve days."""
    return (12, 5) if account == "lora" else (15, 7)


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


def chosen(names: Sequence[str], accounts: str, seeds: str, fast: bool) -> list[list[str]]:
    """Arguments of the referee for these policies: each account with its own days."""
    policies = [part for name in names for part in ("--policy", POLICIES[name])]
    found = []
    for account in accounts.split(","):
        days, warmup = days_of(account)
        days_given = ["--days", str(days), "--warmup", str(warmup), *(["--fast"] if fast else [])]
        found.append(["--account", account, "--seeds", seeds, *days_given, *policies])
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the referee and print its tables; 2 with one sentence where there is none."""
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--fast", action="store_true", help="thinned accounts; without --policy eager only")
    parser.add_argument(
        "--seeds", default="1", type=numbers, help="whole numbers with commas between them, as in 1,2,3"
    )
    parser.add_argument(
        "--policy",
        action="append",
        choices=POLICIES,
        help="shipped-auto: default settings, tagged auto, nobody answers; shipped-approved: untagged, what has a"
        " button and risk 0 or 1 is approved a day later; may be repeated. Played after a week of history (--days 15"
        " --warmup 7; lora 12 and 5). Default: the eager modes beside the rules of the field",
    )
    parser.add_argument("--account", default="gentd,mixed,lora,events", help="with --policy: several with commas")
    given = parser.parse_args(arguments)
    if why := no_referee():
        print(why, file=sys.stderr)
        return 2
    path = os.pathsep.join(map(str, (folder(), ROOT, ROOT / "shared")))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    runs = commands(given.fast, given.seeds)
    if given.policy:
        runs = chosen(given.policy, given.account, given.seeds, given.fast)
    for command in runs:
        done = subprocess.run([sys.executable, "-m", "referee", *command], cwd=folder(), env=environment, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
