"""4XX answers: where they tell of a server that refuses what it cannot serve, and where callers may err."""

from dataclasses import replace

from rightsizer.domain.demand import RefusedShares
from rightsizer.domain.option import LatencyObjective
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.usage import SLOTS
from rightsizer.recommender.finding import busy_and_refusing_reason, refused_text
from tests.recommender.plain import LATENCY, demand, near
from tests.recommender.test_demand import day, seen

DECLARED = LatencyObjective(1.0, declared=True, source="tag rightsizer:p95-ms")


def refuses(
    refused: RefusedShares, load: float = 1.0, instances: float = 1.0, objective: LatencyObjective = DECLARED
) -> Reason | None:
    """Of workers whose requests take 0.61 s each."""
    found = demand(refused=refused)
    busy = replace(found, load=replace(found.load, peak_rate=load))
    return busy_and_refusing_reason(busy, replace(LATENCY, mean_s=0.61), objective, Policy(), instances)


def test_a_busy_fleet_that_refuses_three_times_as_much_in_its_busy_hours_is_too_small() -> None:
    text = "3.0 % of its requests get a 4XX answer in busy hours, 1.0 % at other times: its server may refuse what it"
    assert refuses(RefusedShares(0.02, 0.03, 0.01)) == Reason(Code.UNDER_PROVISIONED, f"{text} cannot serve (429)")
    assert refuses(RefusedShares(0.02, 0.029, 0.01)) is None, "as callers err at all hours"
    assert refuses(RefusedShares(0.03, 0.03, None)) is None, "no hour is known in which less comes"
    assert refuses(RefusedShares(0.01, 0.01, 0.0)) is None, "one in a hundred is a caller's mistake"
    assert refuses(RefusedShares(0.02, 0.03, 0.01), load=0.98) is None, "0.6 of a worker is not short"
    assert refuses(RefusedShares(0.02, 0.03, 0.01), load=1.9, instances=2.0) is None, "nor 1.16 of two"
    assert refuses(RefusedShares(0.02, 0.03, 0.01), load=2.0, instances=2.0) is not None


def test_the_owner_may_allow_more_refused_requests() -> None:
    loose = replace(DECLARED, error_share=0.04)
    assert refuses(RefusedShares(0.02, 0.03, 0.01), objective=loose) is None
    assert refuses(RefusedShares(0.02, 0.05, 0.01), objective=loose) is not None


def test_where_nothing_is_refused_at_other_times_the_sentence_says_so() -> None:
    assert refused_text(RefusedShares(0.3, 0.6, 0.0), 0.005).startswith(
        "60.0 % of its requests get a 4XX answer in busy hours, 0.0 % at other times"
    )


def test_few_4xx_answers_say_nothing_of_capacity() -> None:
    assert refused_text(RefusedShares(0.05, 0.05, 0.05), 0.005) == ""
    text = "6.0 % of its requests get a 4XX answer; CloudWatch does not tell whether callers err or its server refuses"
    assert refused_text(RefusedShares(0.06, 0.06, 0.06), 0.005) == f"{text} what it cannot serve (429)"
    assert refused_text(RefusedShares(0.06, 0.06, 0.06), 0.06) == "", "its owner allows as many"


def test_shares_are_those_of_the_hours_in_which_much_comes_and_of_the_others() -> None:
    half = SLOTS // 2
    found = seen([day(requests=(10.0,) * half + (1.0,) * half, refused=(144.0, 7.2))]).refused
    assert (found.busy, found.quiet, found.of_all) == (near(0.1), near(0.05), near(151.2 / 1584))
    assert seen([day(refused=(288.0, 0.0))]).refused.quiet is None, "equally much came all day"
    rare = seen([day(requests=(10.0,) * half + (0.1,) * half, refused=(144.0, 0.0))])
    assert rare.refused.quiet is None, "of 14 requests none need have been refused"
    assert seen([day()]).refused == RefusedShares()
