"""Fold what a report reads: thousands of judgements, of which the largest alone are shown with all they have."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import batched

from rightsizer.domain.proposal import Proposal
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import SHOWN

LINES = 1000
"""Judgements in one file of JSON lines: about 27 MB before it is compressed."""


def slim(one: Recommendation) -> Recommendation:
    """The judgement without what no total, row or sentence of a report needs."""
    options = tuple(replace(option, facts={}, notes=()) for option in one.options[:1])
    replay = replace(one.replay, hourly_load=()) if one.replay else None
    evidence = replace(one.evidence, figures={}) if one.evidence else None
    return replace(one, options=options, replay=replay, evidence=evidence, excluded=())


def folded(found: Iterable[Recommendation]) -> list[Recommendation]:
    """The judgements, slim; the course of the requests stays with the largest alone, which are drawn."""
    kept: list[Recommendation] = []
    largest: list[tuple[Decimal, Decimal, int]] = []
    for number, one in enumerate(found):
        kept.append(slim(one))
        entry = (one.identified_usd_per_month, one.usd_per_month or Decimal(0), number)
        if len(largest) < SHOWN:
            heapq.heappush(largest, entry)
        else:
            smallest = heapq.heappushpop(largest, entry)[2]
            kept[smallest] = replace(kept[smallest], hourly_requests=())
    return sorted(kept, key=lambda one: one.ref.name)


def folded_proposals(found: Iterable[Proposal]) -> list[Proposal]:
    """The proposals with slim judgements; the course of the requests stays with the largest alone."""
    asked = list(_without_facts(found))
    drawn = {id(one) for one in heapq.nlargest(SHOWN, asked, key=_worth)}
    return [one if id(one) in drawn else _undrawn(one) for one in asked]


def _without_facts(found: Iterable[Proposal]) -> Iterator[Proposal]:
    for one in found:
        yield replace(one, recommendation=slim(one.recommendation))


def _worth(one: Proposal) -> Decimal:
    return one.recommendation.identified_usd_per_month


def _undrawn(one: Proposal) -> Proposal:
    return replace(one, recommendation=replace(one.recommendation, hourly_requests=()))


def lines(found: Iterable[Recommendation], dumped: Callable[[Recommendation], str]) -> Iterator[bytes]:
    """The judgements as JSON lines, in files of `LINES`."""
    for some in batched(map(dumped, found), LINES):
        yield "".join(f"{one}\n" for one in some).encode()
