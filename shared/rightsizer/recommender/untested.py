"""Open questions of a candidate that was never tried: its risk without a shadow test, and what a test would tell."""

from rightsizer.domain.option import Option, Risk
from rightsizer.domain.policy import Policy
from rightsizer.recommender.candidates import CandidateType
from rightsizer.recommender.context import EvaluationContext
from rightsizer.recommender.pricing import risk_level


def untested_risk(option: Option, fit: float, fast: float, policy: Policy) -> Risk:
    """Performance risk of the option without its test. Its own `risk` counts on a test that went well.

    `fit`: 0..1 that the model starts and fits; where it does not, the deployment fails or the model runs out of memory
    under load, which is a high risk whatever the odds. `fast`: 0..1 that the type is fast enough.
    """
    return max(option.risk, Risk.HIGH if fit < 1 else Risk.VERY_LOW, risk_level(1 - fast, policy))


def test_tells(context: EvaluationContext, candidate: CandidateType, fast: float) -> str:
    """Answers of a shadow test of the candidate, as the end of "it tells"."""
    old, new = context.reference, candidate.hardware
    parts = []
    if new.accelerator_count < old.accelerator_count and candidate.fit < 1:
        parts.append(f"whether the model starts on {new.accelerator_count} of {old.accelerator_count} GPUs")
    elif candidate.fit < 1 and new.accelerator is not None:
        parts.append(f"whether the model fits {new.accelerator.usable_gib:.0f} GiB of GPU memory")
    if fast < 1 or not parts:
        parts.append(f"how fast {new.name} answers the same requests")
    return " and ".join(parts)
