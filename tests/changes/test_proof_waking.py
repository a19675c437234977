"""A fleet without an instance is proven by a request that woke it, and by nothing else."""

from array import array
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rightsizer.bootstrap import catalogue
from rightsizer.changes import proof
from rightsizer.changes.baseline import (
    ASLEEP,
    EXPIRED,
    NO_CAPACITY,
    OLDEST,
    PROCESSED,
    REQUESTS,
    ServicePeriod,
    periods_of,
)
from rightsizer.changes.measurement import add_lessons
from rightsizer.changes.proof import unproven_wake_sentence, wake_text, wake_ups, waking_verdict
from rightsizer.domain.change import Change, ChangeState
from rightsizer.domain.history import PastChange, PastEnd
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.usage import MetricStatistic, MetricWindow, Series
from tests import samples

START = datetime(2026, 11, 2, 10, tzinfo=UTC)
VARIANT = "v"
SLEEP = samples.option(
    kind=OptionKind.SCALE_TO_ZERO, target=Target("ml.g5.4xlarge", 2, minimum=0), restart_needed=False
)
QUIET, WAKING = [0.0] * 6, [1.0, 1.0]


def window(
    asleep: list[float], processed: list[float], oldest: list[float] | None = None, expired: list[float] | None = None
) -> MetricWindow:
    rows: dict[MetricStatistic, list[float]] = {ASLEEP: asleep, PROCESSED[0]: processed}
    rows |= {OLDEST: oldest} if oldest else {}
    rows |= {EXPIRED: expired} if expired else {}
    series = {signal: Series(START, 300, array("d", values)) for signal, values in rows.items()}
    return MetricWindow("chat", VARIANT, START, START + timedelta(hours=3), 300, series)


def sleeper() -> Change:
    return samples.change(START, state=ChangeState.APPLIED, turned_at=START, objective_p95_s=None, option=SLEEP)


def judged(seen: MetricWindow, hours: float = 3, at: Change | None = None) -> str:
    limits = ChangeLimits(probation=timedelta(hours=2))
    verdict = proof.proof_verdict(at or sleeper(), [seen], START + timedelta(hours=hours), limits)
    return f"{verdict.judgement}: {verdict.reason.sentence}"


def test_one_request_that_woke_it_proves_it_and_its_wait_is_said() -> None:
    seen = window([*QUIET, *WAKING, 0.0, 0.0], [*QUIET, 0.0, 0.0, 1.0, 0.0], [*QUIET, 240.0, 480.0, 0.0, 0.0])
    assert judged(seen) == (
        "proven: 1 requests served well in 3.0 h on ml.g5.4xlarge; it woke once for a request, which waited 8 minutes"
        " at most"
    )


def test_the_longest_wait_of_a_served_wake_up_is_kept_for_the_next_decision() -> None:
    seen = window([*QUIET, *WAKING, 0.0, 0.0], [*QUIET, 0.0, 0.0, 1.0, 0.0], [*QUIET, 240.0, 480.0, 0.0, 0.0])
    verdict = proof.proof_verdict(sleeper(), [seen], START + timedelta(hours=3), ChangeLimits())
    assert verdict.figures["wake_s"] == 480.0
    kept = add_lessons(
        PastChange(START, "a", "a", 2, 2, PastEnd.PROVEN), replace(sleeper(), measured=verdict.figures), catalogue()
    )
    assert kept.wake_s == 480.0
    unserved = window([*QUIET, *WAKING, *QUIET], [0.0] * 14)
    assert "wake_s" not in proof.proof_verdict(sleeper(), [unserved], START, ChangeLimits()).figures


def test_a_thousand_requests_on_a_fleet_that_never_slept_prove_nothing() -> None:
    seen = window([0.0] * 12, [100.0] * 12)
    assert judged(seen).startswith("not-yet: ")
    assert "no request came while it had no instance" in judged(seen, hours=15 * 24)
    assert judged(seen, hours=15 * 24).endswith("; applied, unproven")


def test_a_request_that_nobody_served_is_no_wake_up() -> None:
    seen = window([*QUIET, *WAKING, *QUIET], [0.0] * 14)
    assert not wake_ups(list(periods_of(seen)))[0].served
    assert judged(seen).startswith("not-yet: ")


def test_half_an_hour_without_an_instance_is_bad_and_less_is_not() -> None:
    said = "bad: requests waited without an instance since Mon 2 Nov 2026"
    assert judged(window([1.0] * 8, [0.0] * 8)).startswith(said)
    assert judged(window([1.0] * 7, [0.0] * 7)).startswith("not-yet: ")


def test_a_request_that_expired_while_it_started_is_bad_and_one_long_before_is_not() -> None:
    asleep, served = [*QUIET, *WAKING, 0.0], [0.0] * 8 + [1.0]
    assert judged(window(asleep, served, expired=[*QUIET, 0.0, 1.0, 0.0])).startswith("bad: 1 requests expired")
    assert judged(window(asleep, served, expired=[1.0, *[0.0] * 8])).startswith("proven: ")


def test_a_request_that_expired_is_counted_once() -> None:
    seen = window([*QUIET, *WAKING, 0.0], [0.0] * 8 + [1.0], expired=[*QUIET, 2.0, 3.0, 0.0])
    assert [wake.expired for wake in wake_ups(list(periods_of(seen)))] == [5.0]


def test_a_change_of_type_of_a_sleeper_is_judged_by_its_requests() -> None:
    change = samples.change(START, state=ChangeState.APPLIED, turned_at=START, objective_p95_s=None)
    assert judged(window([0.0] * 12, [100.0] * 12), at=change).startswith("proven: ")


def test_without_an_age_the_wait_is_as_long_as_it_slept_on() -> None:
    rows = list(periods_of(window([*WAKING, 0.0, *WAKING, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0, 1.0])))
    assert wake_text(sleeper(), [rows]) == "; it woke 2 times for a request, which waited 10 minutes at most"


COMPONENTS = replace(sleeper(), option=replace(SLEEP, restart_needed=True))


def component(failing: list[float], served: list[float]) -> list[ServicePeriod]:
    series = {
        NO_CAPACITY: Series(START, 300, array("d", failing)),
        REQUESTS: Series(START, 300, array("d", served)),
    }
    end = START + timedelta(seconds=300 * len(failing))
    return list(periods_of(MetricWindow("chat", "small", START, end, 300, series)))


def test_a_component_whose_every_call_fails_with_pauses_between_never_woke() -> None:
    rows = component([1.0, 0.0, 0.0] * 288, [0.0] * 864)
    verdict = waking_verdict(COMPONENTS, rows)
    assert len(wake_ups(rows, queued=False)) == 1
    assert verdict is not None
    assert (
        "requests failed without an instance since Mon 2 Nov 2026, 10:00 UTC, for more than 30"
        in verdict.reason.sentence
    )
    assert unproven_wake_sentence(COMPONENTS, [rows])


def test_a_component_that_serves_after_a_pause_woke_and_the_pause_is_no_failure() -> None:
    rows = component([1.0, 0.0, 0.0, 0.0, *[0.0] * 20, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0, *[0.0] * 20, 0.0, 1.0])
    assert waking_verdict(COMPONENTS, rows) is None
    assert wake_text(COMPONENTS, [rows]) == "; it woke 2 times, and requests failed for 5 minutes at most"


def test_a_component_nobody_calls_again_after_one_failing_call_is_not_bad_and_not_proven() -> None:
    rows = component([1.0, *[0.0] * 100], [0.0] * 101)
    assert waking_verdict(COMPONENTS, rows) is None
    assert unproven_wake_sentence(COMPONENTS, [rows])


def test_failing_calls_of_half_an_hour_with_pauses_are_bad_though_it_woke_later() -> None:
    assert waking_verdict(COMPONENTS, component([1.0, 0.0] * 4 + [0.0], [0.0] * 8 + [1.0])) is None
    assert waking_verdict(COMPONENTS, component([1.0, 0.0] * 5, [0.0] * 9 + [1.0])) is not None
