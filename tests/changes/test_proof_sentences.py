"""A verdict is a word, a code and a sentence with its figures: the person who is paged reads the sentence alone."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.changes.proof import proof_verdict
from rightsizer.domain.change import Change, FailureClass
from rightsizer.domain.endpoint import ERROR_TAG
from rightsizer.domain.live_state import ProofVerdict
from rightsizer.domain.plan import Before, Plan, VariantCount
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import MetricWindow, NoMetrics
from tests.changes.test_proof import LIMITS, START, change, window

REFUSED = NoMetrics("chat", "v", Reason(Code.PERMISSION_MISSING, "GetMetricData is refused"))


def judged(
    windows: Sequence[MetricWindow | NoMetrics], hours: float = 3.0, at: Change | None = None
) -> tuple[str, Code, str]:
    found = verdict_on(windows, hours, at)
    return found.judgement, found.reason.code, found.reason.sentence


def verdict_on(windows: Sequence[MetricWindow | NoMetrics], hours: float, at: Change | None = None) -> ProofVerdict:
    return proof_verdict(at or change(), windows, START + timedelta(hours=hours), LIMITS)


def tagged(percent: str) -> Change:
    return replace(change(), before=Before("old", START, "", (), tags={ERROR_TAG: percent}))


def test_what_is_proven_says_how_many_requests_in_how_long_on_which_type() -> None:
    busy = window(requests=[100.0] * 12)
    assert judged([busy]) == ("proven", Code.PROVEN, "1,200 requests served well in 3.0 h on ml.g5.xlarge")


def test_probation_and_two_hundred_requests_are_enough_to_the_second_and_to_the_request() -> None:
    exactly = window(requests=[100.0, 100.0])
    assert judged([exactly], hours=2.0)[0] == "proven"
    assert judged([exactly], hours=1.99) == (
        "not-yet",
        Code.UNPROVEN,
        "200 requests served well in 2.0 h; it is watched for 2 h",
    )
    one_less = window(requests=[100.0, 99.0])
    assert judged([one_less], hours=2.0) == (
        "not-yet",
        Code.UNPROVEN,
        "199 requests served well in 2.0 h; the proof takes 200",
    )


def test_too_few_requests_are_given_up_after_fourteen_days() -> None:
    quiet = window(requests=[3.0, 4.0])
    assert judged([quiet], hours=14 * 24 - 0.01)[0] == "not-yet"
    assert judged([quiet], hours=14 * 24) == (
        "given-up",
        Code.UNPROVEN,
        "only 7 requests in 14 days; applied, unproven",
    )


def test_what_could_not_be_read_is_named_and_given_up_after_fourteen_days() -> None:
    seen = window(requests=[600.0, 600.0])
    said = "1,200 requests were seen in 3.0 h, but not all could be read: GetMetricData is refused"
    assert judged([seen, REFUSED]) == ("not-yet", Code.UNPROVEN, said)
    assert judged([seen, REFUSED], hours=14 * 24 - 0.01)[0] == "not-yet"
    said = "not all could be read for 14 days: GetMetricData is refused; applied, unproven"
    assert judged([seen, REFUSED], hours=14 * 24) == ("given-up", Code.UNPROVEN, said)


def test_a_verdict_carries_how_it_serves() -> None:
    found = verdict_on([window(requests=[100.0] * 12, latency=[200_000.0] * 12)], 3.0)
    assert found.figures == {"p95_s": pytest.approx(0.2)}


def test_half_of_the_instance_hours_may_run_elsewhere_and_no_more() -> None:
    busy = window(requests=[100.0] * 12)
    half = replace(change(), instance_hours=10.0, fallback_hours=3.0, unseen_hours=2.0)
    assert judged([busy], at=half)[0] == "proven"
    most = replace(half, unseen_hours=3.5)
    said = "6.5 of 10.0 instance hours are not known to have run on ml.g5.xlarge"
    assert judged([busy], at=most) == ("not-yet", Code.UNPROVEN, f"1,200 requests served well in 3.0 h; {said}")
    assert judged([busy], 14 * 24, most) == ("given-up", Code.UNPROVEN, f"{said}; applied, unproven")


def test_a_variant_that_stays_as_it_was_has_nothing_to_prove() -> None:
    both = (VariantCount("v", "ml.g5.xlarge", 1, 1.0), VariantCount("w", "ml.g5.xlarge", 1, 1.0))
    old = Before("old", START, "", (VariantCount("v", "ml.g5.4xlarge", 1, 1.0), both[1]))
    asked = replace(change(), before=old, plan=Plan(after=both))
    idle = replace(window(requests=[0.0] * 12), variant="w")
    assert judged([window(requests=[100.0] * 12), idle], at=asked)[0] == "proven"
    more = replace(asked, plan=Plan(after=(both[0], replace(both[1], count=2))))
    assert judged([window(requests=[100.0] * 12), idle], at=more)[0] == "not-yet", "it runs another count"


def test_half_the_usual_peak_of_an_hour_is_enough_and_an_unknown_peak_is_not() -> None:
    quiet = window(requests=[1.0] * 12)
    assert judged([quiet], at=change(peak_hour_requests=24.0))[0] == "proven"
    assert judged([quiet], at=change(peak_hour_requests=24.1))[0] == "not-yet"
    assert judged([window(requests=[1.0])], at=change(peak_hour_requests=0.8))[0] == "proven"
    assert judged([quiet])[0] == "not-yet", "no peak is known"
    assert judged([], at=change(peak_hour_requests=1.0))[0] == "not-yet", "no hour was seen"


def test_five_failed_requests_of_more_than_a_tenth_bring_it_back_and_four_or_a_tenth_do_not() -> None:
    rows = [0.0] * 5
    found = verdict_on([window(requests=[0.0, 20.0, *rows], errors=[0.0, 5.0, *rows])], 1.0)
    said = "5 of 20 requests failed within 30 minutes from Mon 2 Nov 2026, 10:00 UTC"
    assert (found.judgement, found.reason) == ("bad", Reason(Code.ROLLED_BACK, said))
    assert found.failure is FailureClass.PERFORMANCE
    assert judged([window(requests=[0.0, 20.0], errors=[0.0, 4.0])])[0] == "not-yet"
    assert judged([window(requests=[0.0, 50.0], errors=[0.0, 5.0])])[0] == "not-yet"


@pytest.mark.parametrize(("percent", "judgement"), [("20", "bad"), ("30", "not-yet"), ("many", "bad"), ("0", "bad")])
def test_the_owners_tag_sets_the_share_that_may_fail(percent: str, judgement: str) -> None:
    failing = window(requests=[20.0], errors=[5.0])
    found = judged([failing], at=tagged(percent))
    assert found[0] == judgement
    if judgement == "bad":
        said = "5 of 20 requests failed within 30 minutes from Mon 2 Nov 2026, 10:00 UTC"
        allows = "" if percent == "many" else f"; the tag rightsizer:error-percent allows {percent} %"
        assert found[2] == said + allows


def test_a_tag_may_be_stricter_than_a_tenth() -> None:
    failing = window(requests=[100.0], errors=[6.0])
    assert judged([failing])[0] == "not-yet"
    assert judged([failing], at=tagged("5"))[0] == "bad"


def test_three_slow_periods_with_five_requests_bring_it_back_to_the_objective() -> None:
    slow = window(requests=[1.0, 1.0, 3.0], latency=[600_000.0, 700_000.0, 650_000.0])
    found = verdict_on([slow], 1.0)
    said = "p95 was 700 ms in 3 of 3 periods; the objective is 500 ms"
    assert (found.judgement, found.reason) == ("bad", Reason(Code.ROLLED_BACK, said))
    assert found.failure is FailureClass.PERFORMANCE
    assert judged([window(requests=[1.0, 1.0, 2.0], latency=[600_000.0] * 3)], 1.0)[0] == "not-yet", "four requests"
    assert judged([window(requests=[9.0] * 2, latency=[600_000.0] * 2)], 1.0)[0] == "not-yet", "two periods"
    assert judged([window(requests=[9.0] * 6, latency=[500_000.0] * 6)], 1.0)[0] == "not-yet", "as promised"
    assert judged([window(requests=[0.5] * 6 + [9.0], latency=[600_000.0] * 6 + [1.0])], 1.0)[0] == "not-yet"


def test_without_an_objective_the_sentence_names_the_bound() -> None:
    slow = window(requests=[20.0] * 6, latency=[900_000.0] * 6)
    said = "p95 was 900 ms in 6 of 6 periods; the bound, twice the p95 of before, is 800 ms"
    assert judged([slow], 1.0, change(None, p95_s=0.4)) == ("bad", Code.ROLLED_BACK, said)


def test_three_periods_with_full_memory_bring_it_back() -> None:
    found = verdict_on([window(requests=[20.0] * 6, memory=[98.0, 99.4, 98.0, 97.0, 50.0, 50.0])], 1.0)
    said = "memory was at 99 % in 3 of 6 periods; the limit is 97 %"
    assert (found.judgement, found.reason) == ("bad", Reason(Code.ROLLED_BACK, said))
    assert found.failure is FailureClass.MEMORY
    assert judged([window(requests=[20.0] * 6, memory=[98.0] * 2 + [97.0] * 4)], 1.0)[0] == "not-yet"


def test_what_was_served_before_the_turn_counts_neither_for_nor_against() -> None:
    turned = replace(change(), turned_at=START + timedelta(minutes=5))
    failing_first = window(requests=[20.0, 200.0], errors=[20.0, 0.0])
    assert judged([failing_first], at=turned) == (
        "proven",
        Code.PROVEN,
        "200 requests served well in 2.9 h on ml.g5.xlarge",
    )
    assert judged([window(requests=[200.0, 20.0], errors=[0.0, 20.0])], at=turned)[0] == "bad"
