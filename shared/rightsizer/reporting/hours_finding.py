"""Office hours proposed from evidence, as advice of one endpoint: the tag, the saving, who would have met the door.

The program sets no tag. Where hours could not be applied anyway, the finding says why and saves nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rightsizer.domain.account_finding import LEAST_USD, AccountFinding, AccountFindingCode, FindingItem
from rightsizer.domain.endpoint import EndpointKind, Mode
from rightsizer.domain.environment import Environment, environment_of_tags
from rightsizer.domain.hardware import is_scarce
from rightsizer.domain.office_hours import ALWAYS_OPEN, FALLBACK_TAG, FIRST_LEAD, HOURS_TAG
from rightsizer.domain.ownership import owner_of
from rightsizer.domain.price import CENT
from rightsizer.domain.reason import Code, Reason, count
from rightsizer.domain.recommendation import Finding, Recommendation
from rightsizer.reporting.hours_fit import (
    DEVELOPMENT_DAYS,
    EVIDENCE_DAYS,
    FittedHours,
    RequestTimes,
    fit_hours,
    zone_of,
)

QUIET_SHARE = 0.15
"""Share of the hours without a request from which an endpoint is looked at: five hours of each night are more."""
LEAST_SHARE = Decimal("0.10")
"""Of its cost that hours must save: less is what a bill differs by from month to month."""
OF_KINDS: Mapping[EndpointKind, str] = {
    EndpointKind.ASYNC: "it is asynchronous: it may scale to zero while its queue is empty; a delete drops the queue",
    EndpointKind.SERVERLESS: "it is serverless and costs nothing while nobody calls",
    EndpointKind.INFERENCE_COMPONENTS: "it holds inference components, which scale to zero without a delete",
    EndpointKind.RESERVED: "it runs on reserved capacity, which is paid at night too",
}


@dataclass(frozen=True, slots=True)
class HoursEvidence:
    """Everything that hours are proposed from, of one endpoint."""

    tags: Mapping[str, str]
    seen: RequestTimes | Reason
    """Whole days by the clock of the zone, as many as `evidence_days` asks for; a reason where they were not read."""
    starts: Sequence[float] = ()
    """Seconds of its own starts after stopped hours."""
    other_starts: Sequence[float] = ()
    """Seconds of starts of the account's other endpoints after stopped hours."""


def quiet_endpoints(recommendations: Iterable[Recommendation]) -> Iterator[Recommendation]:
    """Endpoints with hours without a request in their recommendation's look-back, the dearest first.

    Idle endpoints have a finding of their own, and of one tagged ``off`` nothing is said.
    """
    quiet = [
        recommendation
        for recommendation in recommendations
        if recommendation.mode is not Mode.OFF
        and recommendation.finding is not Finding.IDLE
        and _is_quiet(recommendation)
    ]
    yield from sorted(
        quiet, key=lambda recommendation: (-(recommendation.usd_per_month or Decimal(0)), recommendation.ref.name)
    )


def _is_quiet(recommendation: Recommendation) -> bool:
    known = [calls for calls in recommendation.hourly_requests if calls is not None]
    return any(known) and known.count(0) >= QUIET_SHARE * len(known)


def evidence_days(tags: Mapping[str, str]) -> int:
    """Days without a request outside of the hours that the endpoint's environment asks for."""
    environment, _ = environment_of_tags(tags)
    return DEVELOPMENT_DAYS if environment is Environment.DEVELOPMENT else EVIDENCE_DAYS


def kind_refusal(recommendation: Recommendation) -> Reason | None:
    """Why an endpoint of this kind gets no office hours, whatever its requests are."""
    if recommendation.kind is EndpointKind.REAL_TIME and not recommendation.beside:
        return None
    text = OF_KINDS.get(
        recommendation.kind,
        f"hours are proposed for plain real-time endpoints alone, and it is {recommendation.kind.value}",
    )
    return Reason(Code.OTHER_KIND, text)


def owner_refusal(recommendation: Recommendation, tags: Mapping[str, str]) -> Reason | None:
    """Why its owner or its type forbids office hours."""
    if owner := recommendation.owned_by or owner_of(tags):
        text = f"{owner} owns it and would find it missing: its owner stops it there"
        return Reason(Code.OWNED_BY_STACK, text)
    if any(key.lower().startswith("aws:") for key in tags):
        return Reason(Code.OWNED_BY_STACK, "it has tags that only AWS may set, so they could not be put back")
    if is_scarce(recommendation.instance_type) and not tags.get(FALLBACK_TAG):
        text = f"{recommendation.instance_type} is scarce, and a morning may find none: name a configuration of another"
        return Reason(Code.CAPACITY, f"{text} type by the tag {FALLBACK_TAG}, then hours are proposed")
    return None


def hours_finding(recommendation: Recommendation, evidence: HoursEvidence, zone_name: str) -> AccountFinding | None:
    """The proposal of office hours, or why there is none; None where the endpoint has hours already."""
    if HOURS_TAG in evidence.tags:
        return None
    refusal = kind_refusal(recommendation) or owner_refusal(recommendation, evidence.tags)
    if refusal is not None:
        return _refused(recommendation, refusal)
    if isinstance(evidence.seen, Reason):
        return _refused(recommendation, evidence.seen)
    fitted = fit_hours(evidence.seen, zone_name, evidence_days(evidence.tags))
    if isinstance(fitted, Reason):
        return _refused(recommendation, fitted)
    saving = _saving(recommendation, fitted)
    if saving is not None and saving < max(LEAST_USD, LEAST_SHARE * (recommendation.usd_per_month or Decimal(0))):
        text = f"{fitted.text} would save USD {saving:,.2f} a month, too little to be asked about"
        return _refused(recommendation, Reason(Code.SAVING_TOO_SMALL, text))
    return _with_start(_proposed(recommendation, fitted, saving, zone_name), evidence)


def _refused(recommendation: Recommendation, why: Reason) -> AccountFinding:
    """A finding that saves nothing; only `explain` and JSON tell it."""
    return AccountFinding(
        AccountFindingCode.OFFICE_HOURS,
        f"no office hours for {recommendation.ref.name}: {why.sentence}",
        Decimal(0),
        "none",
        endpoint=recommendation.ref.name,
        owner=recommendation.owner,
        evidence={"reason": why.code.value},
    )


def _saving(recommendation: Recommendation, fitted: FittedHours) -> Decimal | None:
    """US dollars a month of what runs in the closed hours, before commitments; None without a price."""
    if recommendation.usd_per_month is None:
        return None
    share = Decimal(str(round(fitted.closed_share * min(fitted.running_share, 1.0), 6)))
    return (recommendation.usd_per_month * share).quantize(CENT)


def _proposed(
    recommendation: Recommendation, fitted: FittedHours, saving: Decimal | None, zone_name: str
) -> AccountFinding:
    doors = fitted.closed_doors
    open_hours = 168 - fitted.closed_hours
    return AccountFinding(
        AccountFindingCode.OFFICE_HOURS,
        f"{recommendation.ref.name} is called in '{fitted.text}' {'alone' if not doors else 'but for a few requests'}"
        f" and runs all the time ({fitted.days} days looked at)",
        saving,
        f"tag it, and it goes home in the evening and is back at the hour: {tag_command(recommendation, fitted.text)}"
        f" (the stack needs MayStop=tagged); the value '{ALWAYS_OPEN}' says no, and nobody is asked again",
        endpoint=recommendation.ref.name,
        owner=recommendation.owner,
        evidence={
            "today": f"USD {recommendation.usd_per_month:,.2f} a month, always on"
            if recommendation.usd_per_month
            else "price not known",
            "with these hours": f"{open_hours:.1f} of 168 hours a week are billed, with"
            f" {FIRST_LEAD.total_seconds() / 60:.0f} minutes before each opening to start"
            f"{_with_saving(recommendation, saving)}",
            "closed door": _closed_door_text(fitted),
            **_after_option(recommendation, fitted),
            "priced by": _price_text(recommendation, fitted),
        },
        items=tuple(
            FindingItem(
                f"{door.at.astimezone(zone_of(zone_name)):%a %d %b %H:%M}", count(round(door.requests), "request")
            )
            for door in doors
        ),
        not_checked=tuple(_not_checked(fitted, zone_name)),
    )


def _with_start(finding: AccountFinding, evidence: HoursEvidence) -> AccountFinding:
    """The finding with how long a start takes, by own measurements where there are any."""
    billed = f"{FIRST_LEAD.total_seconds() / 60:.0f} minutes are taken until one was measured"
    if evidence.starts:
        text = f"{max(evidence.starts) / 60:.0f} minutes at most, by its own last {len(evidence.starts)}"
    elif evidence.other_starts:
        longest = max(evidence.other_starts) / 60
        text = f"{billed}; {len(evidence.other_starts)} of this account's other endpoints took {longest:.0f} at most"
    else:
        text = billed
    return replace(finding, evidence={**finding.evidence, "a start takes": text})


def _with_saving(recommendation: Recommendation, saving: Decimal | None) -> str:
    return (
        ""
        if saving is None or not recommendation.usd_per_month
        else f", USD {recommendation.usd_per_month - saving:,.2f} a month"
    )


def _closed_door_text(fitted: FittedHours) -> str:
    total = count(round(fitted.requests), "request")
    if not fitted.closed_doors:
        return f"none of {total} would have met one"
    met = sum(door.requests for door in fitted.closed_doors)
    return f"{met:,.0f} of {total} would have met one, listed below by the clock of the hours"


def _after_option(recommendation: Recommendation, fitted: FittedHours) -> dict[str, str]:
    """What hours save once the endpoint's own option is done: both savings do not add up."""
    own = recommendation.identified_usd_per_month
    if not own or not recommendation.usd_per_month:
        return {}
    left = (recommendation.usd_per_month - own) * Decimal(str(round(fitted.closed_share, 6)))
    return {"after its own option": f"USD {max(left, Decimal(0)).quantize(CENT):,.2f} a month more"}


def _price_text(recommendation: Recommendation, fitted: FittedHours) -> str:
    if recommendation.price is None:
        return "no price is known for its type"
    ran = recommendation.instance_count * min(fitted.running_share, 1.0)
    text = f"{ran:.1f}".removesuffix(".0")
    return (
        f"{text} × {recommendation.instance_type} in the closed hours, ${recommendation.price.usd_per_hour:f} an hour"
        f" ({recommendation.price.source}, {recommendation.price.as_of}), before commitments, which go on being billed"
    )


def _not_checked(fitted: FittedHours, zone_name: str) -> Iterator[str]:
    yield f"callers that come less often than in {fitted.days} days, such as at the end of a month"
    if zone_name == "UTC":
        yield "whether callers follow a clock with summer time: name it (hours_zone in the policy, or --zone)"
    if fitted.unknown_slots:
        yield f"requests in {count(fitted.unknown_slots, 'closed slot')} of five minutes without a metric"
    yield "what each stop asks for besides: image, alarms, Model Monitor, quota (a refusal is told with its reason)"


def tag_command(recommendation: Recommendation, text: str) -> str:
    """The AWS CLI line that sets the tag of the hours."""
    tags = json.dumps([{"Key": HOURS_TAG, "Value": text}])
    ref = recommendation.ref
    return f"aws sagemaker add-tags --region {ref.region} --resource-arn {ref.arn} --tags '{tags}'"
