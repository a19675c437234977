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


def propose_hours(sources: HoursSources, found: Sequence[Recommendation], now: datetime) -> list[AccountFinding]:
    """Office hours for each quiet endpoint, or why there are none. ReadError where the tags cannot be read."""
    quiet = list(quiet_endpoints(found))[:MOST_READ]
    if not quiet:
        return []
    tags = sources.account.endpoint_tags([one.ref.arn for one in quiet])
    known = {one.ref.name: said for one in quiet if not isinstance(said := tags[one.ref.arn], Reason)}
    plain = [one for one in quiet if one.ref.name in known and _may_have_hours(one, known[one.ref.name])]
    seen = _read_requests(sources, plain, known, now)
    findings: list[AccountFinding] = []
    for one in quiet:
        unread = tags[one.ref.arn]
        evidence = HoursEvidence(
            known.get(one.ref.name, {}),
            unread if isinstance(unread, Reason) else seen.get(one.ref.name, Reason(Code.OTHER_KIND, "not looked at")),
            sources.starts.get(one.ref.name, ()),
            [each for name, starts in sources.starts.items() if name != one.ref.name for each in starts],
        )
        if (finding := hours_finding(one, evidence, sources.zone)) is not None:
            findings.append(finding)
    return findings


def _may_have_hours(one: Recommendation, tags: Mapping[str, str]) -> bool:
    return HOURS_TAG not in tags and kind_refusal(one) is None and owner_refusal(one, tags) is None


def _read_requests(
    sources: HoursSources, found: Sequence[Recommendation], tags: Mapping[str, Mapping[str, str]], now: datetime
) -> dict[str, RequestTimes | Reason]:
    """The requests of whole days by the clock of the zone; endpoints with the same look-back share their reads."""
    groups: dict[int, list[Recommendation]] = defaultdict(list)
    for one in found:
        groups[evidence_days(tags[one.ref.name])].append(one)
    read: dict[str, RequestTimes | Reason] = {}
    for days, some in groups.items():
        start, end = look_back(sources.zone, days, now)
        requests = [MetricRequest(one.ref.name, one.variant, EVIDENCE) for one in some]
        try:
            for window in sources.metrics.read(requests, start, end, SLOT_S):
                read[window.endpoint] = _times_or_reason(window)
        except RightsizerError as error:
            read |= {one.ref.name: reason_of(error) for one in some if one.ref.name not in read}
    return read


def _times_or_reason(window: MetricWindow | NoMetrics) -> RequestTimes | Reason:
    """The requests of a window, or why they are not known: one that was read in part is no evidence."""
    if isinstance(window, NoMetrics):
        return window.reason
    if window.notes:
        return window.notes[0]
    silent = Reason(Code.NO_DATAPOINTS, "CloudWatch shows neither requests nor instances of it")
    return request_times(window) or silent
