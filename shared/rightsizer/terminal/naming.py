"""What a person typed in place of an id: the name of an endpoint, or the beginning of an id.

A whole id is taken as it is, without a look at the table. InputError names the candidates where several fit.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches

from rightsizer.domain.plan import order_command
from rightsizer.domain.proposal import STOPPABLE, Proposal, ProposalState
from rightsizer.domain.reason import one_line
from rightsizer.errors import InputError
from rightsizer.render import sentences

WHOLE_PROPOSAL = re.compile("p-(?:[0-9a-f]{16}|[0-9a-f]{20})")
"""An id has 20 digits; so does no beginning that a person would type, and 16 are taken as an id too."""
WHOLE_CHANGE = re.compile("c-[0-9a-f]{16}")
SHORTEST = 3
"""Characters of a beginning that is looked for: ``p-`` alone would fit every id."""
SHOWN = 12
"""Candidates that an answer lists."""
WAITING = frozenset({ProposalState.PENDING})
REJECTABLE = WAITING | {ProposalState.APPROVED}

type ReadProposals = Callable[[], Sequence[Proposal]]


def named_proposal(typed: str, doing: str, read: ReadProposals, preferred: Collection[ProposalState] = WAITING) -> str:
    """The id of the one proposal that is meant.

    Of an endpoint with several proposals, those in a `preferred` state count alone where there is one. Where none is,
    the endpoint's newest proposal is meant, so that the answer says how it stands.
    """
    if WHOLE_PROPOSAL.fullmatch(typed):
        return typed
    proposals = sorted(read(), key=lambda proposal: proposal.created_at, reverse=True)
    named = [proposal for proposal in proposals if proposal.ref.name == typed]
    if named:
        found = [proposal for proposal in named if proposal.state in preferred] or named[:1]
    else:
        found = [proposal for proposal in proposals if len(typed) >= SHORTEST and proposal.id.startswith(typed)]
    if len(found) > 1:
        raise InputError(f"{doing}: {typed!r} fits several; give more of the id: {_listed(found)}")
    if not found:
        meant = did_you_mean(typed, (proposal.ref.name for proposal in proposals))
        open_ones = [proposal for proposal in proposals if proposal.state in preferred and not meant]
        waiting = f"; these can be named: {_listed(open_ones)}" if open_ones else meant
        if len(typed) < SHORTEST:
            raise InputError(f"{doing}: {typed!r} is too short; give at least {SHORTEST} characters of the id{waiting}")
        raise InputError(
            f"{doing}: there is no such proposal: {typed!r} is no endpoint that has one, and no id begins so{waiting}"
        )
    return found[0].id


def named_change(typed: str, doing: str, read: ReadProposals) -> str:
    """The id of the one change that is meant.

    What fits no endpoint and no change is returned as it is; an endpoint without a change is an InputError. Of an
    endpoint with several changes, those that can be taken back count alone.
    """
    if WHOLE_CHANGE.fullmatch(typed):
        return typed
    everything = read()
    proposals = sorted(
        (proposal for proposal in everything if proposal.change_id),
        key=lambda proposal: proposal.created_at,
        reverse=True,
    )
    named = [proposal for proposal in proposals if proposal.ref.name == typed]
    if named:
        found = [proposal for proposal in named if proposal.state in STOPPABLE] or named[:1]
    else:
        found = [proposal for proposal in proposals if len(typed) >= SHORTEST and proposal.change_id.startswith(typed)]
    if len(found) > 1:
        raise InputError(f"{doing}: {typed!r} fits several; give more of the id: {_listed(found, changes=True)}")
    if not found and typed in {proposal.ref.name for proposal in everything}:
        region = next(proposal.ref.region for proposal in everything if proposal.ref.name == typed)
        history = order_command("history", typed, region)
        raise InputError(f"{doing}: no change of {typed} has begun; {history} tells what was decided")
    return found[0].change_id if found else typed


def did_you_mean(typed: str, names: Iterable[str]) -> str:
    """The names that begin so, else the few that are spelt alike, in brackets; empty where none is."""
    known = sorted(set(names))
    alike = [name for name in known if name.startswith(typed)] if len(typed) >= SHORTEST else []
    alike = alike or get_close_matches(typed, known)
    return f" (did you mean {', '.join(map(one_line, alike[:SHOWN]))}?)" if alike else ""


def _listed(proposals: Sequence[Proposal], *, changes: bool = False) -> str:
    """Ids with their endpoint and what each would do, the newest first."""
    rows = [_one(proposal, proposal.change_id if changes else proposal.id) for proposal in proposals[:SHOWN]]
    more = f" and {len(proposals) - SHOWN} more" if len(proposals) > SHOWN else ""
    return "; ".join(rows) + more


def _one(proposal: Proposal, shown: str) -> str:
    option = proposal.recommendation.chosen_option
    what = f", {sentences.change(option)}" if option else ""
    return one_line(f"{shown} ({proposal.ref.name}, {proposal.state.value}{what})")
