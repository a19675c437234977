"""``python -m sandbox``: the simulated account as a server on loopback (``make sandbox``)."""

import argparse
import importlib
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sandbox.account import Sandbox
from sandbox.server import listen


def main() -> int:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument("--port", type=int, default=4566, help="port on 127.0.0.1 (0 picks a free one)")
    parser.add_argument("--region", default="eu-west-1")
    parser.add_argument("--seed", choices=["demo", "none"], default="demo", help="what the account holds at the start")
    parser.add_argument("--speed", type=float, default=1.0, help="simulated seconds for each real one")
    options = parser.parse_args()
    try:
        return _run(options)
    except KeyboardInterrupt:
        print("\n# ended; everything is forgotten")
        return 0


def _run(options: argparse.Namespace) -> int:
    with Sandbox(now=datetime.now(UTC).replace(microsecond=0), region=options.region) as box:
        if options.seed == "demo":
            demo = importlib.import_module("sandbox.seed")  # it reads the catalogue: only when it is asked for
            works = demo.seed(box)
            demo.drive(box, works, *works)
        try:
            server = listen(box, options.port, _running(box, options.speed))
        except OSError as error:
            print(f"cannot listen on 127.0.0.1:{options.port}: {error.strerror}; choose another --port")
            return 1
        with server:
            print(f"export AWS_ENDPOINT_URL=http://127.0.0.1:{server.server_port}", flush=True)
            names = f"AWS_DEFAULT_REGION={options.region} AWS_ACCESS_KEY_ID=sandbox AWS_SECRET_ACCESS_KEY=sandbox"
            print(f"export {names}", flush=True)
            print(f"# {len(box.world.fleet.endpoints)} endpoints in {options.region}; Ctrl-C ends it", flush=True)
            server.serve_forever()  # werkzeug returns from it on Ctrl-C
            print(f"\n# {len(box.calls)} requests served; everything is forgotten")
    return 0


def _running(box: Sandbox, speed: float) -> Callable[[], None]:
    """Let the account's time follow the machine's, from request to request."""
    began, start = time.monotonic(), box.clock.now

    def catch_up() -> None:
        due = start + timedelta(seconds=(time.monotonic() - began) * speed)
        if due > box.clock.now:
            box.clock.advance_to(due)

    return catch_up


if __name__ == "__main__":
    raise SystemExit(main())
