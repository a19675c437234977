"""The benchmarks that run built functions still do, at their smallest size; what they measure is no matter here."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench import doors, interruption

pytestmark = [
    pytest.mark.artefact,
    pytest.mark.slow,
    pytest.mark.usefixtures("build", "runtime_python"),
]


def test_a_warned_instance_is_replaced_by_five_calls() -> None:
    # First in this module: there is one simulated account at a time, and the fixture below holds its own.
    _, watches = interruption.measure(1)
    assert interruption.over(0.0, watches) == []


@pytest.fixture(scope="module")
def bench(build: object, runtime_python: object) -> Iterator[doors.Bench]:
    with doors.recorded() as found:
        yield found


def test_every_door_does_its_job_and_is_measured_beside_its_bare_handler(bench: doors.Bench) -> None:
    assert set(bench.made) == set(doors.JOBS)
    found = bench.pairs(["respond", "interruption"], 1)
    for pairs in found.values():
        assert pairs.calls > 0
        assert all(0 < run.cpu_s < 60 for run in (*pairs.door, *pairs.bare))


def test_a_door_that_does_otherwise_than_recorded_is_not_measured(bench: doors.Bench) -> None:
    function, recording = bench.made["respond"]
    short = replace(recording, exchanges=recording.exchanges[:-1])
    with pytest.raises(SystemExit, match=r"respond did not do .* not in the recording: response_url"):
        replace(bench, made={"respond": (function, short)}).measure_door("respond")
