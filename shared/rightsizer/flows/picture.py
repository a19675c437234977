"""Draw the two weeks of a proposal, upload the picture, and let the message show it.

Runs beside `propose`, after the message was posted. Whatever fails leaves the message as it is, without a picture, and
is logged once: nobody waits for a picture, and it is not tried again.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.message import ProposalMessage
from rightsizer.domain.proposal import MessageRef, Proposal
from rightsizer.domain.recommendation import Recommendation, WeekSignals
from rightsizer.domain.usage import MetricStatistic, MetricWindow
from rightsizer.errors import RightsizerError, WriteRefusedError
from rightsizer.ports.evaluation import MessageBook, MetricReader, MetricRequest
from rightsizer.telemetry import count, logger

HOUR_S = 3600
DRAWN_DAYS = 14
GPU = MetricStatistic("GPUUtilization", "Average")
MEMORY = MetricStatistic("GPUMemoryUtilization", "Maximum")
P95 = MetricStatistic("ModelLatency", "p95")
WAITS_S = (1.0, 2.0, 4.0, 8.0)
"""Pauses before the message is changed again: Slack looks at an upload before a message may show it."""
SHOWN = "stored"
"""In place of the address of the details page: the message has its button Details."""


class PictureStore(Protocol):
    """Proposals."""

    def proposal(self, proposal_id: str) -> Proposal | None:
        """The proposal as it stands, or None."""
        ...


class Uploads(Protocol):
    """Where pictures are uploaded: Slack."""

    def upload(self, name: str, title: str, picture: bytes) -> str:
        """The id of the uploaded file."""
        ...


class PictureBoard(Protocol):
    """The channel that holds the message."""

    def update(self, ref: MessageRef, message: ProposalMessage) -> None:
        """Let the message show what it says now."""
        ...


@dataclass(frozen=True, slots=True)
class PicturePorts:
    """Ports of the picture."""

    store: PictureStore
    book: MessageBook
    metrics: MetricReader
    catalogue: Catalogue
    draw: Callable[[Recommendation, WeekSignals], bytes]
    title: Callable[[Proposal], str]
    uploads: Uploads
    board: PictureBoard
    sleep: Callable[[float], None]
    check: Callable[[], object]
    """Raises InputError where nothing can be drawn, before anything is read."""


def show_picture(ports: PicturePorts, proposal_id: str) -> bool:
    """Draw, upload and show the picture of a proposal; whether its message shows one now."""
    try:
        return _show(ports, proposal_id)
    except RightsizerError as error:
        count(PicturesLost=1)
        logger.warning("the message stays without a picture", extra={"error": str(error), "proposal": proposal_id})
        return False


def _show(ports: PicturePorts, proposal_id: str) -> bool:
    ports.check()
    proposal, ref = ports.store.proposal(proposal_id), ports.book.message(proposal_id)
    if proposal is None or ref is None or not ref.ts:
        return False
    if ref.picture:
        return True
    series = read_series(ports, proposal.recommendation)
    if series is None:
        logger.info("there is nothing to draw", extra={"proposal": proposal_id})
        return False
    picture = ports.draw(proposal.recommendation, series)
    file = ports.uploads.upload(f"{proposal.ref.name}-two-weeks.png", ports.title(proposal), picture)
    if _has_other_option(ports, proposal):
        return False
    _update(ports, proposal, replace(ref, picture=file))
    ports.book.keep_picture(proposal_id, ref.ts, file)
    now = ports.store.proposal(proposal_id)
    if now is not None and now.revision != proposal.revision:
        ports.book.keep_picture(proposal_id, ref.ts, "")
        _update(ports, now, ref)
        return False
    if now is not None and (now.state, now.outcome) != (proposal.state, proposal.outcome):
        _update(ports, now, replace(ref, picture=file))  # `propose` may have changed it without the picture
    return True


def _has_other_option(ports: PicturePorts, proposal: Proposal) -> bool:
    """Whether somebody took another option meanwhile: `propose` has the picture of that one drawn."""
    now = ports.store.proposal(proposal.id)
    return now is not None and now.revision != proposal.revision


def _update(ports: PicturePorts, proposal: Proposal, ref: MessageRef) -> None:
    message = ProposalMessage(proposal, SHOWN, owner=ref.owner, picture=ref.picture, thread=ref.thread)
    for wait in (*WAITS_S, None):
        try:
            ports.board.update(ref, message)
        except WriteRefusedError as error:
            if error.code != "invalid_blocks" or wait is None:
                raise
            ports.sleep(wait)
        else:
            return


def read_series(ports: PicturePorts, recommendation: Recommendation) -> WeekSignals | None:
    """The hours of the look-back as they were measured; None where nothing was published."""
    evidence = recommendation.evidence
    if evidence is None:
        return None
    end = evidence.end.replace(minute=0, second=0, microsecond=0)
    start = end - timedelta(days=DRAWN_DAYS)
    metric_request = MetricRequest(recommendation.ref.name, recommendation.variant, (GPU, MEMORY, P95))
    (window,) = ports.metrics.read([metric_request], start, end, HOUR_S)
    if not isinstance(window, MetricWindow):
        return None
    option, hours = recommendation.chosen_option, DRAWN_DAYS * 24
    now = ports.catalogue.find(recommendation.instance_type)
    then = ports.catalogue.find(option.target.instance_type) if option is not None else None
    gpus, card = (now.accelerator_count, now.accelerator) if now is not None else (0, None)
    replayed = recommendation.replay.hourly_load if recommendation.replay is not None else ()
    return WeekSignals(
        start=start,
        gpu_percent=_values(window, GPU, hours, 1 / gpus if gpus else None),
        gpu_gib=_values(window, MEMORY, hours, card.memory_gib / 100 / gpus if card is not None and gpus else None),
        p95_s=_values(window, P95, hours, 1e-6),
        then_percent=tuple(None if one is None else 100 * one for one in _last(replayed, hours)),
        then_gib=then.accelerator.usable_gib if then is not None and then.accelerator is not None else None,
    )


def _values(
    window: MetricWindow, signal: MetricStatistic, hours: int, factor: float | None
) -> tuple[float | None, ...]:
    series = window.series.get(signal)
    if series is None or factor is None:
        return (None,) * hours
    hourly = _last(tuple(series.values), hours)
    return tuple(None if one is None or math.isnan(one) else one * factor for one in hourly)


def _last[T](values: Sequence[T], hours: int) -> tuple[T | None, ...]:
    """As many values as hours, the last ones; what is missing at the beginning is None."""
    kept = tuple(values)[-hours:]
    return (*(None,) * (hours - len(kept)), *kept) if kept else ()
