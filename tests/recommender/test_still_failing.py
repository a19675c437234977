"""What speaks against a change although the reference days are good: new errors, long jobs, reservations."""

from dataclasses import replace
from datetime import timedelta

from rightsizer.domain.endpoint import Endpoint, EndpointKind, Objective
from rightsizer.domain.history import History, PastChange, PastEnd
from rightsizer.domain.option import OptionKind
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code
from rightsizer.domain.recommendation import Finding, Gate, Recommendation
from tests.recommender import kit
from tests.recommender.kit import judge

SLOTS = 288
COLD = {"rightsizer:cold-start-ok": "true"}


def judged(endpoint: Endpoint, usage: object, *past: PastChange) -> Recommendation:
    window = kit.window(usage)  # type: ignore[arg-type]
    history, policy = History(past), Policy()
    return judge(endpoint, [window], kit.prices(), kit.catalogue(), {}, history, policy, kit.NOW)


def test_requests_that_fail_since_our_change_keep_automatic_mode_from_going_on() -> None:
    changed = PastChange(kit.NOW - timedelta(days=5), "ml.g6e.xlarge", "ml.g6e.xlarge", 3, 2, PastEnd.PROVEN)
    usage = kit.steady(per_slot=60.0)
    since = {("Invocation5XXErrors", "Sum"): lambda i: 3.0 if i >= 9 * SLOTS else 0.0}
    endpoint = replace(kit.endpoint(count=2), objective=Objective(60.0, min_instances=1))
    calm, failing = judged(endpoint, usage, changed), judged(endpoint, usage | since, changed)
    assert calm.gate is Gate.APPLY
    assert (failing.gate, failing.gate_reason.code) == (Gate.PROPOSE, Code.TOO_MANY_ERRORS)


def test_an_outage_of_yesterday_is_asked_about_however_good_the_fortnight_was() -> None:
    """Four of a hundred failed in three hours of yesterday: 0.1 % of all, and more of the last two days than may."""
    usage, endpoint = kit.steady(per_slot=60.0), replace(kit.endpoint(count=2), objective=Objective(60.0))

    def failing(days_ago: int) -> Recommendation:
        begin = (14 - days_ago) * SLOTS + 100
        outage = {("Invocation5XXErrors", "Sum"): lambda i: 25.0 if begin <= i < begin + 36 else 0.0}
        return judged(endpoint, usage | outage)

    assert failing(7).gate is Gate.APPLY
    lately = failing(1)
    assert (lately.gate, lately.gate_reason.code) == (Gate.PROPOSE, Code.TOO_MANY_ERRORS)
    assert "of its requests of the last two days fail, and 0.5 % may" in lately.gate_reason.sentence


def test_a_handful_of_failures_of_yesterday_tells_no_share() -> None:
    """Nine, and then ten, of about 570 requests of two days: both are more than half of a per cent."""
    usage, endpoint = kit.steady(per_slot=1.0), replace(kit.endpoint(count=2), objective=Objective(60.0))

    def failing(number: int) -> Recommendation:
        begin = 13 * SLOTS + 100
        return judged(endpoint, usage | {("Invocation5XXErrors", "Sum"): lambda i: float(begin <= i < begin + number)})

    assert failing(9).gate_reason.code is not Code.TOO_MANY_ERRORS
    assert failing(10).gate_reason.code is Code.TOO_MANY_ERRORS


def job(minutes: int) -> dict[tuple[str, str], object]:
    """A job an hour that keeps the GPU busy, counted when it ends."""
    last, slots = 11, minutes // 5
    usage = dict(kit.steady(latency_s=60.0 * minutes))
    usage |= {
        ("Invocations", "Sum"): lambda i: 1.0 if i % 12 == last else 0.0,
        ("GPUUtilization", "Average"): lambda i: 95.0 if i % 12 > last - slots else 0.0,
    }
    return usage  # type: ignore[return-value]


def test_an_asynchronous_endpoint_does_not_sleep_while_a_long_job_works() -> None:
    endpoint = replace(kit.endpoint(kind=EndpointKind.ASYNC, p95_s=None), tags=COLD)

    def sleeps(minutes: int) -> bool:
        return OptionKind.SCALE_TO_ZERO in [o.kind for o in judged(endpoint, job(minutes)).options]

    assert sleeps(5)
    assert not sleeps(55)


def test_users_who_wait_on_reserved_capacity_are_told_and_savings_are_none() -> None:
    reserved = kit.endpoint(kind=EndpointKind.RESERVED)
    quiet = judged(reserved, kit.steady())
    assert (quiet.finding, quiet.gate, quiet.options) == (Finding.OPTIMIZED, Gate.SILENT, ())
    assert "paid for" in quiet.reason.sentence
    silent = judged(reserved, kit.steady(per_slot=0.0, gpu=0.0))
    assert (silent.finding, silent.gate, silent.options) == (Finding.IDLE, Gate.SILENT, ())
    assert "nothing is saved by leaving it" in silent.reason.sentence, "that nobody calls is said all the same"
    bought = replace(reserved, kind=EndpointKind.MARKETPLACE, kinds=(EndpointKind.MARKETPLACE, EndpointKind.RESERVED))
    assert judged(bought, kit.steady()).reason == quiet.reason, "it is paid for, whatever else the endpoint is"
    for kind in (EndpointKind.RESERVED, EndpointKind.REAL_TIME):
        for name in ("ml.g4dn.xlarge", "ml.g6e.xlarge"):  # the cheapest type, and one with cheaper ones that may do
            found = judged(kit.endpoint(name, kind=kind, p95_s=0.6), kit.steady(latency_s=2.0, gpu=99.0))
            assert (found.finding, found.gate) == (Finding.UNDER_PROVISIONED, Gate.PROPOSE)
