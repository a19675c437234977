"""Phases of a migration to Inferentia or Trainium, for endpoints and for training, with what leads on to the next.

An option of an endpoint and the advice before anything runs tell the same phases. Source: docs/advise-rules.md, N4.
"""

from decimal import Decimal

from rightsizer.domain.price import CENT, Price

PILOT_DAYS = 7
"""Days of the pilot that are priced; an assumption: a week has every day of the week."""
SERVING_PHASES = (
    "assess: check that Neuron supports every operator and the precision",
    "pilot: compile, deploy on one instance, compare accuracy, latency and requests a second",
    "roll out: move traffic step by step and keep the GPU variant to fall back on",
)
TRAINING_PHASES = (
    "assess: check that Neuron supports every operator of the model",
    "pilot: one small run, same quality, cost of the run compared",
    "roll out: jobs that matter least first, and GPU capacity kept to fall back on",
)


def serving_phases(price: Price, switch_usd: Decimal) -> dict[str, str]:
    """The phases of an endpoint's migration by name, each with its cost and what has to hold before the next."""
    pilot = (price.usd_per_hour * 24 * PILOT_DAYS).quantize(CENT)
    leads_on = (
        "costs no instance; go on when all of them are supported",
        f"one {price.instance_type} beside today's fleet for {PILOT_DAYS} days costs USD {pilot:,.2f}; go on when the"
        " answers agree and a request costs less",
        f"both fleets run meanwhile, about USD {switch_usd:,.2f}; done when a month was stable",
    )
    named = (phase.split(": ", 1) for phase in SERVING_PHASES)
    told = zip(named, leads_on, strict=True)
    return {f"phase {number}, {name}": f"{does}; {then}" for number, ((name, does), then) in enumerate(told, start=1)}
