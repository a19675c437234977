"""Proposals and reports in plain text, for SNS and e-mail, with the command that answers."""

from collections.abc import Sequence

from rightsizer.domain.plan import order_command
from rightsizer.domain.proposal import Proposal, ProposalState
from rightsizer.domain.reason import one_line
from rightsizer.domain.report import Report
from rightsizer.render import bill, effects, report_promises, report_tables, rest_of_bill, sentences
from rightsizer.render.charts import sparkline
from rightsizer.render.effects import later_text, target_facts

SHORT = 5
"""Endpoints that need more in the e-mail about the report; the page has all."""


def proposal(asked: Proposal, details: str = "") -> tuple[str, str]:
    """Subject and body."""
    recommendation, option = asked.recommendation, asked.recommendation.chosen_option
    lines = [sentences.headline(recommendation), sentences.standing_sentence(asked), ""]
    if option:
        lines += [
            f"Today:   {sentences.today(recommendation)}, {sentences.monthly_price(recommendation.usd_per_month)}",
            f"Change:  the endpoint can {sentences.change(option)}, {sentences.monthly_price(option.usd_per_month)}",
            *(f"{name}: {text}" for name, text in target_facts(option.target)),
            f"Risk:    {effects.risk_text(option)}; effort {sentences.EFFORTS[option.effort]};"
            f" {effects.restart_of(recommendation)}",
            f"Undo:    {effects.way_back_of(recommendation, asked.approvable)}",
        ]
        lines += [f"Later:   {later}"] if (later := later_text(recommendation)) else []
        lines += [f"Test:    {offered}"] if (offered := effects.offer_text(recommendation)) else []
        lines += [f"Callers: {callers}"] if (callers := effects.callers_text(option)) else []
    lines += [
        f"Owner:   {recommendation.owner or 'nobody is named (tag rightsizer:owner)'}",
        f"Why:     {recommendation.reason}",
    ]
    lines += [f"Checked: {_evidence(asked)}"] if recommendation.evidence else []
    told = "; ".join(f"{name} {text}" for name, text in sentences.replay_figures(recommendation))
    lines += [f"{sentences.replay_heading(recommendation)}: {told}"] if told else []
    lines += [f"Not checked: {'; '.join(recommendation.open_questions)}"] if recommendation.open_questions else []
    if recommendation.hourly_requests:
        days = recommendation.evidence.days if recommendation.evidence else len(recommendation.hourly_requests) / 24
        lines += ["", f"{sparkline(recommendation.hourly_requests)}  requests, {days:.0f} days"]
    lines += ["", *_answers(asked)]
    lines += stored_lines("Details", details)
    return f"rightsizer: {sentences.headline(recommendation)}", body(lines)


def report(report: Report, page: str = "") -> tuple[str, str]:
    """Subject and body."""
    totals = report.totals
    window = f"{sentences.day_text(report.start)} to {sentences.day_text(report.end)}"
    lines = [
        f"GPU endpoints of {report.account} in {report.region}, {window}",
        "",
        report_tables.lead_text(report),
        "",
        *_shortage_lines(report),
        f"Spend:      {sentences.exact_money(totals.spend)} a month on {sentences.count(totals.endpoints, 'endpoint')}",
        f"Still open: {sentences.exact_money(totals.open)} a month could still be saved",
        *(
            f"{name.capitalize() + ':':12}{sentences.exact_money(usd)} a month"
            for name, usd in report_tables.funnel(totals)
        ),
        f"Saved:      {sentences.exact_money(totals.realised)} in this window",
        f"Bill:       {bill.bill_text(report)}",
        f"Wasted:     {sentences.exact_money(totals.wasted)} a month of the spend",
        *report_tables.wait_lines(report),
        *(f"{name}: {text}" for name, text in report_tables.hours_saved(report)),
        *(f"{name}: {sentences.exact_money(usd)}" for name, usd in report_tables.growth_added(totals)),
    ]
    if totals.unpriced:
        lines.append(f"Not priced: {sentences.count(totals.unpriced, 'endpoint')}; not part of the spend")
    if report.unread:
        lines.append(f"Not read:   {report_tables.unread_text(report.unread)}")
    if report.running_cost is not None:
        lines.append(f"Rightsizer itself, estimated: {sentences.money(report.running_cost.usd)}")
    if report.track_record is not None:
        lines += [
            f"Slowdown:   {report_promises.slowdown_text(report.track_record)}",
            f"Risk:       {report_promises.risk_text(report.track_record)}",
        ]
    rest = rest_of_bill.short_lines(report.account_findings)
    lines += ["", *rest] if rest else []
    lines += ["", *stored_lines("The whole report", page)] if page else []
    return report_subject(report), body(lines)


def _shortage_lines(report: Report) -> list[str]:
    """Which endpoints need more than they have, before all figures of savings; nothing where none does."""
    recommendations = report_tables.shortages(report)
    more = f" and {len(recommendations) - SHORT} more" if len(recommendations) > SHORT else ""
    names = ", ".join(recommendation.ref.name for recommendation in recommendations[:SHORT])
    return [f"Needs more: {report_tables.short_text(report)}: {names}{more}", ""] if recommendations else []


def report_subject(report: Report) -> str:
    """Subject of the report, on one line."""
    window = f"{sentences.day_text(report.start)} to {sentences.day_text(report.end)}"
    needs = report_tables.short_text(report)
    return f"rightsizer: {needs + '; ' if needs else ''}{sentences.exact_money(report.totals.realised)} saved, {window}"


def body(lines: Sequence[str]) -> str:
    """The lines of a message: each stays one line, whatever a name or a reason in it says."""
    return "\n".join(one_line(line) for line in lines) + "\n"


def stored_lines(name: str, where: str) -> list[str]:
    """Where a file is kept, and the command that fetches it; nothing where it is not kept.

    A link would end with the session of the role that signed it, long before anybody may read this.
    """
    if not where.startswith("s3://"):
        return [f"{name}: {where}"] if where else []
    return [f"{name}: {where}", f"  aws s3 cp {where} ."]


def _evidence(asked: Proposal) -> str:
    evidence = asked.recommendation.evidence
    if evidence is None:
        return ""
    return (
        f"{evidence.days:.0f} days, {sentences.count(evidence.requests, 'request')},"
        f" {sentences.percent(evidence.valid_share)} of the periods with data"
    )


def _answers(asked: Proposal) -> list[str]:
    if asked.state is not ProposalState.PENDING:
        return [f"More: {order_command('explain', asked.ref.name, asked.ref.region)}"]
    approve = [f"  {line}{f'  # {does}' if does else ''}" for line, does in effects.commands(asked)]
    approve += [f"  # {effects.CARE}"] if asked.approvable and asked.recommendation.offers_test else []
    note = effects.approval_note(asked.recommendation) if asked.approvable else ""
    approve += [f"  # {note}"] if note else []
    enable = [] if asked.approvable else ["It cannot be approved here:", *_indent(asked.enable), ""]
    return [
        *enable,
        "Answer with:",
        *approve,
        f'  {order_command("reject", asked.id, asked.ref.region)} --reason "..."',
        f"  {order_command('snooze', asked.id, asked.ref.region)}",
    ]


def _indent(text: str) -> list[str]:
    """A command or a diff as it has to be copied, two columns in."""
    return [f"  {line}" for line in (text or "ask whoever runs rightsizer").splitlines()]
