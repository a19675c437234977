"""The flows of the doors that ask and tell: propose, respond, report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rightsizer.bootstrap import notifier, now, once, session, settings, table
from rightsizer.settings import require

if TYPE_CHECKING:
    from rightsizer.flows.respond import Answer
    from rightsizer.model.proposal import Decision, ProposalMoved


@once
def propose() -> Callable[[Sequence[ProposalMoved]], list[str]]:
    """The flow of the propose door: moves of the stream in, the sequences to deliver again out."""
    from rightsizer.aws.messages import Messages
    from rightsizer.aws.reports import BucketReports
    from rightsizer.flows import propose as flow
    from rightsizer.render import page, slack, text

    require(settings(), "bucket")
    pages = BucketReports(session().client("s3"), settings().bucket)
    voice = flow.Voice(slack.proposal_blocks, slack.proposal_text, text.proposal, page.proposal)
    ports = flow.ProposePorts(notifier(), Messages(table()), pages, voice)
    return lambda moves: flow.propose(ports, moves)


@once
def respond() -> Callable[[Any, datetime], Answer]:
    """The flow of the respond door. Bare botocore and no pydantic: it must answer within three seconds."""
    from rightsizer.aws import decisions
    from rightsizer.aws.light import LightSession
    from rightsizer.aws.secrets import SlackSecret
    from rightsizer.aws.table import Table
    from rightsizer.flows import respond as flow
    from rightsizer.intake.slack import interaction

    known, light = settings(), LightSession()
    require(known, "table", "slack_secret")
    one_table = Table(light.dynamodb(), known.table)
    secret = SlackSecret(light.secrets(), known.slack_secret, now)

    def decide(proposal: str, decision: Decision, at: datetime) -> Any:
        return decisions.decide(one_table, proposal, decision, at)

    return lambda event, at: flow.respond(
        interaction(event, secret.keys().signing_secret, at), known.approvers, decide, at
    )
