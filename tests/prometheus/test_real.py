"""The same cluster in a real Prometheus: its series are written as blocks, served, and read by the same queries."""

import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from rightsizer.advice.cluster import advise_cluster
from rightsizer.advice.market import ec2_market
from rightsizer.domain.cluster import ClusterUse
from rightsizer.errors import ReadError
from rightsizer.prometheus.client import Prometheus
from rightsizer.prometheus.cluster import read_cluster
from tests.prometheus.series import Series, cluster
from tests.prometheus.server import serving, vector

DAYS, STEP_S = 1, 60
PROGRAMS = ("prometheus", "promtool")
ABSENT = [name for name in PROGRAMS if shutil.which(name) is None]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(ABSENT), reason=f"{' and '.join(ABSENT)} not on PATH: install the package prometheus"),
]


def lines(series: Series, start: int, end: int) -> Iterator[str]:
    """The series as OpenMetrics: a constant gauge, or a counter that grows at a constant rate."""
    name, labels, value = series
    named = ",".join(f'{key}="{each}"' for key, each in labels.items())
    for at in range(start, end, STEP_S):
        held = float(value * (at - start) if name.endswith("_total") else value)
        yield f"{name}{{{named}}} {held!r} {at}"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that holds the series of the last day."""
    folder = tmp_path_factory.mktemp("prometheus")
    end = int(time.time())
    text = [line for each in sorted(cluster(), key=lambda one: one[0]) for line in lines(each, end - DAYS * 86400, end)]
    (folder / "series.om").write_text("\n".join([*text, "# EOF"]) + "\n")
    (folder / "prometheus.yml").write_text("global: {}\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(folder / "series.om"), str(folder / "data")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    with running(folder) as found:
        yield found


@contextmanager
def running(folder: Path, *more: str) -> Iterator[str]:
    """A server on the folder's configuration and data."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}", *more]
    options += [f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=30d"]
    server = subprocess.Popen(["prometheus", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


def wait_for(address: str) -> None:
    """Until the server is ready; half a minute at most."""
    for _ in range(60):
        try:
            with urlopen(f"{address}/-/ready", timeout=2):
                return
        except HTTPError as error:
            if error.code == 401:  # it runs, and asks for a login
                return
            time.sleep(0.5)
        except (URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"{address} is not ready after 30 s")


def devices(use: ClusterUse) -> Counter[tuple[str, str, float, float]]:
    """What the devices did, rounded: a mean over a day is a sum of many."""
    return Counter(
        (str(each.group), each.node, round(each.busy_percent or 0, 6), round(each.memory_max_gib or 0, 6))
        for each in use.devices
    )


def test_a_real_server_gives_the_cluster_that_the_served_answers_give(address: str) -> None:
    real = read_cluster(Prometheus(address), DAYS)
    held: list[Series] = list(cluster())
    with serving(lambda expression: (200, vector(held, expression))) as (url, _):
        served = read_cluster(Prometheus(url), DAYS)
    assert set(real.nodes) == set(served.nodes)
    assert set(real.requests) == set(served.requests)
    assert real.missing == ()
    assert devices(real) == devices(served)
    cpu = {each.group: each.cpu_p95 for each in served.uses}
    assert {each.group: each.cpu_p95 for each in real.uses} == pytest.approx(cpu, rel=0.05)


def test_a_real_server_leads_to_the_same_advice(address: str) -> None:
    answer = advise_cluster(read_cluster(Prometheus(address), DAYS), ec2_market("us-east-1"))
    advised = {each.group.name: each.advised_type for each in answer.pods}
    assert advised["chat"] == "g4dn.xlarge"
    assert advised["notebook"] == ""
    assert advised["rank"] == "inf2.xlarge"


def test_a_real_server_explains_what_is_asked_wrongly(address: str) -> None:
    """Errors as the server itself writes them; an empty answer is none."""
    assert Prometheus(address).query("nothing_has_this_name") == ()
    with pytest.raises(ReadError, match="HTTP 400, bad_data"):
        Prometheus(address).query("sum(")
    with pytest.raises(ReadError, match=r"HTTP 404.*in front of /api/v1"):
        Prometheus(f"{address}/wrong").query("up")
    with pytest.raises(ReadError, match="address with http://"):
        Prometheus(address.replace("http:", "https:")).query("up")
    empty = read_cluster(Prometheus(address), DAYS, "nobody")
    assert empty.requests == ()
    assert any("the namespace has no pods" in each for each in empty.missing)


def test_a_real_server_with_a_login_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "prometheus.yml").write_text("global: {}\n")
    (tmp_path / "web.yml").write_text(
        'basic_auth_users: {reader: "$2b$04$abcdefghijklmnopqrstuuM9rG8gVtxTqKkIgX7nXJ1ZhE7p3YFVe"}\n'
    )
    with (
        running(tmp_path, "--web.config.file", str(tmp_path / "web.yml")) as address,
        pytest.raises(ReadError, match=r"HTTP 401.*proxy"),
    ):
        Prometheus(address).query("up")
