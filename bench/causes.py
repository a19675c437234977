"""Why nothing was done for an endpoint, in a few words that can be counted: the gate, its code, what is behind it."""

from rightsizer.domain.option import Option
from rightsizer.domain.recommendation import Recommendation

NO_ROOM = "the day has no room for another change"

SPLIT = {
    "no cheaper type fits": "no cheaper type is likely to fit",
    "one Availability Zone": "one zone only",
    "more than half": "more than half in one step",
    "likely to be fast": "only a test can tell",
}
"""Parts of sentences that tell apart what has the code risk-too-high."""


def worst_of(option: Option) -> str:
    """The resources with the option's performance risk."""
    return ", ".join(resource.value for resource, risk in option.risks.items() if risk == option.performance_risk)


def cause_of(found: Recommendation) -> str:
    """Gate and reason code; with what is behind the code where it has several meanings."""
    sentence = found.gate_reason.sentence
    behind = next((words for part, words in SPLIT.items() if part in sentence), "")
    if found.chosen_option is not None and "performance risk is" in sentence:
        behind = f"performance risk of {worst_of(found.chosen_option)}"
    return f"{found.gate.value}: {found.gate_reason.code.value}{f' ({behind})' if behind else ''}"
