"""Which options may stand in for one whose type has no capacity."""

from rightsizer.domain.change import Change, FailureClass
from rightsizer.domain.option import Option
from rightsizer.ports.evaluation import RecommendationStore


def ranking(store: RecommendationStore, change: Change) -> tuple[Option, ...]:
    """The options of the change's proposal, where automatic mode decided on it and capacity lacked; else ()."""
    if change.failure is not FailureClass.CAPACITY:
        return ()
    proposal = store.proposal(change.proposal_id)
    if proposal is None or proposal.decision is None or proposal.decision.by != "policy":
        return ()
    return proposal.recommendation.options
