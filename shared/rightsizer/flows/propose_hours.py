"""Office hours proposed from evidence: read tags and past requests of endpoints that look quiet, and judge them.

Only endpoints whose recommendation shows quiet hours are read, and of those alone that may have office hours. Nothing
is written: the owner sets the tag.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rightsizer.domain.account_finding import AccountFinding
from rightsizer.domain.office_hours import HOURS_TAG
from rightsizer.domain.reason import Code, Reason, reason_of
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.usage import SLOT_S, MetricWindow, NoMetrics
from rightsizer.errors import RightsizerError
from rightsizer.ports.account import AccountReader
from rightsizer.ports.evaluation import MetricReader, MetricRequest
from rightsizer.reporting.hours_finding import (
    HoursEvidence,
    evidence_days,
    hours_finding,
    kind_refusal,
    owner_refusal,
    quiet_endpoints,
)
from rightsizer.reporting.hours_fit import EVIDENCE, RequestTimes, look_back, request_times

MOST_READ = 100
"""Quiet endpoints that are looked at, the dearest first: two metrics each."""


@dataclass(frozen=True, slots=True)
class HoursSources:
    """Where office hours are proposed from."""

    account: AccountReader
    metrics: MetricReader
    zone: str = "UTC"
    """IANA name of the time zone of the hours."""
    starts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Seconds of measured starts, by endpoint."""


def propose_hours(
    sources: HoursSources, recommendations: Sequence[Recommendation], now: datetime
) -> list[AccountFinding]:
    """Office hours for each quiet endpoint, or why there are none. ReadError where the tags cannot be read."""
    quiet = list(quiet_endpoints(recommendations))[:MOST_READ]
    if not quiet:
        return []
    tags = sources.account.endpoint_tags([recommendation.ref.arn for recommendation in quiet])
    known = {
        recommendation.ref.name: said
        for recommendation in quiet
        if not isinstance(said := tags[recommendation.ref.arn], Reason)
    }
    plain = [
        recommendation
        for recommendation in quiet
        if recommendation.ref.name in known and _may_have_hours(recommendation, known[recommendation.ref.name])
    ]
    seen = _read_requests(sources, plain, known, now)
    findings: list[AccountFinding] = []
    for recommendation in quiet:
        unread = tags[recommendation.ref.arn]
        evidence = HoursEvidence(
            known.get(recommendation.ref.name, {}),
            unread
            if isinstance(unread, Reason)
            else seen.get(recommendation.ref.name, Reason(Code.OTHER_KIND, "not looked at")),
            sources.starts.get(recommendation.ref.name, ()),
            [each for name, starts in sources.starts.items() if name != recommendation.ref.name for each in starts],
        )
        if (finding := hours_finding(recommendation, evidence, sources.zone)) is not None:
            findings.append(finding)
    return findings


def _may_have_hours(recommendation: Recommendation, tags: Mapping[str, str]) -> bool:
    return (
        HOURS_TAG not in tags and kind_refusal(recommendation) is None and owner_refusal(recommendation, tags) is None
    )


def _read_requests(
    sources: HoursSources,
    recommendations: Sequence[Recommendation],
    tags: Mapping[str, Mapping[str, str]],
    now: datetime,
) -> dict[str, RequestTimes | Reason]:
    """The requests of whole days by the clock of the zone; endpoints with the same look-back share their reads."""
    groups: dict[int, list[Recommendation]] = defaultdict(list)
    for recommendation in recommendations:
        groups[evidence_days(tags[recommendation.ref.name])].append(recommendation)
    read: dict[str, RequestTimes | Reason] = {}
    for days, some in groups.items():
        start, end = look_back(sources.zone, days, now)
        requests = [MetricRequest(recommendation.ref.name, recommendation.variant, EVIDENCE) for recommendation in some]
        try:
            for window in sources.metrics.read(requests, start, end, SLOT_S):
                read[window.endpoint] = _times_or_reason(window)
        except RightsizerError as error:
            read |= {
                recommendation.ref.name: reason_of(error)
                for recommendation in some
                if recommendation.ref.name not in read
            }
    return read


def _times_or_reason(window: MetricWindow | NoMetrics) -> RequestTimes | Reason:
    """The requests of a window, or why they are not known: one that was read in part is no evidence."""
    if isinstance(window, NoMetrics):
        return window.reason
    if window.notes:
        return window.notes[0]
    silent = Reason(Code.NO_DATAPOINTS, "CloudWatch shows neither requests nor instances of it")
    return request_times(window) or silent
