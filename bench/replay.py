"""`make replay`: what ships beside the rules of the field, in the referee, on the development data.

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
POLICIES = {"shipped-auto": "bench.policy:ShippedAuto", "shipped-approved": "bench.policy:ShippedApproved"}
"""What ships, by the names that `--policy` takes: nobody answers, or a person approves a day later."""
TO_BEAT = ("referee.baselines:GuardedComputeOptimizerLike", "referee.baselines:GuardedStatic20Memory")
"""The best two rules of the field."""
ACCOUNTS = "gentd,mixed,lora,events"
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


def commands(names: Sequence[str], accounts: str, seeds: str, fast: bool) -> list[list[str]]:
    """Arguments of the referee: each account with its own days, the policies of these names (none: both) on it.

    Without names the rules of the field run beside them, all of them or (fast) the best two.
    """
    paths = [POLICIES[name] for name in names or POLICIES]
    beside = [] if names else ["--baselines"]
    if fast and not names:
        paths, beside = [*paths, *TO_BEAT], []
    policies = [part for path in paths for part in ("--policy", path)]
    found = []
    for account in accounts.split(","):
        days, warmup = days_of(account)
        days_given = ["--days", str(days), "--warmup", str(warmup), *(["--fast"] if fast else [])]
        found.append(["--account", account, "--seeds", seeds, *days_given, *policies, *beside])
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the referee and print its tables; 2 with one sentence where there is none."""
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--fast", action="store_true", help="thinned accounts; of the rules the best two")
    parser.add_argument(
        "--seeds", default="1", type=numbers, help="whole numbers with commas between them, as in 1,2,3"
    )
    parser.add_argument(
        "--policy",
        action="append",
        choices=POLICIES,
        help="shipped-auto: default settings, tagged auto, nobody answers; shipped-approved: untagged, what has a"
        " button and risk 0 or 1 is approved a day later; may be repeated. Default: both, beside the rules of the"
        " field. All are played after a week of history (--days 15 --warmup 7; lora 12 and 5)",
    )
    parser.add_argument("--account", default=ACCOUNTS, help="several with commas between them")
    given = parser.parse_args(arguments)
    if why := no_referee():
        print(why, file=sys.stderr)
        return 2
    path = os.pathsep.join(map(str, (folder(), ROOT, ROOT / "shared")))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    for command in commands(given.policy or (), given.account, given.seeds, given.fast):
        done = subprocess.run([sys.executable, "-m", "referee", *command], cwd=folder(), env=environment, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
