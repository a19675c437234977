"""Notification channels of a stack."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rightsizer.bootstrap import build_once, build_per_policy, misread, now, policy_document, session, settings, table

if TYPE_CHECKING:
    from rightsizer.aws.messaging import ReportEvents
    from rightsizer.channels.notifier import Channels, RoutedSlack
    from rightsizer.channels.slack import Slack
    from rightsizer.ports.evaluation import Notifier


def channels() -> tuple[Notifier, ...]:
    """Channels that the stack tells each thing once, in this order."""
    from rightsizer.channels.sns import Topic

    notifiers: list[Notifier] = []
    if arn := settings().topic_arn:
        notifiers.append(Topic(session().client("sns"), arn, for_chat=settings().topic_for_chat))
    return tuple(notifiers)


@build_once
def report_events() -> ReportEvents:
    """Sends the events of reports, and those that the bus refused again; the client is made when one is sent."""
    from rightsizer.aws.messaging import EventBus, ReportEvents

    return ReportEvents(lambda: EventBus(session().client("events")), table(), now)


@build_per_policy
def notifier() -> Channels:
    """All channels that are told each thing once, as one."""
    from rightsizer.channels.notifier import Channels

    return Channels(channels(), misread())


@build_per_policy
def board() -> Channels:
    """Channels whose one message of a proposal is kept up to date to its end: Slack, or none without Slack."""
    from rightsizer.channels.notifier import Channels

    known: Notifier | None = routed_slack() or slack()
    return Channels((known,) if known is not None else (), misread())


@build_per_policy
def routed_slack() -> RoutedSlack | None:
    """Slack by the channels of the policy document; None where the stack has no Slack or no document."""
    if slack() is None or not settings().policy_parameter:
        return None
    from rightsizer.channels.notifier import RoutedSlack

    return RoutedSlack(_slack_channel, settings().slack_channel, policy_document())


@build_once
def slack() -> Slack | None:
    """The channel of the stack; None where it has no Slack."""
    known = settings()
    return _slack_channel(known.slack_channel) if known.slack_secret and known.slack_channel else None


def _slack_channel(channel: str) -> Slack:
    from rightsizer.aws.light import SlackSecret
    from rightsizer.channels.slack import Slack

    known = settings()
    secret = SlackSecret(session().client("secretsmanager"), known.slack_secret, now)
    return Slack(lambda: secret.keys().bot_token, channel, time.sleep, known.slack_endpoint)
