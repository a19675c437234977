"""A new asynchronous endpoint, whose queue keeps requests at zero instances."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rightsizer.dimensions.dimension import Elsewhere
from rightsizer.domain.demand import Demand
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.option import Effort, Option, OptionKind, Risk, RiskResource, Target, new_option
from rightsizer.domain.price import Price
from rightsizer.domain.reason import Code, Reason, seconds_text
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.tags import is_yes
from rightsizer.recommender.dimension import OfferAnswer, Restart
from rightsizer.recommender.other_endpoint import Bill, bill_of, no_saving_reason

if TYPE_CHECKING:
    from rightsizer.domain.policy import Policy
    from rightsizer.recommender.context import EvaluationContext

ASYNC_TAG = "rightsizer:async-ok"
ASYNC_TIMEOUT_MINUTES = 15
ASYNC_CALLERS = (
    "call InvokeEndpointAsync of a new endpoint with the input in S3 (inline up to 128,000 bytes), and read the answer"
    " from S3 or wait for its SNS notice"
)


class Asynchronous(Elsewhere):
    """For long requests whose callers can wait; its owner makes the endpoint."""

    kinds = (OptionKind.ASYNC,)
    does = "become an asynchronous endpoint"
    back = "sends the callers back to this endpoint, as long as it is kept"
    applies_to = frozenset()
    """Its callers have to change."""
    restart = Restart.NEW_ENDPOINT

    def offer(self, context: EvaluationContext, recommendation: Recommendation) -> Iterable[OfferAnswer]:
        """An endpoint that sleeps between bursts, where the tag says that callers can wait."""
        from rightsizer.recommender.scale_to_zero import idle_time

        if context.endpoint.kind is EndpointKind.ASYNC:
            return [Reason(Code.NOT_APPLICABLE, "its callers use it asynchronously already")]
        tag = context.endpoint.tags.get(ASYNC_TAG, "")
        asleep = idle_time(context.days, ASYNC_TIMEOUT_MINUTES).asleep_share if tag else 0.0
        days = len({d.day for d in context.days})
        reason = async_refusal(tag, context.latency.p95_s, asleep, ASYNC_TIMEOUT_MINUTES, days, context.policy)
        if reason is not None:
            return [reason]
        count = context.variant.current_count
        bill = bill_of(context, context.price, context.instances * (1 - asleep), count, 0.0)
        if bill.saving <= 0:
            return [no_saving_reason(context, "sleeping")]
        return [async_option((context.runs.name, count), context.price, bill, context.demand, asleep)]


def async_refusal(tag: str, p95_s: float, asleep: float, minutes: int, days: int, policy: Policy) -> Reason | None:
    """Why asynchronous inference is no option, or None. `asleep`: share of the time that it would be at zero."""
    if p95_s <= policy.async_from_s:
        sentence = f"p95 is {seconds_text(p95_s)}; asynchronous calls are for requests above {policy.async_from_s:g} s"
        return Reason(Code.NOT_APPLICABLE, sentence)
    if not is_yes(tag):
        sentence = f"p95 is {p95_s:.1f} s, but no tag {ASYNC_TAG}=true says that its callers can wait for their answers"
        return Reason(Code.NOT_OPTED_IN, sentence)
    if asleep <= 0:
        sentence = f"no pause of {minutes} minutes in {days} days: it would never sleep and cost the same"
        return Reason(Code.NOT_CHEAPER, sentence)
    return None


def async_option(runs: tuple[str, int], price: Price, bill: Bill, demand: Demand, asleep: float) -> Option:
    """A new asynchronous endpoint of the same type that sleeps between bursts; its queue keeps what comes meanwhile."""
    hour = 60 / ASYNC_TIMEOUT_MINUTES
    return new_option(
        OptionKind.ASYNC,
        Target(runs[0], runs[1], minimum=0, idle_minutes=ASYNC_TIMEOUT_MINUTES),
        price,
        bill,
        demand.confidence,
        in_place=False,
        restarts=True,
        risks={RiskResource.LATENCY: Risk.MEDIUM},
        effort=Effort.HIGH,
        client_change=ASYNC_CALLERS,
        notes=(f"at zero {100 * asleep:.0f} % of the look-back, after {ASYNC_TIMEOUT_MINUTES} silent minutes",),
        facts={
            "asleep": f"{100 * asleep:.0f} %",
            "break-even": f"no longer cheaper from {hour:g} requests per hour evenly spread day and night, today"
            f" {3600 * demand.load.mean_rate:.1f} per hour in bursts",
            "needs": "a policy on ApproximateBacklogSizePerInstance and one on HasBacklogWithoutCapacity to wake it",
        },
        not_checked=(
            "the size of inputs and answers (at most 1 GB) and the longest request (at most 1 hour)",
            "how long an instance takes to start: the first request of a burst waits for it",
            "how long both endpoints run until every caller has moved",
        ),
    )
