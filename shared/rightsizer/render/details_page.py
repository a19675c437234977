"""The details page of one proposal: everything that the message has no room for."""

from decimal import Decimal

from rightsizer.domain.option import Option, fleet
from rightsizer.domain.plan import order_command
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.recommendation import Recommendation
from rightsizer.render import charts, effects, sentences
from rightsizer.render.charts import highest_value
from rightsizer.render.effects import later_text, target_facts
from rightsizer.render.html import Cell, HtmlNode, Markup, badge, card, facts, join, page, section, table, tag


def details_page(proposal: Proposal) -> str:
    """The page of a proposal as it stands."""
    recommendation = proposal.recommendation
    return page(
        sentences.headline(recommendation),
        tag("h1", sentences.headline(recommendation)),
        tag("p", sentences.standing_sentence(proposal), class_="soft"),
        _cards(recommendation),
        section("Why", tag("p", recommendation.reason.sentence), _notes(recommendation)),
        _variants(recommendation),
        _components(recommendation),
        _weeks(recommendation),
        section("Evidence", _evidence(recommendation)),
        section("Options, best first", _options(proposal)),
        section("Ruled out", _exclusions(recommendation)),
        section("Not checked", _open_questions(recommendation)),
        section("Answer", _answer(proposal)),
        _source(recommendation),
    )


def _cards(recommendation: Recommendation) -> HtmlNode:
    option = recommendation.chosen_option
    today = card(f"a month today: {sentences.today(recommendation)}", _usd(recommendation.usd_per_month))
    if option is None:
        return tag("div", today, class_="cards")
    then = fleet(option.target)
    stages = f" by all {1 + len(recommendation.stages)} stages" if recommendation.stages else ""
    money = card(f"saved a month{stages}, estimated", _usd(recommendation.approval_usd_per_month), "main")
    if option.grows:
        money = card("more a month, to end the shortage", _usd(-option.saving_usd_per_month), "bad")
    return tag(
        "div",
        money,
        today,
        card(f"a month {'after stage 1' if recommendation.stages else 'then'}: {then}", _usd(option.usd_per_month)),
        card("performance risk", effects.risk_text(option)),
        card("of evidence", sentences.days_of_evidence(option.confidence)),
        class_="cards",
    )


def _usd(amount: Decimal | None) -> str:
    return "not known" if amount is None else sentences.money(amount)


def _variants(recommendation: Recommendation) -> HtmlNode:
    """Each of several variants with its cost and its finding; nothing where there is one."""
    if not recommendation.variants:
        return ""
    panels = [
        tag(
            "div",
            tag("h3", finding.name),
            facts([(name[0].upper() + name[1:], text) for name, text in pairs]),
            class_="panel",
        )
        for finding in recommendation.variants
        if (pairs := sentences.variant_facts(finding))
    ]
    return section("Variants", *panels)


def _components(recommendation: Recommendation) -> HtmlNode:
    """Each inference component with its finding and figures, and how their copies pack; nothing without any."""
    if not recommendation.components:
        return ""
    panels = [
        tag(
            "div",
            tag("h3", finding.name),
            facts([(name[0].upper() + name[1:], text) for name, text in sentences.component_facts(finding)]),
            class_="panel",
        )
        for finding in recommendation.components
    ]
    packed = (
        [tag("p", sentences.packing_sentence(recommendation.packing), class_="note")] if recommendation.packing else []
    )
    return section("Inference components", *packed, *panels)


def _weeks(found: Recommendation) -> Markup:
    parts: list[HtmlNode] = []
    if found.hourly_requests:
        peak = highest_value(found.hourly_requests)
        label = f"Requests in each hour of the look-back; at most {peak:,.0f}"
        parts += [tag("p", label, class_="note"), charts.line_chart(found.hourly_requests, label)]
    if found.replay and found.replay.hourly_load:
        over = f"{found.replay.hours_above_80:g} h above 80 %, {found.replay.hours_above_100:g} h above 100 %"
        label = f"The past days replayed on the option: share of its capacity; {over}"
        parts += [tag("p", label, class_="note"), charts.load_chart(found.replay.hourly_load, label)]
    if not parts:
        return section("The look-back period", tag("p", "There is no hourly series to draw.", class_="soft"))
    return section("The look-back period", tag("div", *parts, class_="panel"))


def _evidence(found: Recommendation) -> Markup:
    seen = found.evidence
    pairs: list[tuple[str, HtmlNode]] = []
    if seen:
        pairs += [
            ("Window", f"{sentences.time_text(seen.start)} to {sentences.time_text(seen.end)} ({seen.days:.1f} days)"),
            ("Periods with data", sentences.percent(seen.valid_share)),
            ("Requests", f"{seen.requests:,}"),
            ("Known from", sentences.signals(seen.rung)),
            *((sentences.as_title(name), told) for name, told in sentences.figures(seen)),
        ]
    if found.environment is not None:
        pairs.append(("Environment", sentences.environment(found.environment)))
    panel: list[HtmlNode] = [facts(pairs) if pairs else "Nothing was measured."]
    if found.replay:
        said = tag("p", sentences.replay_heading(found), class_="note", style="margin-top:12px")
        panel += [said, facts([(sentences.as_title(name), told) for name, told in sentences.replay_figures(found)])]
    return tag("div", *panel, class_="panel")


def _options(proposal: Proposal) -> Markup:
    recommendation = proposal.recommendation
    ours = proposal.approvable and not recommendation.owned_by
    rows = [_option(number, option, ours) for number, option in enumerate(recommendation.options, 1)]
    heads = ("", "Change", "Saving a month", "Then a month", "One-off", "Risk", "Effort", "For callers")
    later = later_text(recommendation)
    markup = table("Options", heads, rows, "There is no option: the endpoint stays as it is.")
    return join(markup, tag("p", f"Later: {later}", class_="note")) if later else markup


def _option(number: int, option: Option, ours: bool) -> list[Cell]:
    risks = ", ".join(f"{name} {sentences.RISKS[level]}" for name, level in option.risks.items())
    notes = (*(f"{name}: {text}" for name, text in target_facts(option.target)), *option.notes)
    return [
        Cell(number, number),
        Cell(
            join(sentences.change(option), *(tag("div", note, class_="note") for note in notes)),
            look="why",
        ),
        Cell(sentences.money(option.saving_usd_per_month), float(option.saving_usd_per_month), "n"),
        Cell(sentences.money(option.usd_per_month), float(option.usd_per_month), "n"),
        Cell(_one_time_cost(option), float(option.switch_usd + option.test_usd), "n"),
        Cell(join(effects.risk_text(option), tag("div", risks, class_="note")), int(option.risk)),
        Cell(
            join(
                sentences.EFFORTS[option.effort],
                tag("div", effects.effect_note(option, ours), class_="note"),
            )
        ),
        Cell(option.client_change or "change nothing"),
    ]


def _one_time_cost(option: Option) -> HtmlNode:
    """What the change costs once, and the shadow test before it."""
    switch = sentences.money(option.switch_usd)
    if not option.test_usd:
        return switch
    return join(switch, tag("div", f"and {sentences.money(option.test_usd)} for the test first", class_="note"))


def _exclusions(recommendation: Recommendation) -> Markup:
    rows = [
        [
            Cell(exclusion.title, look="nowrap"),
            Cell(badge(exclusion.reason.code)),
            Cell(exclusion.reason.sentence, look="why"),
        ]
        for exclusion in recommendation.excluded
    ]
    return table("Ruled out", ("Candidate", "Reason", "Why"), rows, "No candidate had to be ruled out.")


def _open_questions(recommendation: Recommendation) -> Markup:
    if not recommendation.open_questions:
        return tag("p", "Nothing is known to be unchecked.", class_="soft")
    return tag("ul", *(tag("li", one) for one in recommendation.open_questions))


def _notes(recommendation: Recommendation) -> Markup:
    return join(
        *(tag("p", note.sentence, class_="note") for note in (recommendation.gate_reason, *recommendation.notes))
    )


def _answer(proposal: Proposal) -> Markup:
    region = proposal.ref.region
    commands = [order_command("explain", proposal.ref.name, region)]
    if proposal.state is ProposalState.PENDING:
        approve = [order_command("approve", proposal.id, region)] if proposal.approvable else []
        reject = [
            f'{order_command("reject", proposal.id, region)} --reason "..."',
            order_command("snooze", proposal.id, region),
        ]
        commands = [*approve, *reject, *commands]
    enable = None
    if not proposal.approvable:
        way = proposal.enabling_step
        copied = tag("pre", way.lines) if way.lines else None
        enable = tag("div", tag("p", f"It cannot be approved here: {way.why}"), copied)
    return tag("div", enable, tag("pre", "\n".join(commands)), class_="panel")


def _source(found: Recommendation) -> Markup:
    prices = [p for p in (found.price, found.chosen_option.price if found.chosen_option else None) if p]
    said = "; ".join(
        f"{p.instance_type} in {p.region} USD {sentences.hourly_price(p.usd_per_hour)} an hour"
        f" ({p.source}, {p.basis}, {p.as_of})"
        for p in prices
    )
    text = f"{found.ref.arn}. Evaluated {sentences.time_text(found.evaluated_at)}. Prices: {said or 'not known'}."
    return tag("p", f"{text} A month has 730 hours.", class_="note", style="margin-top:40px")
