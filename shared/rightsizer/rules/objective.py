"""Which latency must hold: what the owner declared, else what users are used to."""

from rightsizer.model.candidate import Goal
from rightsizer.model.demand import Latency
from rightsizer.model.observation import Objective
from rightsizer.model.policy import Policy


def goal_of(declared: Objective, latency: Latency, policy: Policy) -> Goal:
    """The p95 to keep, seconds. Without a declared objective nothing may become noticeably worse."""
    if declared.p95_s is not None:
        return Goal(declared.p95_s, True, "tag rightsizer:p95-ms")
    usual = max(policy.objective_factor * latency.p95_s, latency.p99_s)
    return Goal(usual, False, f"not worse than max({policy.objective_factor:g} x p95, p99) of the look-back")
