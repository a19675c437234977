"""Details of a proposal as a modal of Slack: evidence, ranked options, and why not the same GPU in another size.

Another option can be taken from it. Source: Slack API documentation, "View object" (title 24 characters, 100 blocks).
"""

from collections.abc import Iterator

from rightsizer.domain.capacity_change import CapacityChange
from rightsizer.domain.older_option import with_older_facts
from rightsizer.domain.option import MOST_RISK_TAKEN, Option
from rightsizer.domain.plan import order_command
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.reason import one_line
from rightsizer.domain.recommendation import Recommendation
from rightsizer.render import effects, sentences
from rightsizer.render.blocks import (
    FIELD,
    SECTION,
    Block,
    button,
    context,
    escape,
    escape_lines,
    fields,
    header,
    modal,
    plain,
    section,
)
from rightsizer.render.effects import later_text, target_facts

MOST_OPTIONS = 8
"""Options that a person is shown; the page has all of them."""
MOST_EXCLUDED = 6
MOST_PARTS = 10


def proposal_view(proposal: Proposal) -> Block:
    """The modal of a proposal."""
    return modal("Details", details_blocks(proposal))


def capacity_view(capacity_change: CapacityChange) -> Block:
    """The modal of a capacity change."""
    told = [(one_line(name), one_line(text)) for name, text in capacity_change.facts]
    blocks = [
        section(f"*{escape(capacity_change.headline, SECTION)}*"),
        section(escape(capacity_change.reason.sentence, SECTION)),
    ]
    blocks += [fields(told[at : at + 10]) for at in range(0, len(told), 10)]
    if capacity_change.not_checked:
        blocks.append(context([escape(f"not checked: {'; '.join(capacity_change.not_checked)}", FIELD)]))
    return modal("Details", blocks)


def details_blocks(proposal: Proposal) -> list[Block]:
    """Everything that the message has no room for, in the order in which it is asked for."""
    recommendation, option = proposal.recommendation, proposal.recommendation.chosen_option
    blocks = [
        section(f"*{escape(sentences.headline(recommendation), SECTION)}*"),
        section(_text(recommendation.reason.sentence)),
    ]
    if option is not None:
        blocks += _in_tens(_facts(proposal, option))
    blocks += [header("Evidence"), *_evidence(recommendation)]
    if recommendation.components:
        blocks += [header("Inference components"), section(_text("\n".join(component_lines(recommendation))))]
    blocks += [header("Options, best first"), *_options(proposal)]
    blocks += [header("Why not the same GPU in another size?"), section(_text("\n".join(other_sizes(recommendation))))]
    if recommendation.open_questions:
        blocks.append(context([escape(f"not checked: {'; '.join(recommendation.open_questions)}", FIELD)]))
    text = " · ".join(f"`{line}`" for line in _commands(proposal))
    return [*blocks, context([f"At a terminal: {text}"])]


def other_sizes(recommendation: Recommendation) -> list[str]:
    """Why not the same GPU in another size: a line for each size of today's family that was looked at."""
    family = _family(recommendation.instance_type)
    if not family:
        return ["It runs on no instance type of its own."]
    option = recommendation.chosen_option
    if option is not None and _family(option.target.instance_type) == family:
        size = option.target.instance_type
        first = [f"It is the recommended one: {size}."] if size != recommendation.instance_type else []
    else:
        first = []
    sizes = [one for one in recommendation.options[1:] if _family(one.target.instance_type) == family]
    lines = [
        f"{one.target.instance_type} is an option: saves {sentences.monthly_price(one.saving_usd_per_month)},"
        f" {sentences.RISKS[one.risk]} risk."
        for one in sizes
        if one.target.instance_type != recommendation.instance_type
    ]
    out = [
        exclusion
        for exclusion in recommendation.excluded
        if exclusion.dimension is None and _family(exclusion.instance_type) == family
    ]
    lines += [f"{exclusion.instance_type}: {exclusion.reason.sentence}" for exclusion in out]
    return [*first, *lines][:MOST_EXCLUDED] or [
        f"No other size of {family} was looked at: none is listed with a price."
    ]


def component_lines(recommendation: Recommendation) -> list[str]:
    """How the copies pack, and a line for each component; the page has all of them and their figures."""
    packed = [sentences.packing_sentence(recommendation.packing)] if recommendation.packing is not None else []
    each = [
        f"{finding.name}: {sentences.FINDINGS[finding.finding].lower()}, {finding.reason.sentence}"
        for finding in recommendation.components[:MOST_PARTS]
    ]
    more = len(recommendation.components) - MOST_PARTS
    return [*packed, *each, *([f"and {more} more on the page"] if more > 0 else [])]


def _family(instance_type: str) -> str:
    parts = instance_type.split(".")
    return ".".join(parts[:2]) if len(parts) == 3 else ""


def _text(text: str) -> str:
    return escape_lines(text, SECTION)


def _in_tens(facts: list[tuple[str, str]]) -> list[Block]:
    return [fields(facts[at : at + 10]) for at in range(0, len(facts), 10)]


def _facts(proposal: Proposal, option: Option) -> list[tuple[str, str]]:
    recommendation, label = proposal.recommendation, "Before" if proposal.change_id else "Today"
    facts = [
        (label, f"{sentences.today(recommendation)}, {sentences.monthly_price(recommendation.usd_per_month)}"),
        ("The endpoint can", f"{sentences.change(option)}, {sentences.monthly_price(option.usd_per_month)}"),
        *target_facts(option.target),
        *((("Later", later),) if (later := later_text(recommendation)) else ()),
        ("Performance risk", effects.risk_text(option)),
        *((("Shadow test", offered),) if (offered := effects.offer_text(recommendation)) else ()),
        ("Restart", effects.restart_of(recommendation)),
        ("Rollback", effects.way_back_of(recommendation, proposal.approvable)),
        ("Owner", one_line(recommendation.owner) or "nobody is named (tag rightsizer:owner)"),
    ]
    if option.p95_s is not None:
        facts.append(("p95 latency then", sentences.seconds(option.p95_s)))
    if callers := effects.callers_text(option):
        facts.append(("For callers", one_line(callers)))
    changes = with_older_facts(option).policy_changes
    return [*facts, *((policy_change.title, one_line(policy_change.effect)) for policy_change in changes)]


def _evidence(recommendation: Recommendation) -> Iterator[Block]:
    evidence = recommendation.evidence
    price = recommendation.price
    source = f"price {price.source}, {price.basis}, {price.as_of}" if price else "price not known"
    if evidence is None:
        yield section("Nothing was measured.")
    else:
        told = [
            ("Seen", f"{sentences.count(evidence.requests, 'request')} in {evidence.days:.0f} days"),
            ("Periods with data", sentences.percent(evidence.valid_share)),
            *((sentences.as_title(name), text) for name, text in sentences.figures(evidence)),
        ]
        yield from _in_tens(told[:20])
    if recommendation.replay:
        figures = (f"{sentences.as_title(name)}: {text}" for name, text in sentences.replay_figures(recommendation))
        yield section(
            f"*{escape(sentences.replay_heading(recommendation), 500)}*\n{_text(chr(10).join(figures))[:2000]}"
        )
    yield context([escape(source, FIELD)])


def _options(proposal: Proposal) -> Iterator[Block]:
    recommendation = proposal.recommendation
    if not recommendation.options:
        yield section("There is none: the endpoint stays as it is.")
    for place, option in enumerate(recommendation.options[:MOST_OPTIONS]):
        money = sentences.monthly_price(abs(option.saving_usd_per_month))
        saves = f"saves {money}" if option.saving_usd_per_month >= 0 else f"costs {money} more"
        where = "" if option.in_place else "; its owner carries it out"
        text = f"{place + 1}. {one_line(sentences.change(option), 300)}: {saves}, {effects.risk_text(option)}{where}"
        block = section(escape(text, SECTION))
        if place and _may_be_taken(proposal, option):
            block["accessory"] = _take_button(proposal, option, place)
        yield block
    if len(recommendation.options) > MOST_OPTIONS:
        yield context([f"{len(recommendation.options) - MOST_OPTIONS} more are on the page"])


def _may_be_taken(proposal: Proposal, option: Option) -> bool:
    waits = proposal.state is ProposalState.PENDING and proposal.approvable
    return waits and option.in_place and option.risk <= MOST_RISK_TAKEN


def _take_button(proposal: Proposal, option: Option, place: int) -> Block:
    asked = (
        f"The proposal then asks for this: {proposal.ref.name} can {sentences.change(option)}. It waits for Approve."
    )
    made = button("Take this", f"take_{place}", f"{proposal.id}~{proposal.revision}~{place}")
    made["confirm"] = {
        "title": plain("Ask for this option?"),
        "text": plain(one_line(asked, 290)),
        "confirm": plain("Take it"),
        "deny": plain("Cancel"),
    }
    return made


def _commands(proposal: Proposal) -> list[str]:
    answers = [line for line, _ in effects.commands(proposal)] if proposal.state is ProposalState.PENDING else []
    return [*answers, escape(order_command("explain", proposal.ref.name, proposal.ref.region), 160)]
