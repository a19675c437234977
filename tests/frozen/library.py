"""Everything that this package imports from the library and from its tests: the one file to edit when modules move."""

from rightsizer import bootstrap, wire
from rightsizer.domain.option import OptionKind, ScaleIn, Target, VariantTarget
from rightsizer.domain.proposal import Decision, Proposal, ProposalState, change_id_of
from rightsizer.domain.recommendation import Recommendation
from rightsizer.recommender.proposal import proposal_id
from rightsizer.terminal.run import run
from tests import samples
from tests.labelled import judged as recommendation_of
from tests.labelled import read as read_case

__all__ = [
    "Decision",
    "OptionKind",
    "Proposal",
    "ProposalState",
    "Recommendation",
    "ScaleIn",
    "Target",
    "VariantTarget",
    "bootstrap",
    "change_id_of",
    "proposal_id",
    "read_case",
    "recommendation_of",
    "run",
    "samples",
    "wire",
]
