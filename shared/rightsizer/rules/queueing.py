"""How many workers a load needs, and how long requests wait for one."""

import math

from rightsizer.model.candidate import Fleet
from rightsizer.model.policy import Policy

MAXIMUM = 2000


def erlang_c(workers: int, offered: float) -> float:
    """Probability that a request waits, for `offered` Erlangs on `workers` servers; 1 when they cannot carry it."""
    if offered <= 0:
        return 0.0
    if offered >= workers:
        return 1.0
    blocked = 1.0
    for k in range(1, workers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    return workers * blocked / (workers - offered * (1 - blocked))


def waiting(workers: int, offered: float, service_s: float, dispersion: float, tail: float) -> float:
    """The (1 - tail) quantile of the waiting time in seconds, one central queue; infinite when overloaded."""
    if offered >= workers:
        return math.inf
    chance = erlang_c(workers, offered)
    if chance <= tail:
        return 0.0
    return service_s * dispersion / (workers - offered) * math.log(chance / tail)


def random_waiting(workers: int, offered: float, service_s: float, variation: float, dispersion: float) -> float:
    """Mean waiting in seconds behind random routing: one M/G/1 queue per worker; infinite when overloaded."""
    rho = offered / workers
    if rho >= 1:
        return math.inf
    return rho * service_s * dispersion * (1 + variation) / (2 * (1 - rho))


def smallest_fleet(
    rate: float,
    service_s: float,
    workers_each: int,
    room_s: float,
    dispersion: float,
    variation: float,
    least_outstanding: bool,
    policy: Policy,
) -> Fleet | None:
    """The fewest instances that carry `rate` with p95 waiting within `room_s`; None when no count does.

    `workers_each` is how many requests an instance serves at once. Random routing is judged queue by queue.
    """
    if room_s < 0 or not math.isfinite(service_s):
        return None
    offered = rate * service_s
    count = 1
    while count <= MAXIMUM:
        workers = count * workers_each
        rho = policy.rho_many if workers > 1 and least_outstanding else policy.rho_one
        if offered / workers <= rho:
            if least_outstanding or workers == 1:
                wait = waiting(workers, offered, service_s, dispersion, policy.waiting_tail)
            else:
                wait = 3 * random_waiting(workers, offered, service_s, variation, dispersion)
            if wait <= room_s:
                return Fleet(count, wait, offered / workers)
            if offered / workers < 0.001:
                return None
        count = max(count + 1, math.ceil(offered / rho / workers_each)) if offered / workers > rho else count + 1
    return None
