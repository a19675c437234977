"""Common wording of money, shares, times and options for every view.

Also what is said of a setting that cannot be understood, and of a stored row that cannot be read.
"""

from decimal import ROUND_HALF_UP, Decimal
from typing import assert_never

from rightsizer.dimensions import dimension_of
from rightsizer.domain.endpoint import EndpointKind
from rightsizer.domain.environment import EnvironmentReading
from rightsizer.domain.older_option import HOURS_FACT, with_older_facts
from rightsizer.domain.option import ORDERED, Effort, Option, OptionKind, Risk, Target, fleet
from rightsizer.domain.outcome import UnreadRow
from rightsizer.domain.proposal import (
    USUAL_SNOOZE,
    Proposal,
    ProposalState,
    decider_name,
    stage_change_ids,
)
from rightsizer.domain.reason import OF_APPROVAL, Code, one_line
from rightsizer.domain.reason import count as count
from rightsizer.domain.reason import day_text as day_text
from rightsizer.domain.reason import time_text as time_text
from rightsizer.domain.recommendation import (
    ComponentDay,
    ComponentFinding,
    ComponentPacking,
    Evidence,
    Finding,
    Gate,
    Recommendation,
    VariantFinding,
)

RISKS = {
    Risk.VERY_LOW: "very low",
    Risk.LOW: "low",
    Risk.MEDIUM: "medium",
    Risk.HIGH: "high",
    Risk.VERY_HIGH: "very high",
}
EFFORTS = {
    Effort.VERY_LOW: "very low",
    Effort.LOW: "low",
    Effort.MEDIUM: "medium",
    Effort.HIGH: "high",
    Effort.VERY_HIGH: "very high",
}
FINDINGS = {
    Finding.IDLE: "Idle",
    Finding.OVER_PROVISIONED: "Over-provisioned",
    Finding.UNDER_PROVISIONED: "Under-provisioned",
    Finding.OPTIMIZED: "Optimized",
    Finding.NOT_ENOUGH_DATA: "Not enough data",
}

GATES = {
    Gate.SILENT: "nobody is asked",
    Gate.PROPOSE: "asks first",
    Gate.TEST: "tests first",
    Gate.APPLY: "by itself",
}
"""What rightsizer does about a recommendation."""
TELLING = {
    Gate.APPLY: {Code.SAFE_TO_APPLY},
    Gate.TEST: {Code.TEST_WORTH_IT},
    Gate.SILENT: {Code.SAVING_TOO_SMALL},
    Gate.PROPOSE: OF_APPROVAL,
}
"""Reasons that say themselves what follows, so that no heading of GATES stands before them."""
SIGNALS = {
    "L0": "the configuration alone",
    "L1": "the endpoint's own metrics",
    "L2": "the endpoint's own metrics, each GPU by itself",
    "L3": "the endpoint's own metrics, and those of the model server",
    "L4": "the endpoint's own metrics, and a shadow test",
    "L5": "the endpoint's own metrics, and what an earlier change showed",
}
"""What each rung of a stored recommendation means to a reader."""
ELSEWHERE = frozenset({"requests", "confidence"})
"""Figures that earlier releases stored: the requests stand beside them, and an option has the confidence."""
RED = "\N{LARGE RED CIRCLE} "
NO_PLAN = ("kept by the commitment", "USD 0 per month")
"""Figure of an option where no Savings Plan keeps anything of what it saves."""
PLAN_BILLS = "still billed by the Savings Plan"
"""What a reader sees in place of that figure's stored name."""
READ_AGAIN = "use the release that wrote it, or restore it from a backup: docs/upgrade.md"
"""What to do about a stored row that this release cannot read."""


def gate_heading(recommendation: Recommendation) -> str | None:
    """Words before the reason of the gate, such as ``asks first``; None where the reason says itself what follows."""
    if recommendation.gate_reason.code in TELLING[recommendation.gate]:
        return None
    option = recommendation.chosen_option
    begins = option is not None and (option.in_place or option.kind is OptionKind.DELETE)  # its watch of some days
    begins = begins and not recommendation.owned_by
    return GATES[recommendation.gate] if begins or recommendation.gate is not Gate.PROPOSE else "tells its owner"


def money(usd: Decimal) -> str:
    """US dollars: whole ones from 100 on, with cents below; ``-$12.00`` for a loss."""
    places = Decimal(1) if abs(usd) >= 100 else Decimal("0.01")
    rounded = abs(usd).quantize(places, ROUND_HALF_UP)
    return f"{'-' if usd < 0 and rounded else ''}${rounded:,}"


def exact_money(usd: Decimal) -> str:
    """US dollars with cents, as the sums of a report are told everywhere: ``$4,140.50``."""
    rounded = abs(usd).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{'-' if usd < 0 and rounded else ''}${rounded:,}"


def hourly_price(usd: Decimal) -> str:
    """A price per hour without the zeros that AWS pads it with, cents at least: ``2.27``, ``0.1125``."""
    plain = f"{usd.normalize():f}"
    whole, _, part = plain.partition(".")
    return f"{whole}.{part:0<2}"


def monthly_price(usd: Decimal | None) -> str:
    """``$4,140 a month``; says so when the price is not known."""
    return "price not known" if usd is None else f"{money(usd)} a month"


def percent(share: float) -> str:
    """A share of 0 to 1: ``4.2 %`` below ten, ``44 %`` above; never rounded to none or all."""
    value = 100 * share
    if 0 < value < 0.1:
        return "< 0.1 %"
    if 99 < value < 100:
        return f"{min(value, 99.9):.1f} %"
    return f"{value:.1f} %" if 0 < abs(value) < 10 else f"{value:.0f} %"


def seconds(value: float) -> str:
    """A latency: ``280 ms``, ``1.4 s``, ``95 s``."""
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def risk(level: Risk) -> str:
    """``low (1 of 4)``: Compute Optimizer's performance risk."""
    return f"{RISKS[level]} ({int(level)} of 4)"


def environment(found: EnvironmentReading) -> str:
    """``development (tag env=dev): one instance is enough; ...``."""
    changed = f": {'; '.join(found.effects)}" if found.effects else ""
    return f"{found.environment.value} ({found.source}){changed}"


def today(recommendation: Recommendation) -> str:
    """Fleet that the endpoint runs now."""
    if not recommendation.instance_type and recommendation.kind is not EndpointKind.SERVERLESS:
        return str(recommendation.kind)
    if recommendation.variants:
        each = (f"{fleet(Target(v.instance_type, v.instance_count))} ({v.name})" for v in recommendation.variants)
        return " and ".join(each)
    runs = fleet(Target(recommendation.instance_type, recommendation.instance_count))
    return f"{runs} (variant {recommendation.variant} alone)" if recommendation.beside else runs


def variant_facts(finding: VariantFinding) -> list[tuple[str, str]]:
    """Cost, requests and finding of one of several variants, with their names."""
    cost = "not known" if finding.usd_per_month is None else monthly_price(finding.usd_per_month)
    requests = "not read" if finding.requests is None else f"{finding.requests:,}"
    first = finding.options[0] if finding.options else None
    could = (
        ""
        if first is None
        else f"; it can {change(first)}{_price_of_change(first, monthly_price(first.saving_usd_per_month))}"
    )
    return [
        ("fleet", f"{fleet(Target(finding.instance_type, finding.instance_count))}, weight {finding.weight:g}"),
        ("cost", cost),
        ("requests", requests),
        ("finding", f"{FINDINGS[finding.finding]}: {finding.reason.sentence}{could}"),
    ]


def component_facts(finding: ComponentFinding) -> list[tuple[str, str]]:
    """Copies, part of the price, figures and finding of one inference component, with their names."""
    copies = "not read" if finding.copies is None else str(finding.copies)
    if finding.needed is not None and finding.needed != finding.copies:
        copies += f" ({finding.needed} needed)"
    facts = [("finding", f"{FINDINGS[finding.finding]}: {finding.reason.sentence}")]
    facts += [] if finding.base else [("copies", copies)]
    if finding.usd_per_month is not None and not finding.base:
        facts.append(("cost", f"{monthly_price(finding.usd_per_month)}, by what its copies reserve"))
    facts += finding.figures.items()
    facts += [("each day, UTC", ", ".join(map(_component_day, finding.by_day)))] if finding.by_day else []
    return [*facts, *([("advice", finding.advice)] if finding.advice else [])]


def _component_day(one: ComponentDay) -> str:
    busy = "" if one.gpu is None else f" (GPU {100 * one.gpu:.0f} %)"
    return f"{one.day:%d %b} {'not known' if one.requests is None else f'{one.requests:,.0f}'}{busy}"


def packing_sentence(packed: ComponentPacking) -> str:
    """Instances that the copies need beside those that run, and what of the price nobody reserves."""
    span = f"{packed.least}" if packed.least == packed.most else f"{packed.least} to {packed.most}"
    text = f"the copies fit on {span} of {count(packed.instances, 'instance')} by what they reserve"
    rest = packed.unreserved_usd_per_month
    return text if rest is None else f"{text}; {monthly_price(rest)} is reserved by none"


def change(option: Option) -> str:
    """Effect of the option, as the end of "it can ..."."""
    return dimension_of(option.kind).describe(option)


def headline(recommendation: Recommendation) -> str:
    """The ten-second sentence: endpoint, change, saving."""
    option = recommendation.chosen_option
    name, variant = recommendation.ref.name, recommendation.variant
    if recommendation.beside:
        name = f"variant {variant} of {name}"
    if option is None:
        return one_line(f"{name}: {FINDINGS[recommendation.finding].lower()}")
    if option.kind in ORDERED:
        return one_line(f"{name} can {change(option)}: no saving is promised")
    more = f"{name} needs more: it" if option.grows else name
    return one_line(f"{more} can {change(option)}{_price_of_change(option, plan_saving(recommendation))}")


def _price_of_change(option: Option, saved: str) -> str:
    """``: saves $390 a month``, ``, which costs $822 a month more``."""
    saving = option.saving_usd_per_month
    if option.grows:
        return f", {growth_price(option)}"
    return f": saves {saved}" if saving >= 0 else f": costs {monthly_price(-saving)} more"


def plan_saving(recommendation: Recommendation) -> str:
    """``$390 a month``; where stages follow by the same approval also how many, and what the first one saves."""
    whole = monthly_price(recommendation.approval_usd_per_month)
    if not recommendation.stages:
        return whole
    first = money(recommendation.saving_usd_per_month)
    return f"{whole} in {1 + len(recommendation.stages)} stages, {first} of it by the first"


def planned_changes(recommendation: Recommendation) -> tuple[str, ...]:
    """The recommended change, and each later one of the same approval, behind "then"."""
    first = () if recommendation.chosen_option is None else (change(recommendation.chosen_option),)
    return (*first, *(f"then {change(stage)}" for stage in recommendation.stages))


def growth_price(option: Option) -> str:
    """Cost of growth: ``which costs $822 a month more``, ``which costs nothing more``."""
    more = -option.saving_usd_per_month
    return f"which costs {monthly_price(more)} more" if more > 0 else "which costs nothing more"


def shortage_mark(recommendation: Recommendation) -> str:
    """A red mark before what is too small for its load; empty before everything else."""
    return RED if recommendation.is_short else ""


def figures(evidence: Evidence) -> list[tuple[str, str]]:
    """Figures of the evidence with their names, without those that each view shows elsewhere."""
    return [(name, text) for name, text in evidence.figures.items() if name not in ELSEWHERE]


def as_title(name: str) -> str:
    """The name of a figure where it stands alone: ``Model latency``, ``vCPU needed``."""
    return f"{name[:1].upper()}{name[1:]}" if name.split(" ", 1)[0].islower() else name


def replay_heading(recommendation: Recommendation) -> str:
    """Heading of the replay's figures; of many requests only the heaviest minutes are replayed."""
    some = recommendation.replay.requests if recommendation.replay else 0
    every = recommendation.evidence.requests if recommendation.evidence else some
    part = f" ({some:,} of {every:,} requests: those of the heaviest minutes)" if 0 < some < every else ""
    speed = ", at the speed that the test has to show" if recommendation.offers_test else ""
    return f"The past days replayed on it{part}{speed}"


def replay_figures(recommendation: Recommendation) -> list[tuple[str, str]]:
    """The predicted figures of the replay with their names; none where nothing was replayed."""
    then = recommendation.replay
    if then is None:
        return []
    objective = "" if then.objective_s is None else f", objective {seconds(then.objective_s)}"
    worst = "no hour had 20 requests" if then.worst_p95_s is None else f"{seconds(then.worst_p95_s)}{objective}"
    room = then.memory_margin_gib
    left = "not known" if room is None else f"{room:.1f} GiB beyond the need"
    if room is not None and room < 0:
        left = f"none: the need with its margin is {-room:.1f} GiB above what the card has"
    late = f"{then.requests_over_objective:,}"
    if then.requests:
        late += f" of {then.requests:,} ({then.over_objective_today:,} today)"
    return [
        ("load", f"{then.hours_above_80:g} h above 80 %, {then.hours_above_100:g} h above 100 %"),
        ("worst p95 of an hour", worst),
        ("GPU memory left", left),
        ("late requests", late),
    ]


def days_of_evidence(confidence: float) -> str:
    """How much was seen: ``14 days' worth``; gaps and few requests make it less than the days that passed."""
    return f"{confidence:.1f}".removesuffix(".0") + " days' worth"


IN_A_NOTE = frozenset({"idle timeout", "asleep", "instances given back"})
"""Figures that a note of the same option says too."""


def option_facts(option: Option) -> list[tuple[str, str]]:
    """The figures of an option with their names, without what another row says or nothing follows from.

    The length of a shadow test only where one comes first.
    """
    hours = with_older_facts(option).test_hours
    test = () if hours is None or not option.test_usd else (("length of the test", f"{hours:g} h"),)
    left_out = {HOURS_FACT, *(IN_A_NOTE if option.notes else ())}
    told = ((name, text) for name, text in option.facts.items() if name not in left_out and (name, text) != NO_PLAN)
    return [*test, *((PLAN_BILLS if name == NO_PLAN[0] else name, text) for name, text in told)]


def signals(rung: str) -> str:
    """Best signal behind a recommendation: ``the endpoint's own metrics``."""
    return SIGNALS.get(rung, rung)


def start_sentence(proposal: Proposal) -> str:
    """When what was approved begins, in one sentence. Empty once its shadow test is over, whose outcome says it."""
    recommendation = proposal.recommendation
    if proposal.change_id and (proposal.is_test_first or recommendation.stages):
        return ""
    if proposal.runs_test:
        if recommendation.peak is None:
            return "The test starts within minutes, or when the change window opens."
        hour = f"{recommendation.peak.hour:02d}:00 UTC"
        return f"The test starts within minutes, or waits for the busiest hour ({hour}) in the change window."
    return "The change starts within minutes, or when the change window opens."


def standing_sentence(proposal: Proposal) -> str:  # noqa: C901  (one arm for each state)
    """Where the proposal stands, in one sentence; the change's own words follow it."""
    by = f" by {decider_name(proposal.decision.by)}" if proposal.decision else ""
    text = f" “{one_line(proposal.decision.comment)}”" if proposal.decision and proposal.decision.comment else ""
    match proposal.state:
        case ProposalState.PENDING:
            words = f"Waiting for an answer until {time_text(proposal.expires_at)}."
        case ProposalState.APPROVED:
            what = "Approved with the test first" if proposal.is_test_first else "Approved"
            words = f"{what}{by}.{text} {start_sentence(proposal)}".strip()
        case ProposalState.REJECTED:
            words = "Stopped after it was approved." if proposal.asked_back_by else f"Rejected{by}.{text}"
        case ProposalState.SNOOZED:
            still = "it still needs more" if proposal.recommendation.grows else "the saving is still there"
            days = proposal.decision.snooze_days if proposal.decision else USUAL_SNOOZE
            words = f"Snoozed{by}. It comes back after {days} days if {still}."
        case ProposalState.EXPIRED:
            words = "Expired without an answer." if proposal.decision is None else f"Expired after it was approved{by}."
        case ProposalState.WITHDRAWN:
            words = "Withdrawn:" if proposal.outcome else "Withdrawn."
        case ProposalState.APPLYING:
            what = "Being tested, or changed after the test" if proposal.is_test_first else "Being changed"
            words = f"{what}; approved{by}."
        case ProposalState.APPLIED:
            words = "Changed, and not proven: it served too few requests for that."
        case ProposalState.PROVEN:
            words = "Changed and proven."
        case ProposalState.ROLLED_BACK:
            words = (
                "Rolled back." if proposal.outcome else "Rolled back: the endpoint runs as it did before the change."
            )
        case ProposalState.HANDED_OVER:
            words = "Handed over to a person: rightsizer changes nothing more here."
        case unreachable:
            assert_never(unreachable)
    back = ""
    ended = proposal.state in (ProposalState.ROLLED_BACK, ProposalState.REJECTED)
    kept = proposal.state is ProposalState.PROVEN and proposal.recommendation.stages  # the rest of a plan was stopped
    if kept and proposal.change_id in stage_change_ids(proposal)[-1:]:
        kept = ()  # the last stage stands: the order is about that one
    if proposal.asked_back_by and not ended and not kept:
        asked = "stop it" if proposal.state is ProposalState.APPROVED else "roll it back"
        back = f" {decider_name(proposal.asked_back_by)} asked to {asked}."
    return f"{words}{back} {one_line(proposal.outcome)}".strip()


def unread_row(row: UnreadRow) -> str:
    """A stored row that was passed over, with its cause and the remedy."""
    return f"{row.key} cannot be read and is left as it is: {row.cause}; {READ_AGAIN}."
