"""The finding: too little data, idle, or starving. What remains is over-provisioned or right."""

from rightsizer.model.candidate import Goal
from rightsizer.model.demand import Demand, Latency
from rightsizer.model.observation import Endpoint, EndpointKind
from rightsizer.model.policy import Policy
from rightsizer.model.reason import Code, Reason


def too_little(endpoint: Endpoint, demand: Demand, policy: Policy) -> Reason | None:
    """Why the datapoints do not allow a judgement, or None. Missing is unknown, never idle (law 1)."""
    if endpoint.status != "InService":
        return Reason(Code.NOT_IN_SERVICE, f"its status is {endpoint.status}; only InService endpoints are judged")
    if demand.gpu_mean is None:
        return Reason(
            Code.NO_GPU_METRICS,
            f"no GPU utilisation was published in {demand.days:.1f} days; low use cannot be told from no data",
        )
    if demand.days < 0.5:
        return Reason(
            Code.TOO_FEW_DAYS, f"only {24 * demand.days:.0f} hours of datapoints since its configuration changed"
        )
    if demand.valid_share < policy.valid_share * min(demand.days, 1.0) and demand.days >= 1:
        return Reason(
            Code.TOO_MANY_GAPS,
            f"{100 * demand.valid_share:.0f} % of the periods have GPU datapoints,"
            f" {100 * policy.valid_share:.0f} % are needed",
        )
    return None


def idle(endpoint: Endpoint, demand: Demand, policy: Policy) -> Reason | None:
    """The proof of idleness, or None: utilisation datapoints, no request, no work on the GPU."""
    if endpoint.kind is EndpointKind.ASYNC and demand.requests > 0:
        return None
    if demand.silent_days < policy.idle_days or demand.requests > 0:
        return None
    peak = demand.gpu_peak or 0.0
    if peak > policy.cpu_class_share:
        return None
    return Reason(
        Code.IDLE,
        f"no request for {demand.silent_days} days while utilisation was published ({100 * demand.valid_share:.0f} %"
        f" of the periods), GPU at most {100 * peak:.1f} %",
    )


def starving(demand: Demand, latency: Latency, goal: Goal, policy: Policy) -> Reason | None:
    """Evidence that users suffer now, or None: latency against a declared objective, or GPU memory at its end.

    High utilisation alone proves nothing: a duty cycle of 99 % can be 33 to 50 % of the cores.
    """
    if goal.declared and latency.p95_s > goal.p95_s:
        return Reason(
            Code.UNDER_PROVISIONED,
            f"p95 is {latency.p95_s:.2f} s, above the objective of {goal.p95_s:.2f} s ({goal.source})",
        )
    if demand.error_share > policy.error_share and (demand.gpu_peak or 0) > 0.95:
        return Reason(
            Code.UNDER_PROVISIONED,
            f"{100 * demand.error_share:.2f} % of the requests failed while the GPU was"
            f" {100 * (demand.gpu_peak or 0):.0f} % busy",
        )
    return None
