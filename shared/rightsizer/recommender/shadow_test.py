"""Worth of a shadow test, and the choice of the first one (docs/shadow-tests.md)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from rightsizer.domain.endpoint import Endpoint, EndpointKind, Mode
from rightsizer.domain.history import History
from rightsizer.domain.option import CHANGEABLE, Option, Risk
from rightsizer.domain.policy import Policy
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.tags import is_yes

NO_SHADOW = {
    EndpointKind.MULTI_VARIANT: "it has several variants",
    EndpointKind.MULTI_MODEL: "it hosts several models",
    EndpointKind.MARKETPLACE: "its model comes from AWS Marketplace",
    EndpointKind.SERVERLESS: "it is serverless",
    EndpointKind.ASYNC: "it is asynchronous",
    EndpointKind.SHADOW: "it has a shadow variant already",
    EndpointKind.INFERENCE_COMPONENTS: "it is made of inference components",
}
"""Endpoints that cannot have a shadow variant (SageMaker guide, shadow tests)."""


SHADOW_TAG = "rightsizer:shadow-ok"
"""Says that a request may be served twice: nothing that it writes, bills or calls does harm the second time."""
ENOUGH = 0.8
"""Share of the wanted requests with which a test is long enough."""


@dataclass(frozen=True, slots=True)
class ShadowTestCandidate:
    """An option that would save, were it fast enough and did it fit."""

    option: Option
    chance: float
    """0..1 that both hold."""
    cost: float
    """US dollars of its test."""
    share_of_wanted_requests: float = 1.0
    """0..1 that enough requests come during the test to say so."""
    untested_risk: Risk = Risk.VERY_HIGH
    """Performance risk of the option without its test."""
    tells: str = ""
    """What its test finds out, as the end of "it tells"."""

    @property
    def expected_saving(self) -> float:
        """Expected saving, USD per month."""
        return self.chance * float(self.option.saving_usd_per_month)


def shadow_test_refusal(endpoint: Endpoint) -> Reason | None:
    """Why no shadow test is planned without asking: it is impossible, or its requests would run twice. None: it is."""
    if (reason := impossible_test_reason(endpoint)) is not None:
        return reason
    if endpoint.mode is not Mode.AUTO:
        twice = f" and {SHADOW_TAG}=true (it serves each request twice)" if tag_refusal(endpoint.tags) else ""
        text = f"a shadow test needs the tag rightsizer:mode=auto{twice}; the mode is {endpoint.mode.value}"
        return Reason(Code.TEST_NOT_ALLOWED, text)
    return tag_refusal(endpoint.tags)


def impossible_test_reason(endpoint: Endpoint) -> Reason | None:
    """Why the endpoint cannot have a shadow test, whoever allows it; None where it can."""
    for kind in endpoint.kinds:
        if kind in NO_SHADOW:
            return Reason(
                Code.TEST_NOT_POSSIBLE, f"no shadow test is possible: {NO_SHADOW[kind]}; use a guarded canary"
            )
    if endpoint.kind not in CHANGEABLE:
        text = (
            f"no shadow test: it would change the endpoint, and {endpoint.kind.value} ones are changed by their owner"
        )
        return Reason(Code.TEST_NOT_POSSIBLE, text)
    return None


def declared_refusal(tags: Mapping[str, str]) -> Reason | None:
    """Why a person may not run a test either: the owner's tag is there and does not say true. None where they may."""
    said = tags.get(SHADOW_TAG)
    if said is None or tag_refusal(tags) is None:
        return None
    text = f"a shadow test serves each request twice, and the tag {SHADOW_TAG}={said.strip()[:40]} forbids that"
    return Reason(Code.TEST_NOT_ALLOWED, text)


def tag_refusal(tags: Mapping[str, str]) -> Reason | None:
    """Why the tags of an endpoint do not allow that a request is served twice, or None where they do."""
    if is_yes(tags.get(SHADOW_TAG, "")):
        return None
    text = f"a shadow test serves each request twice; only the tag {SHADOW_TAG}=true allows that"
    return Reason(Code.TEST_NOT_ALLOWED, text)


def hours_of_test(hourly: Sequence[Sequence[float]], instances: float, policy: Policy) -> float:
    """Hours of a test over the busiest hour, long enough for `test_requests` of one instance's share.

    At most `test_hours_most`. `hourly` are the requests of the 24 hours of each day, oldest first.
    """
    least, most = max(1, math.ceil(policy.test_hours)), math.floor(policy.test_hours_most)
    for hours in range(least, most):
        if share_of_wanted_requests(hourly, instances, hours, policy) >= ENOUGH:
            return float(max(hours, policy.test_hours))
    return float(max(least, most))


def share_of_wanted_requests(
    hourly: Sequence[Sequence[float]], instances: float, hours: float, policy: Policy
) -> float:
    """How much such a test would tell, 0..1: the share of `test_requests` that past days would have brought.

    Around the busiest hour of the day before: sparse requests come at other hours tomorrow. A test begins before the
    busiest hour of all days (`window.next_test_start`), which is known better than from one day.
    """
    shares = []
    length = min(math.ceil(hours), 24)
    for eve, day in pairwise(hourly):
        busiest = max(range(24), key=lambda hour: eve[hour])
        first = min(max(busiest - (length - 1) // 2, 0), 24 - length)
        shares.append(min(sum(day[first : first + length]) / max(instances, 1.0) / policy.test_requests, 1.0))
    if shares:
        return sum(shares) / len(shares)
    flat = sum(hourly[0]) * length / 24 if hourly else 0.0
    return min(flat / max(instances, 1.0) / policy.test_requests, 1.0)


def cost_of_test(option: Option, fleet_usd_per_hour: float, policy: Policy) -> float:
    """US dollars of one test: candidate hours, and the whole fleet twice during both deployments.

    Adding the shadow and taking it away are deployments; both bring up every instance that serves beside itself, for
    `provision_minutes` each (developer guide, deployment guardrails).
    """
    hours = policy.test_hours if option.test_hours is None else option.test_hours
    provision = policy.provision_minutes / 60
    return float(option.price.usd_per_hour) * (hours + provision) + 2 * provision * fleet_usd_per_hour


def choose_test(
    test_candidates: Sequence[ShadowTestCandidate],
    sure: Decimal,
    history: History,
    policy: Policy,
    asked_type: str = "",
) -> tuple[ShadowTestCandidate, Reason] | None:
    """The test with the largest expected gain over the `sure` saving, or None when none is worth its cost.

    It goes before the sure change only when its prize beats what waiting loses: P x prize > (1 + P) x sure. That of the
    type that was asked about the day before stays until another one brings the least share of the cost more: of two
    that bring as much each new day names the other first, and no approval would find its test.
    """
    if history.tests_this_month >= policy.tests_per_month:
        return None
    worth = [
        row
        for row in _worthwhile_tests(test_candidates, sure, policy)
        if _budget_refusal(row[1], history, policy) is None
    ]
    if not worth:
        return None
    gain, best = max(worth, key=lambda row: (row[0], row[1].option.target.instance_type))
    asked = next((row for row in worth if row[1].option.target.instance_type == asked_type), None)
    if asked is not None and gain - asked[0] < policy.minimum_saving_share * _cost_today(best):
        gain, best = asked
    hours = policy.test_hours if best.option.test_hours is None else best.option.test_hours
    return best, Reason(
        Code.TEST_WORTH_IT,
        f"worth a test first: it runs {hours:g} h on {best.option.target.instance_type} beside today's fleet, through"
        f" the busiest hour, costs about ${best.cost:,.2f} and brings ${gain:,.0f} a month on average"
        f" ({100 * best.chance:.0f} % likely to be fast and large enough)",
    )


def is_promising(test_candidates: Sequence[ShadowTestCandidate], sure: Decimal, policy: Policy) -> bool:
    """Whether a test would be worth its cost over the `sure` saving, were it allowed.

    The finding goes by this: what an endpoint needs does not depend on its kind, its tags or a budget of tests.
    """
    return bool(_worthwhile_tests(test_candidates, sure, policy))


def _worthwhile_tests(
    test_candidates: Sequence[ShadowTestCandidate], sure: Decimal, policy: Policy
) -> list[tuple[float, ShadowTestCandidate]]:
    """Candidates whose test wins enough over the `sure` saving, each with what it wins, USD per month."""
    found = []
    for item in test_candidates:
        gain = _expected_gain(item, sure)
        likely = item.chance >= policy.test_chance and _saving_share(item) >= policy.minimum_saving_share
        if likely and gain >= _least_gain(item, policy):
            found.append((gain, item))
    return found


def _saving_share(item: ShadowTestCandidate) -> float:
    """What the option saves, as a share of what the endpoint costs: no change is made for too little of it."""
    cost = _cost_today(item)
    return float(item.option.saving_usd_per_month) / cost if cost > 0 else 0.0


def _cost_today(item: ShadowTestCandidate) -> float:
    return float(item.option.saving_usd_per_month + item.option.usd_per_month)


def _expected_gain(item: ShadowTestCandidate, sure: Decimal) -> float:
    """What the test brings over the `sure` saving on average, USD per month."""
    return item.share_of_wanted_requests * item.chance * (float(item.option.saving_usd_per_month) - float(sure))


def _least_gain(item: ShadowTestCandidate, policy: Policy) -> float:
    """What a test has to bring on average: as much as any change has to save, and several times what it costs."""
    return max((1 + policy.test_value) * item.cost, float(policy.minimum_saving_usd))


def _budget_refusal(item: ShadowTestCandidate, history: History, policy: Policy) -> str | None:
    """Why the account has no money left for the test this month, or None; None too where its spending is not known."""
    if history.gpu_usd_per_month is None:
        return None
    budget = policy.test_budget_share * float(history.gpu_usd_per_month)
    if float(history.tests_usd_this_month) + item.cost <= budget:
        return None
    return (
        f"a shadow test would cost ${item.cost:,.2f}; the tests of this month have cost"
        f" ${history.tests_usd_this_month:,.2f} of ${budget:,.2f} ({100 * policy.test_budget_share:g} % of what GPU"
        " endpoints cost a month)"
    )


def no_test_reason(
    item: ShadowTestCandidate, sure: Decimal, endpoint: Endpoint, history: History, policy: Policy
) -> str:
    """Why the shadow test of `item` is not run now, as the end of a sentence."""
    if policy.tests_per_month == 0:
        return "shadow tests are switched off (Limits says tests_per_month: 0)"
    if (reason := impossible_test_reason(endpoint) or declared_refusal(endpoint.tags)) is not None:
        return reason.sentence
    if history.tests_this_month >= policy.tests_per_month:
        return f"{history.tests_this_month} shadow tests ran this month, {policy.tests_per_month} are allowed"
    if item.chance < policy.test_chance:
        return f"a shadow test takes a chance of {100 * policy.test_chance:.0f} % at least"
    if (share := _saving_share(item)) < policy.minimum_saving_share:
        least = f"{100 * policy.minimum_saving_share:.0f} %"
        return f"it would save {100 * share:.0f} % of the cost, and no change is made for less than {least}"
    if (spent := _budget_refusal(item, history, policy)) is not None:
        return spent
    return (
        f"a shadow test is not worth its money: it would cost ${item.cost:,.2f} and bring"
        f" ${max(_expected_gain(item, sure), 0.0):,.0f} a month on average; it has to bring"
        f" ${_least_gain(item, policy):,.0f}"
    )


def is_test_first(test: ShadowTestCandidate, sure: Decimal) -> bool:
    """Whether to test first although a sure change waits."""
    return test.expected_saving > (1 + test.chance) * float(sure)
