"""What is known of the queue of an asynchronous endpoint decides whether it may sleep by itself."""

from array import array
from dataclasses import replace
from datetime import timedelta

import pytest

from rightsizer.domain.endpoint import EndpointKind, Objective
from rightsizer.domain.history import History
from rightsizer.domain.option import OptionKind, Target
from rightsizer.domain.usage import MetricStatistic, Series
from rightsizer.recommender.daily_usage import VariantSetup, daily_usage
from rightsizer.recommender.queued_sleep import (
    START_S,
    expiry_refusal,
    failing_sentence,
    keeps_requests,
    start_text,
    stay_awake_by_order,
    unattended_refusal,
    wait_sentence,
)
from tests import samples
from tests.recommender import kit
from tests.recommender.plain import DEMAND, past

QUEUED = replace(kit.endpoint(), kind=EndpointKind.ASYNC, kinds=(EndpointKind.ASYNC,))
SLEEP = samples.option(kind=OptionKind.SCALE_TO_ZERO, target=Target("ml.g5.4xlarge", 1, minimum=0), in_place=True)
SEEN = replace(DEMAND, oldest_request_s=60.0)


def test_age_and_expired_requests_of_a_day_are_kept() -> None:
    window = kit.window(kit.steady(), days=2)
    size = 2 * 288
    ages = array("d", [5.0] * 100 + [90.0] + [float("nan")] * (size - 101))
    expired = array("d", [float("nan")] * (size - 3) + [1.0, 2.0, 0.0])
    series = {
        MetricStatistic("ApproximateAgeOfOldestRequest", "Maximum"): Series(window.start, 300, ages),
        MetricStatistic("ExpiredRequests", "Sum"): Series(window.start, 300, expired),
    }
    kept = replace(window, series={**window.series, **series})
    days = daily_usage(kept, VariantSetup(kit.catalogue().types["ml.g6e.xlarge"], 1))
    assert window.end - window.start == timedelta(days=2)
    assert [(day.oldest_request_s, day.expired) for day in days] == [(90.0, 0.0), (None, 3.0)]


@pytest.mark.parametrize(
    ("expired", "age_s", "lost"),
    [(0.0, None, False), (3.0, START_S - 1, True), (3.0, START_S, False), (3.0, None, False)],
)
def test_requests_that_expire_sooner_than_a_start_forbid_sleep(expired: float, age_s: float | None, lost: bool) -> None:
    assert (expiry_refusal(replace(SEEN, expired=expired, expiry_s=age_s)) is not None) == lost


def test_automatic_mode_needs_a_queue_that_is_seen_and_loses_nothing() -> None:
    assert unattended_refusal(SEEN) is None
    assert unattended_refusal(replace(SEEN, oldest_request_s=0.0)) is None
    unseen = unattended_refusal(replace(SEEN, oldest_request_s=None))
    lossy = unattended_refusal(replace(SEEN, expired=1.0))
    assert unseen is not None
    assert "ApproximateAgeOfOldestRequest was not published" in unseen.sentence
    assert lossy is not None
    assert "1 requests expired" in lossy.sentence


def test_its_owner_keeps_it_awake_by_a_tag() -> None:
    assert stay_awake_by_order(QUEUED) is None
    assert stay_awake_by_order(replace(QUEUED, tags={"rightsizer:cold-start-ok": "Yes"})) is None
    said = replace(QUEUED, tags={"rightsizer:cold-start-ok": "false"})
    least = replace(QUEUED, objective=Objective(min_instances=1))
    assert [stay_awake_by_order(one) is None for one in (said, least)] == [False, False]


def test_only_the_sleep_of_one_variant_behind_a_queue_keeps_requests() -> None:
    assert keeps_requests(QUEUED, SLEEP)
    assert not keeps_requests(kit.endpoint(), SLEEP)
    assert not keeps_requests(QUEUED, replace(SLEEP, kind=OptionKind.DELETE))
    assert not keeps_requests(QUEUED, replace(SLEEP, in_place=False))
    assert not keeps_requests(replace(QUEUED, variants=QUEUED.variants * 2), SLEEP)


def test_the_wait_is_said_with_what_is_known_of_expiry() -> None:
    assert wait_sentence(3, 40, SEEN, History()).startswith(
        "3 of 40 requests of the look-back would have waited about 10 minutes"
    )
    assert wait_sentence(0, 0, SEEN, History()).startswith("the next request would have waited")
    assert wait_sentence(3, 40, replace(SEEN, oldest_request_s=900.0), History()).endswith(
        "the oldest waited 15 minutes"
    )
    assert wait_sentence(3, 40, replace(SEEN, expired=2.0), History()).endswith("2 did in the look-back")
    assert "was not published" in wait_sentence(3, 40, replace(SEEN, oldest_request_s=None), History())


def test_a_start_is_said_as_it_was_measured_here_and_else_as_aws_measured_it() -> None:
    own, other = past(wake_s=350.0), past(wake_s=900.0)
    assert start_text(History()) == start_text(History((past(),), (past(),))) == "about 10 minutes"
    said = "15 minutes (the longest of the wake-ups of this account that were measured)"
    assert start_text(History((past(),), (other,))) == said
    mine = "6 minutes (the longest of its own wake-ups that were measured)"
    assert start_text(History((own, past(wake_s=200.0)), (other,))) == mine
    assert f"would have waited {mine} for an instance" in wait_sentence(3, 40, SEEN, History((own,)))
    assert f"tried again for {mine}, until the first copy runs" in failing_sentence(3, 40, History((own,)))
