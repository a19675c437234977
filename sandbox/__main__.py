"""``python -m sandbox``: the simulated account as a server on loopback (``make sandbox``)."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from sandbox.account import Sandbox
from sandbox.history import ASLEEP, REGION, with_history
from sandbox.pages import Page, report_page
from sandbox.server import listen
from sandbox.slack_page import page as slack_page

WHAT_NEXT = """
# Paste the line above into another terminal of this clone, then for example:
#   rightsizer scan                     what could be saved, by what CloudWatch says now
#   rightsizer proposals                what waits for an answer, and what became of the others
#   rightsizer approve fraud-scores     the deployed stack carries it out
#   rightsizer history doc-layout       who decided and changed what
# docs/tour.md walks through every command in ten minutes. Ctrl-C ends the account, and nothing is left behind."""


def main() -> int:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument("--port", type=int, default=4566, help="port on 127.0.0.1 (0 picks a free one)")
    parser.add_argument("--region", default=REGION)
    parser.add_argument(
        "--seed",
        choices=["history", "demo", "none"],
        default="history",
        help="history: 32 endpoints and a deployed stack with a past; demo: 30 endpoints alone; none: empty",
    )
    parser.add_argument("--speed", type=float, default=1.0, help="simulated seconds for each real one")
    options = parser.parse_args()
    try:
        return _run(options)
    except KeyboardInterrupt:
        print("\n# ended; everything is forgotten")
        return 0


def _run(options: argparse.Namespace) -> int:
    began = time.monotonic()
    now = datetime.now(UTC).replace(microsecond=0)
    with _account(options.seed, now, options.region) as (box, pages):
        box.clock.advance_to(datetime.now(UTC).replace(microsecond=0))
        try:
            server = listen(box, options.port, _running(box, options.speed), pages=pages)
        except OSError as error:
            print(f"cannot listen on 127.0.0.1:{options.port}: {error.strerror}; choose another --port")
            return 1
        with server:
            welcome(box, f"http://127.0.0.1:{server.server_port}", list(pages), time.monotonic() - began)
            server.serve_forever()  # werkzeug returns from it on Ctrl-C
            print(f"\n# {len(box.calls)} requests served; everything is forgotten")
    return 0


@contextmanager
def _account(seed: str, now: datetime, region: str) -> Iterator[tuple[Sandbox, dict[str, Page]]]:
    """The account as it was asked for, and the pages that can be looked at in a browser."""
    if seed == "history":
        with with_history(now, _say, region) as (history, stack):
            yield (
                history.box,
                {
                    "slack": lambda: slack_page(history.slack.messages, history.slack.files),
                    "report": lambda: report_page(stack),
                },
            )
        return
    with Sandbox(now=now, region=region) as box:
        if seed == "demo":
            from sandbox.seed import drive
            from sandbox.seed import seed as fill

            works = fill(box)
            drive(box, works, *works)
        yield box, {}


def _say(text: str) -> None:
    print(f"# {text} ...", file=sys.stderr, flush=True)


def welcome(box: Sandbox, url: str, pages: list[str], seconds: float) -> None:
    """What to paste, what to look at, and what to type next."""
    names = f"AWS_ENDPOINT_URL={url} AWS_REGION={box.region} AWS_DEFAULT_REGION={box.region}"
    path = 'PATH="$PWD/.venv/bin:$PATH"' if pages else ""
    print(f"export {names} AWS_ACCESS_KEY_ID=sandbox AWS_SECRET_ACCESS_KEY=sandbox {path}".rstrip(), flush=True)
    there = box.world.fleet.endpoints
    asleep = f" and {ASLEEP}, asleep by its office hours," if pages and ASLEEP not in there else ""
    print(f"# {len(there)} endpoints{asleep} in {box.region}, ready after {seconds:.0f} s.", flush=True)
    for name in pages:
        print(f"# {url}/sandbox/{name}", flush=True)
    if pages:
        print(f"# Time follows this machine's; to move it on: curl -X POST '{url}/sandbox/advance?seconds=3600'")
        print(WHAT_NEXT, flush=True)


def _running(box: Sandbox, speed: float) -> Callable[[], None]:
    """Let the account's time follow the machine's, from request to request; what was advanced by hand stays ahead."""
    before = time.monotonic()

    def catch_up() -> None:
        nonlocal before
        passed, before = time.monotonic() - before, time.monotonic()
        box.clock.advance(timedelta(seconds=passed * speed))

    return catch_up


if __name__ == "__main__":
    raise SystemExit(main())
