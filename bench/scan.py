"""AWS calls of a scan, and of a second one from the local cache: `python -m bench.scan [--endpoints 300]`.

The command's own path, `rightsizer scan --cache --json`, on the sandbox: each scan with clients of its own, the second
one an hour later. Fails where the second makes more than a tenth of the calls of the first one; below a thousand
endpoints, and some.
"""

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta
from unittest.mock import patch

from bench.calls import seed
from rightsizer import bootstrap
from rightsizer.aws.metrics import RateLimiter
from rightsizer.terminal.run import run
from sandbox.account import Sandbox

AGAIN_SHARE, AGAIN_ONCE, LARGE = 0.1, 30, 1000
"""Calls of the second scan: a share of the first one's, and below `LARGE` endpoints those that never grow."""


def scan(box: Sandbox, cache: str) -> tuple[Counter[str], float, str]:
    """The calls by action, CPU seconds of product and sandbox, and what the command said."""
    bootstrap.reset()
    bootstrap.set_clock(lambda: box.clock.now)
    before, began, said = len(box.calls), time.process_time(), io.StringIO()
    with (
        patch.dict(os.environ, {"XDG_CACHE_HOME": cache}),
        contextlib.redirect_stdout(said),
    ):
        code = run(["scan", "--region", box.region, "--cache", "--json"])
    if code not in (0, 10):
        raise SystemExit(f"the scan ended with {code}: the counts would mean nothing")
    return Counter(call.action for call in box.calls[before:]), time.process_time() - began, said.getvalue()


def over(first: Counter[str], again: Counter[str], endpoints: int) -> list[str]:
    """A sentence where the budget does not hold."""
    once = AGAIN_ONCE if endpoints < LARGE else 0
    allowed = AGAIN_SHARE * first.total() + once
    print(f"second scan: {again.total()} calls (budget {allowed:.0f}: {AGAIN_SHARE} of the first and {once})")
    return [f"second scan: {again.total()} calls, above {allowed:.0f}"] if again.total() > allowed else []


def main(arguments: list[str] | None = None) -> int:
    """Print the table; the exit code says whether the budget holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--endpoints", type=int, default=300)
    given = parser.parse_args(arguments)
    with Sandbox() as box, patch.object(RateLimiter, "take"), tempfile.TemporaryDirectory() as cache:
        seed(box, given.endpoints)
        first, seconds, said = scan(box, cache)
        box.clock.advance(timedelta(hours=1))
        again, less, same = scan(box, cache)
        bootstrap.reset()
    print(f"{'action':<55}{'first':>8}{'second':>9}")
    for action in sorted(first | again):
        print(f"{action:<55}{first[action]:>8}{again[action]:>9}")
    print(f"{'all':<55}{first.total():>8}{again.total():>9}")
    print(f"\n{given.endpoints} endpoints; CPU of product and sandbox: {seconds:.1f} s, then {less:.1f} s")
    broken = over(first, again, given.endpoints)
    if len(said) != len(same):
        print(f"note: the documents differ in length, {len(said)} and {len(same)}", file=sys.stderr)
    for sentence in broken:
        print(f"over its budget: {sentence}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
