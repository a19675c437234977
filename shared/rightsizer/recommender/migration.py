"""Phases of a migration to Inferentia or Trainium, for endpoints and for training, with what leads on to the next.

An option of an endpoint and the advice before anything runs tell the same phases. Source: docs/advise-rules.md, N4.
"""

from rightsizer.domain.option import Option, OptionKind
from rightsizer.domain.price import CENT, HOURS_PER_MONTH

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


def migration_phases(option: Option) -> dict[str, str]:
    """The phases of an option on Inferentia or Trainium by name; empty for every other option.

    Each with its cost in US dollars and what has to hold before the next. Both fleets run during the roll-out.
    """
    family = option.target.instance_type.removeprefix("ml.")
    if option.kind is not OptionKind.OTHER_ARCHITECTURE or not family.startswith(("inf", "trn")):
        return {}
    pilot = (option.price.usd_per_hour * 24 * PILOT_DAYS).quantize(CENT)
    week = (option.usd_per_month * 24 * 7 / HOURS_PER_MONTH).quantize(CENT)
    leads_on = (
        "costs no instance; go on when all of them are supported",
        f"one {option.price.instance_type} beside today's fleet for {PILOT_DAYS} days costs USD {pilot:,.2f}; go on"
        " when the answers agree and a request costs less",
        f"each week in which both fleets run costs USD {week:,.2f} more; done when a month was stable",
    )
    named = (phase.split(": ", 1) for phase in SERVING_PHASES)
    told = enumerate(zip(named, leads_on, strict=True), start=1)
    return {f"phase {number}, {name}": f"{does}; {then}" for number, ((name, does), then) in told}
