"""What a person typed in place of an id: the name of an endpoint, or the beginning of an id.

A whole id is taken as it is, without a look at the table. InputError names the candidates where several fit.
"""

import re
from collections.abc import Callable, Collection, Sequence

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
    known = sorted(read(), key=lambda one: one.created_at, reverse=True)
    named = [one for one in known if one.ref.name == typed]
    if named:
        found = [one for one in named if one.state in preferred] or named[:1]
    else:
        found = [one for one in known if len(typed) >= SHORTEST and one.id.startswith(typed)]
    if len(found) > 1:
        raise InputError(f"{doing}: {typed!r} fits several; give more of the id: {_listed(found)}")
    if not found:
        open_ones = [one for one in known if one.state in preferred]
        waiting = f"; these can be named: {_listed(open_ones)}" if open_ones else ""
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
    known = sorted((one for one in everything if one.change_id), key=lambda one: one.created_at, reverse=True)
    named = [one for one in known if one.ref.name == typed]
    if named:
        found = [one for one in named if one.state in STOPPABLE] or named[:1]
    else:
        found = [one for one in known if len(typed) >= SHORTEST and one.change_id.startswith(typed)]
    if len(found) > 1:
        raise InputError(f"{doing}: {typed!r} fits several; give more of the id: {_listed(found, changes=True)}")
    if not found and typed in {one.ref.name for one in everything}:
        raise InputError(f"{doing}: no change of {typed} has begun; rightsizer history {typed} tells what was decided")
    return found[0].change_id if found else typed


def _listed(found: Sequence[Proposal], *, changes: bool = False) -> str:
    """Ids with their endpoint and what each would do, the newest first."""
    rows = [_one(one, one.change_id if changes else one.id) for one in found[:SHOWN]]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(rows) + more


def _one(one: Proposal, shown: str) -> str:
    option = one.recommendation.chosen_option
    what = f", {sentences.change(option)}" if option else ""
    return one_line(f"{shown} ({one.ref.name}, {one.state.value}{what})")
