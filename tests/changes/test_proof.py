"""Requests prove a change, not time; bad ones bring it back."""

from array import array
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rightsizer.changes import proof
from rightsizer.changes.baseline import REFUSED
from rightsizer.changes.proof import ERRORS, HOST_MEMORY, LATENCY, REQUESTS, proof_verdict
from rightsizer.domain.change import Change, ChangeState, FailureClass
from rightsizer.domain.plan import Plan, VariantCount
from rightsizer.domain.policy import ChangeLimits
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.schedule import DayCounts
from rightsizer.domain.usage import MetricStatistic, MetricWindow, NoMetrics, Series
from tests import samples

START = datetime(2026, 11, 2, 10, tzinfo=UTC)
LIMITS = ChangeLimits(probation=timedelta(hours=2))
NAN = float("nan")


def change(p95: float | None = 0.5, **baseline: float) -> Change:
    return samples.change(
        START,
        state=ChangeState.APPLIED,
        turned_at=START,
        objective_p95_s=p95,
        baseline=baseline,
    )


def window(**rows: list[float]) -> MetricWindow:
    if "requests" in rows:
        rows.setdefault("latency", [100_000.0 if v > 0 else NAN for v in rows["requests"]])
    names = {"requests": REQUESTS, "errors": ERRORS, "refused": REFUSED, "latency": LATENCY, "memory": HOST_MEMORY}
    series: dict[MetricStatistic, Series] = {names[k]: Series(START, 300, array("d", v)) for k, v in rows.items()}
    return MetricWindow("chat", "v", START, START + timedelta(hours=3), 300, series)


def verdict(w: MetricWindow | NoMetrics, hours: float = 3, at: Change | None = None) -> str:
    return proof_verdict(at or change(), [w], START + timedelta(hours=hours), LIMITS).judgement


def test_enough_requests_after_the_probation_prove_it() -> None:
    assert verdict(window(requests=[20.0] * 12)) == "proven"


def test_nothing_is_proven_before_the_probation_is_over() -> None:
    assert verdict(window(requests=[20.0] * 12), hours=1) == "not-yet"


def test_counts_of_the_week_are_proven_when_each_of_them_has_run() -> None:
    """A Monday's requests say nothing of the weekend's counts."""
    made, many = change(), window(requests=[20.0] * 12)
    classes = (DayCounts((0, 1, 2, 3, 4), (3,) * 24), DayCounts((5, 6), (1,) * 24))
    made = replace(made, option=replace(made.option, target=replace(made.option.target, day_counts=classes)))
    assert [verdict(many, hours, made) for hours in (3, 167, 168)] == ["not-yet", "not-yet", "proven"]
    assert "watched for 168 h" in proof_verdict(made, [many], START + timedelta(hours=3), LIMITS).reason.sentence


@pytest.mark.parametrize("silence", [[0.0] * 36, [NAN] * 36])
def test_silence_proves_nothing(silence: list[float]) -> None:
    assert verdict(window(requests=silence)) == "not-yet"


def test_no_metrics_at_all_prove_nothing() -> None:
    nothing = NoMetrics("chat", "v", Reason(Code.NO_DATAPOINTS, "none"))
    assert verdict(nothing) == "not-yet"
    assert verdict(nothing, hours=24 * 15) == "given-up"


def test_requests_whose_latency_was_not_seen_prove_nothing() -> None:
    unseen = window(requests=[20.0] * 12, latency=[NAN] * 12)
    assert verdict(unseen) == "not-yet"
    assert verdict(unseen, at=change(None, p95_s=0.2)) == "not-yet"
    assert verdict(unseen, at=change(None)) == "proven", "no latency is promised and none was ever published"
    assert verdict(unseen, hours=24 * 15) == "given-up"


@pytest.mark.parametrize("code", [Code.PERMISSION_MISSING, Code.READ_FAILED, Code.THROTTLED])
def test_what_could_not_be_read_waits_for_the_next_look_and_is_never_called_proven(code: Code) -> None:
    refused = Reason(code, "cloudwatch:GetMetricData is refused")
    part = replace(window(requests=[20.0] * 12), notes=(refused,))
    for blind in (part, NoMetrics("chat", "v", refused)):
        found = proof_verdict(change(), [window(requests=[20.0] * 12), blind], START + timedelta(hours=3), LIMITS)
        assert (found.judgement, "is refused" in found.reason.sentence) == ("not-yet", True)
        assert verdict(blind, hours=24 * 15) == "given-up"


def test_one_peak_with_half_the_usual_requests_is_enough_for_a_quiet_endpoint() -> None:
    quiet = window(requests=[1.0] * 12 + [0.0] * 24)
    assert verdict(quiet, at=change(peak_hour_requests=20.0)) == "proven"
    assert verdict(quiet, at=change(peak_hour_requests=30.0)) == "not-yet"


def test_what_another_variant_serves_proves_nothing_about_the_changed_one() -> None:
    busy, idle = window(requests=[50.0] * 12), replace(window(requests=[0.0] * 12), variant="w")
    for mine in ("v", "w"):
        asked = replace(change(peak_hour_requests=20.0), variant=mine)
        found = proof_verdict(asked, [busy, idle], START + timedelta(hours=3), LIMITS)
        assert found.judgement == ("proven" if mine == "v" else "not-yet")


def test_where_several_variants_were_changed_each_of_them_has_to_serve() -> None:
    both = (VariantCount("v", "ml.g5.xlarge", 1, 1.0), VariantCount("w", "ml.g5.xlarge", 1, 1.0))
    asked = replace(change(), plan=Plan(after=both))
    busy = window(requests=[50.0] * 12)
    for requests, judgement in ((0.0, "not-yet"), (50.0, "proven")):
        other = replace(window(requests=[requests] * 12), variant="w")
        assert proof_verdict(asked, [busy, other], START + timedelta(hours=3), LIMITS).judgement == judgement


def test_the_usual_peak_is_the_one_of_the_variant() -> None:
    busy, quiet = window(requests=[50.0] * 12), replace(window(requests=[1.0] * 12), variant="w")
    usual = proof.baseline([busy, quiet])
    asked = replace(change(0.5, **{k: v for k, v in usual.items() if k.startswith("peak")}), variant="w")
    assert proof_verdict(asked, [busy, quiet], START + timedelta(hours=3), LIMITS).judgement == "proven"


def test_failing_requests_bring_it_back() -> None:
    found = proof_verdict(change(), [window(requests=[20.0] * 6, errors=[3.0] * 6)], START + timedelta(hours=1), LIMITS)
    assert (found.judgement, found.failure) == ("bad", FailureClass.PERFORMANCE)


def test_errors_that_were_usual_before_do_not() -> None:
    usual = change(error_share=0.2)
    assert verdict(window(requests=[20.0] * 12, errors=[3.0] * 12), at=usual) == "proven"


def test_a_smaller_fleet_that_turns_requests_away_goes_back_and_the_callers_usual_mistakes_do_not_count() -> None:
    refusing = window(requests=[20.0] * 12, refused=[3.0] * 12)
    never = change(refused_share=0.0)
    found = proof_verdict(never, [refusing], START + timedelta(hours=1), LIMITS)
    assert (found.judgement, found.failure) == ("bad", FailureClass.PERFORMANCE)
    assert "18 of 120 requests were answered by 4XX within 30 minutes" in found.reason.sentence
    assert "before the change at most 0 %: a full server answers 429" in found.reason.sentence
    assert verdict(refusing, at=change(refused_share=0.06)) == "proven"
    few = window(requests=[20.0] * 12, refused=[1.0] * 12)
    assert verdict(few, at=never) == "proven", "one in twenty may be the callers'"


def test_four_refused_requests_are_no_evidence_and_an_added_instance_is_not_blamed() -> None:
    never = change(refused_share=0.0)
    quiet = [1.0] * 4 + [0.0] * 20
    assert verdict(window(requests=[1.0] * 24, refused=quiet), at=never) != "bad"
    assert verdict(window(requests=[1.0] * 24, refused=[1.0] * 5 + [0.0] * 19), at=never) == "bad"
    refusing = window(requests=[20.0] * 12, refused=[3.0] * 12)
    added = replace(never, option=replace(never.option, restores=True))
    assert verdict(refusing, at=added) == "proven"


def test_a_change_that_an_older_release_began_is_not_judged_by_what_it_refuses() -> None:
    """Nobody kept what was usual before it."""
    assert verdict(window(requests=[20.0] * 12, refused=[3.0] * 12), at=change()) == "proven"


def test_four_bad_requests_are_no_evidence() -> None:
    assert verdict(window(requests=[5.0, *[20.0] * 11], errors=[4.0, *[0.0] * 11])) == "proven"


def test_latency_is_in_microseconds_and_one_slow_period_is_no_evidence() -> None:
    assert verdict(window(requests=[20.0] * 12, latency=[900_000.0, *[400_000.0] * 11])) == "proven"
    assert verdict(window(requests=[20.0] * 12, latency=[900_000.0] * 12)) == "bad"


def test_without_an_objective_twice_the_old_p95_is_too_slow() -> None:
    slow = window(requests=[20.0] * 12, latency=[900_000.0] * 12)
    assert verdict(slow, at=change(None, p95_s=0.4)) == "bad"
    assert verdict(slow, at=change(None, p95_s=0.5)) == "proven"


def test_full_memory_brings_it_back() -> None:
    found = proof_verdict(
        change(), [window(requests=[20.0] * 6, memory=[98.0] * 6)], START + timedelta(hours=1), LIMITS
    )
    assert found.failure is FailureClass.MEMORY


def test_the_baseline_of_silence_is_empty() -> None:
    assert proof.baseline([window(requests=[NAN] * 6)]) == {}


def test_a_restored_fleet_is_not_sent_back_to_the_slow_one_for_being_slow_but_is_for_failing() -> None:
    busy_day = [50.0] * 36
    restored = change(0.5, p95_s=1.4)
    restored = replace(restored, option=replace(restored.option, restores=True))
    assert verdict(window(requests=busy_day, latency=[600_000.0] * 36)) == "bad"
    assert verdict(window(requests=busy_day, latency=[600_000.0] * 36), at=restored) == "proven"
    assert verdict(window(requests=busy_day, errors=[20.0] * 36), at=restored) == "bad"
