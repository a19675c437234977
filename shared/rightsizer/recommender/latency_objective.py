"""Which latency must hold: what the owner declared, else what their scaling holds, else what users are used to."""

from rightsizer.domain.demand import Latency
from rightsizer.domain.endpoint import Endpoint, tracked_p95_s
from rightsizer.domain.option import Goal
from rightsizer.domain.policy import Policy


def goal_of(endpoint: Endpoint, latency: Latency, policy: Policy) -> Goal:
    """The p95 to keep, seconds: the tag, else what the owner's scaling holds, else nothing noticeably worse than now.

    Only the tag declares an objective, as automatic mode wants it.
    """
    declared = endpoint.objective
    if declared.p95_s is not None:
        return Goal(declared.p95_s, True, "tag rightsizer:p95-ms", declared.error_share)
    tracked = tracked_p95_s(endpoint.scaling)
    if tracked is not None:
        held = f"its scaling policy holds the p95 of ModelLatency at {1000 * tracked:.0f} ms"
        return Goal(tracked, False, held, declared.error_share)
    usual = max(policy.objective_factor * latency.p95_s, latency.p99_s)
    source = f"not worse than max({policy.objective_factor:g} x p95, p99) of the look-back"
    return Goal(usual, False, source, declared.error_share)
