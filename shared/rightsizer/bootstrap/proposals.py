"""The flows of the doors that ask and tell: propose, respond, report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from rightsizer.bootstrap import (
    bill_ports,
    build_once,
    build_per_policy,
    hours_zone,
    misread,
    now,
    policy_document,
    price_sources,
    session,
    settings,
    store,
    table,
    warn_about_botocore,
)
from rightsizer.settings import require_settings

if TYPE_CHECKING:
    from rightsizer.aws.light import LightSession
    from rightsizer.aws.table import Table
    from rightsizer.domain.capacity_change import CapacityChangeMoved
    from rightsizer.domain.message import SleepMoved
    from rightsizer.domain.policy_document import PolicyDocument
    from rightsizer.domain.proposal import Decision, ProposalMoved
    from rightsizer.domain.trigger import Click, Trigger
    from rightsizer.flows.report import ReportSources, WrittenReport
    from rightsizer.flows.respond import Answer


@build_per_policy
def propose() -> Callable[[Sequence[ProposalMoved | CapacityChangeMoved], Sequence[SleepMoved]], list[str]]:
    """The flow of the propose door: records of the stream in, the sequences to deliver again out."""
    from rightsizer.aws.message_book import Messages
    from rightsizer.aws.messaging import EventBus, PictureOrders
    from rightsizer.aws.s3 import BucketReports
    from rightsizer.bootstrap.channels import board, notifier, routed_slack, slack
    from rightsizer.channels.pages import StoredDetailsPages
    from rightsizer.flows import propose as flow

    require_settings(settings(), "bucket")
    pages = StoredDetailsPages(BucketReports(session().client("s3"), settings().bucket))
    events = EventBus(session().client("events"))
    drawn_by = settings().picture_function
    draw = PictureOrders(session().client("lambda"), drawn_by).start if drawn_by else None
    ports = flow.ProposePorts(board(), notifier(), Messages(table()), pages, events, slack(), draw)
    if (routed := routed_slack()) is not None:
        ports = replace(ports, digest_of=routed.digest_of)
    return lambda moves, sleeps: [*flow.propose(ports, moves, now()), *flow.tell_sleeps(ports, sleeps)]


@build_per_policy
def picture() -> Callable[[str], bool]:
    """The flow of the picture door: the id of a proposal in, whether its message shows a picture now out."""
    import time

    from rightsizer.aws.message_book import Messages
    from rightsizer.aws.metrics import CloudWatchMetrics
    from rightsizer.aws.proposals import Proposals
    from rightsizer.bootstrap import catalogue
    from rightsizer.bootstrap.channels import board, slack
    from rightsizer.errors import SettingsError
    from rightsizer.flows import picture as flow
    from rightsizer.render.pictures import draw, figure_class
    from rightsizer.render.slack import picture_text

    known = slack()
    if known is None:
        raise SettingsError("the function picture needs Slack: RIGHTSIZER_SLACK_SECRET and RIGHTSIZER_SLACK_CHANNEL")
    store, book, metrics = Proposals(table()), Messages(table()), CloudWatchMetrics(session(), workers=1)
    ports = flow.PicturePorts(
        store, book, metrics, catalogue(), draw, picture_text, known, board(), time.sleep, figure_class
    )
    return lambda proposal: flow.show_picture(ports, proposal)


@build_once
def respond() -> Callable[[Any, datetime], Answer]:
    """The flow of the respond door. Bare botocore and no pydantic: it must answer within three seconds."""
    from rightsizer.aws import decisions
    from rightsizer.aws.light import LightSession, PageLinks, SlackSecret, stored_page
    from rightsizer.aws.table import Table
    from rightsizer.channels.response_url import ResponseUrls
    from rightsizer.channels.views import Views
    from rightsizer.domain.proposal import ProposalState
    from rightsizer.flows import respond as flow
    from rightsizer.intake.slack import parse_interaction
    from rightsizer.render import blocks

    warn_about_botocore()
    known, light = settings(), LightSession()
    require_settings(known, "table", "slack_secret", "bucket")
    one_table = Table(light.dynamodb(), known.table)
    secret = SlackSecret(light.secrets(), known.slack_secret, now)
    urls = ResponseUrls(now, known.slack_endpoint)
    document = _document_source(light)
    people, require, refusal = _deciders(one_table, document)
    views = Views(lambda: secret.keys().bot_token, now, known.slack_endpoint)

    def decide(proposal: str, decision: Decision, at: datetime) -> dict[str, Any]:
        require(proposal, decision.by, decision.state is ProposalState.APPROVED)
        return decisions.decide(one_table, proposal, decision, at)

    def ask_back(proposal: str, by: str, at: datetime) -> dict[str, Any]:
        require(proposal, by, False)
        return decisions.request_rollback(one_table, proposal, by, at)

    def take(proposal: str, revision: int, place: int, by: str, at: datetime) -> dict[str, Any]:
        require(proposal, by, False)
        return decisions.take_option(one_table, proposal, revision, place, by, at)

    def tell(click: Click, text: str, link: str) -> None:
        urls.post(click.response_url, blocks.answer(text, link), click.sent_at)

    def show_details(click: Click, proposal: str, page: str) -> None:
        views.show_details(click, stored_page(light, known.bucket, f"pages/{proposal}.json"), page)

    wake = partial(_wake, one_table, document)
    form, say, freezer = views.open_reason_form, views.say, partial(decisions.freezer, one_table)
    link = PageLinks(light, known.bucket).link
    ports = flow.RespondPorts(
        people, decide, ask_back, link, tell, take, form, show_details, say, wake, refusal, freezer, one_table.region
    )
    return lambda event, at: flow.respond(parse_interaction(event, secret, at), ports, at)


def _wake(
    table: Table, document: Callable[[], PolicyDocument], name: str, stay: timedelta, user: str, at: datetime
) -> str:
    """Wake an endpoint by a click; most starts of the function see none, and load nothing for it."""
    from rightsizer.bootstrap.waking import wake_by_click

    return wake_by_click(table, document, name, stay, user, at)


def _document_source(light: LightSession) -> Callable[[], PolicyDocument]:
    """The policy document, at most a minute old; an empty one in a stack without, which loads nothing for it."""
    known = settings()
    if not known.policy_parameter:
        return policy_document
    from rightsizer.aws.policy_parameter import PolicyParameter

    return PolicyParameter(light.ssm, known.policy_parameter, now).document


def _deciders(
    one_table: Table, document: Callable[[], PolicyDocument]
) -> tuple[Callable[[], frozenset[str]], Callable[[str, str, bool], None], Callable[[str, str], str]]:
    """Slack users who decide on something, what asks a proposal's own list, and what words its refusal.

    A stack without a policy document loads nothing for it: its one list was asked already.
    """
    known = settings()
    base = known.limits.approvers
    if not known.policy_parameter:
        return lambda: base.slack_users, lambda *_: None, lambda *_: ""
    from rightsizer.bootstrap.deciders import refusal_by_document, require_decider, slack_approvers

    def require(proposal: str, by: str, approves: bool) -> None:
        require_decider(one_table, proposal, by, (base, document()), approves=approves)

    def refusal(proposal: str, by: str) -> str:
        return refusal_by_document(one_table, proposal, by, (base, document()))

    return lambda: slack_approvers(base, document()), require, refusal


@build_per_policy
def report() -> Callable[[Trigger, datetime], WrittenReport]:
    """The flow of the report door."""
    from rightsizer.aws.s3 import BucketReports
    from rightsizer.bootstrap.channels import board, notifier, report_events
    from rightsizer.domain.trigger import ReportDue
    from rightsizer.errors import InputError
    from rightsizer.flows import report as flow
    from rightsizer.render import report_formats, report_json

    require_settings(settings(), "bucket")

    @build_once
    def ports() -> flow.ReportPorts:
        files = BucketReports(session().client("s3"), settings().bucket)
        formats = report_formats.REPORT_FORMATS
        return flow.ReportPorts(
            _report_sources(), files, board(), notifier(), formats, report_json.line, report_events().send
        )

    def write(trigger: Trigger, at: datetime) -> WrittenReport:
        if not isinstance(trigger, ReportDue):
            raise InputError(f"a report is started by its schedule, not by {trigger.kind}")
        written = flow.report(ports(), *flow.report_window(trigger.period, trigger.scheduled_at), at)
        flow.tell(ports(), written)
        return written

    return write


def _report_sources() -> ReportSources:
    from rightsizer.aws.account import LambdaUse
    from rightsizer.aws.hours import HoursTable
    from rightsizer.aws.ledger import HistoryTable, SavingsTable
    from rightsizer.aws.prices import OrderedPrices, SavingsPlans
    from rightsizer.bootstrap.bill import IN_STACK_S, bill_reader
    from rightsizer.domain.policy import Policy
    from rightsizer.domain.policy_document import Subject, effective_limits, effective_policy
    from rightsizer.domain.report import Stack
    from rightsizer.flows.report import ReportSources

    prices = OrderedPrices(price_sources(None), now, SavingsPlans(session()))
    limits = effective_limits(settings().limits, policy_document(), Subject())
    own = Policy(minimum_saving_usd=settings().minimum_saving_usd)
    return ReportSources(
        account=session().account(),
        region=session().region,
        store=store(),
        ledger=SavingsTable(table()),
        past=HistoryTable(table()),
        own=LambdaUse(session().client("cloudwatch"), settings().functions),
        stack=Stack(settings().arch == "arm64", settings().grouped_alarm),
        policy=effective_policy(own, policy_document(), Subject()),
        misread=misread(),
        bill=bill_ports(session(), prices, HoursTable(table()), hours_zone(limits)),
        charges=(lambda: bill_reader(session(), settings().bill, IN_STACK_S)) if settings().bill else None,
    )
