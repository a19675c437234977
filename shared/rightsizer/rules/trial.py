"""Whether a shadow test is worth its money, and which one first (decision.md 4.6)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from rightsizer.model.history import History
from rightsizer.model.observation import Endpoint, EndpointKind, Mode
from rightsizer.model.option import Option
from rightsizer.model.policy import Policy
from rightsizer.model.reason import Code, Reason

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


ENOUGH = 0.8
"""Share of the wanted requests with which a test is long enough."""


@dataclass(frozen=True, slots=True)
class Unsure:
    """An option that would save, were it fast enough and did it fit."""

    option: Option
    chance: float
    """0..1 that both hold."""
    telling: float = 1.0
    """0..1 that enough requests come during the test to say so."""

    @property
    def prize(self) -> float:
        """Expected saving, USD per month."""
        return self.chance * float(self.option.saving_usd_per_month)


def impossible(endpoint: Endpoint) -> Reason | None:
    """Why the endpoint cannot have a shadow test, or None."""
    for kind in endpoint.kinds:
        if kind in NO_SHADOW:
            return Reason(
                Code.TEST_NOT_POSSIBLE, f"no shadow test is possible: {NO_SHADOW[kind]}; use a guarded canary"
            )
    return None


def hours_of_test(hourly: Sequence[Sequence[float]], instances: float, policy: Policy) -> float:
    """Hours of a test over the busiest hour, long enough for `test_requests` of one instance's share.

    At most `test_hours_most`. `hourly` are the requests of the 24 hours of each day, oldest first.
    """
    least, most = max(1, math.ceil(policy.test_hours)), math.floor(policy.test_hours_most)
    for hours in range(least, most):
        if telling(hourly, instances, hours, policy) >= ENOUGH:
            return float(max(hours, policy.test_hours))
    return float(max(least, most))


def telling(hourly: Sequence[Sequence[float]], instances: float, hours: float, policy: Policy) -> float:
    """How much such a test would tell, 0..1: the share of `test_requests` that past days would have brought.

    As it is done, each day around the busiest hour of the day before: sparse requests come at other hours tomorrow.
    """
    shares = []
    length = min(math.ceil(hours), 24)
    for eve, day in pairwise(hourly) if len(hourly) > 1 else ():
        busiest = max(range(24), key=lambda hour: eve[hour])
        first = min(max(busiest - (length - 1) // 2, 0), 24 - length)
        shares.append(min(sum(day[first : first + length]) / max(instances, 1.0) / policy.test_requests, 1.0))
    if shares:
        return sum(shares) / len(shares)
    flat = sum(hourly[0]) * length / 24 if hourly else 0.0
    return min(flat / max(instances, 1.0) / policy.test_requests, 1.0)


def cost_of_test(option: Option, policy: Policy) -> float:
    """USD of one test: one instance of the candidate for the test's hours and its provisioning."""
    hours = float(option.facts.get("test hours", policy.test_hours))
    return float(option.price.usd_per_hour) * (hours + policy.provision_minutes / 60)


def worth_testing(
    unsure: Sequence[Unsure], sure: Decimal, history: History, policy: Policy
) -> tuple[Unsure, Reason] | None:
    """The test with the largest expected gain over the `sure` saving, or None when none is worth its cost.

    It goes before the sure change only when its prize beats what waiting loses: P x prize > (1 + P) x sure.
    """
    if not policy.tests or history.tests_this_month >= policy.tests_per_month:
        return None
    worth = []
    for item in unsure:
        gain = item.telling * item.chance * (float(item.option.saving_usd_per_month) - float(sure))
        cost = cost_of_test(item.option, policy)
        if item.chance >= policy.test_chance and gain - cost >= policy.test_value * cost:
            worth.append((gain, item, cost))
    if not worth:
        return None
    gain, best, cost = max(worth, key=lambda row: (row[0], row[1].option.target.instance_type))
    hours = best.option.facts.get("test hours", f"{policy.test_hours:g}")
    return best, Reason(
        Code.TEST_WORTH_IT,
        f"a {hours} h shadow test of {best.option.target.instance_type} costs about USD {cost:.2f} and wins"
        f" USD {gain:.0f} per month on average ({100 * best.chance:.0f} % that it is fast enough and fits)",
    )


def not_planned(item: Unsure, sure: Decimal, endpoint: Endpoint, history: History, policy: Policy) -> str:
    """Why the shadow test of `item` is not run now, as the end of a sentence."""
    if not policy.tests:
        return "shadow tests are switched off"
    if (reason := impossible(endpoint)) is not None:
        return reason.sentence
    if endpoint.mode is not Mode.AUTO:
        return f"a shadow test needs the tag rightsizer:mode=auto, it says {endpoint.mode.value}"
    if history.tests_this_month >= policy.tests_per_month:
        return f"{history.tests_this_month} shadow tests ran this month, {policy.tests_per_month} are allowed"
    if item.chance < policy.test_chance:
        return f"a shadow test is run from {100 * policy.test_chance:.0f} % on"
    cost = cost_of_test(item.option, policy)
    gain = item.telling * item.chance * (float(item.option.saving_usd_per_month) - float(sure))
    return (
        f"a shadow test would cost USD {cost:.2f} and win USD {max(gain, 0.0):.0f} per month on average, which is less"
        f" than {1 + policy.test_value:g} times its cost"
    )


def before_sure(test: Unsure, sure: Decimal) -> bool:
    """Whether to test first although a sure change waits."""
    return test.prize > (1 + test.chance) * float(sure)
