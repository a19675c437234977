"""Sleep of an asynchronous endpoint, whose queue keeps what comes while no instance runs.

Callers wait for a start and lose nothing, unless their request expires sooner. How long a request may wait is said with
each request (RequestTTLSeconds, 60 s to six hours) and stands in no configuration. So the queue is judged by what
it published: ApproximateAgeOfOldestRequest and ExpiredRequests (developer guide, async-inference-monitor).
"""

from rightsizer.domain.demand import Demand
from rightsizer.domain.endpoint import Endpoint, EndpointKind
from rightsizer.domain.history import History
from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.reason import Code, Reason
from rightsizer.domain.tags import is_yes

START_S = 600.0
"""A wake-up from no instance until the first request is served: AWS's samples of components took 9 min 24 s."""
COLD_TAG = "rightsizer:cold-start-ok"
NOT_SEEN = (
    "needs your approval: ApproximateAgeOfOldestRequest was not published, so that nobody knows whether requests"
    " outlast a start in its queue"
)


def keeps_requests(endpoint: Endpoint, option: Option) -> bool:
    """Whether the option is the sleep of one variant behind a queue, which rightsizer carries out."""
    queued = endpoint.kind is EndpointKind.ASYNC and len(endpoint.variants) == 1
    return queued and option.kind is OptionKind.SCALE_TO_ZERO and option.in_place


def sleeps_already(endpoint: Endpoint) -> bool:
    """Whether its autoscaling takes the last instance of an asynchronous endpoint away while nobody calls."""
    return EndpointKind.ASYNC in endpoint.kinds and any(target.minimum == 0 for target in endpoint.scaling)


def stay_awake_by_order(endpoint: Endpoint) -> Reason | None:
    """Why its owner's tags keep an asynchronous endpoint awake; None where they say nothing against sleep."""
    text = endpoint.tags.get(COLD_TAG, "").strip()
    if text and not is_yes(text):
        return Reason(Code.NOT_OPTED_IN, f"the tag {COLD_TAG}={text} is not true, so that it stays awake")
    least = endpoint.objective.min_instances
    if least:
        return Reason(Code.NOT_OPTED_IN, f"the tag rightsizer:min-instances={least} keeps {least} running")
    return None


def expiry_refusal(demand: Demand) -> Reason | None:
    """Why requests would be lost to a start; None where none is known to expire that soon."""
    if demand.expiry_s is None or demand.expiry_s >= START_S:
        return None
    return Reason(
        Code.NOT_APPLICABLE,
        f"{demand.expired:,.0f} requests expired in its queue, on a day on which none waited longer than"
        f" {demand.expiry_s:,.0f} s: a start takes about {START_S / 60:.0f} minutes, and such requests would be lost",
    )


def unattended_refusal(demand: Demand) -> Reason | None:
    """Why automatic mode does not let it sleep by itself; None where its queue is known to keep what comes."""
    if demand.oldest_request_s is None:
        return Reason(Code.NEEDS_APPROVAL, NOT_SEEN)
    if demand.expired > 0:
        text = f"needs your approval: {demand.expired:,.0f} requests expired in its queue, and more may while it starts"
        return Reason(Code.NEEDS_APPROVAL, text)
    return None


def start_text(history: History) -> str:
    """How long a start from no instance takes: by the endpoint's own wake-ups, the account's, or AWS's samples."""
    for past, whose in ((history.endpoint, "its own wake-ups"), (history.account, "the wake-ups of this account")):
        seen = [past_change.wake_s for past_change in past if past_change.wake_s]
        if seen:
            return f"{max(1, round(max(seen) / 60))} minutes (the longest of {whose} that were measured)"
    return f"about {START_S / 60:.0f} minutes"


def wait_sentence(cold: float, requests: float, demand: Demand, history: History) -> str:
    """Who would have waited for a start, and what is known of how long a request may wait."""
    who = f"{cold:,.0f} of {requests:,.0f} requests of the look-back" if requests > 0 else "the next request"
    waits = f"{who} would have waited {start_text(history)} for an instance to start; the queue keeps them"
    if demand.oldest_request_s is None:
        return f"{waits}, unless they expire sooner (RequestTTLSeconds): the age of the oldest was not published"
    return f"{waits}, unless they expire sooner (RequestTTLSeconds): {_seen_text(demand, demand.oldest_request_s)}"


def failing_sentence(cold: float, requests: float, history: History) -> str:
    """Requests of inference components that would have failed: no queue keeps them."""
    who = f"{cold:,.0f} of {requests:,.0f} requests of the look-back would have failed"
    return f"{who} and been tried again for {start_text(history)}, until the first copy runs"


def _seen_text(demand: Demand, oldest_s: float) -> str:
    if demand.expired > 0:
        return f"{demand.expired:,.0f} did in the look-back"
    if oldest_s >= START_S:
        return f"none did, and the oldest waited {oldest_s / 60:,.0f} minutes"
    return f"none did, and the oldest waited {oldest_s:,.0f} s, which is shorter than a start"
