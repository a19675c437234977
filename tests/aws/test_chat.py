"""What Amazon Q Developer in chat applications gets keeps to its schema; a message that breaks it is dropped."""

import json
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from rightsizer.channels.sns import LONGEST_WITH_CHAT, Topic
from rightsizer.domain.message import Message, Notice, ProposalMessage, ReportMessage
from rightsizer.domain.proposal import ProposalState
from rightsizer.reporting.totals import Records, make_report
from tests.samples import NOW, proposal

TEXT = {"type": "string", "minLength": 1}
SCHEMA = Draft202012Validator(
    {
        "type": "object",
        "required": ["version", "source", "content"],
        "additionalProperties": False,
        "properties": {
            "version": {"const": "1.0"},
            "source": {"const": "custom"},
            "id": TEXT,
            "content": {
                "type": "object",
                "required": ["description"],
                "additionalProperties": False,
                "properties": {
                    "textType": {"const": "client-markdown"},
                    "title": TEXT | {"maxLength": 250},
                    "description": TEXT | {"maxLength": 8000},
                    "nextSteps": {"type": "array", "minItems": 1, "maxItems": 10, "items": TEXT | {"maxLength": 350}},
                    "keywords": {"type": "array", "minItems": 1, "maxItems": 6, "items": TEXT | {"maxLength": 75}},
                },
            },
            "metadata": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"threadId": TEXT, "summary": TEXT | {"maxLength": 250}, "eventType": TEXT},
            },
        },
    }
)
"""Admin guide of Amazon Q Developer in chat applications, "Custom notifications", with lengths that are careful."""
REPORT = make_report(Records("111122223333", "eu-west-1", [], [], [], []), NOW, NOW, NOW)


def published(message: Message) -> dict[str, Any]:
    client = mock.Mock()
    Topic(client, "arn", for_chat=True).post(message)
    said: dict[str, Any] = client.publish.call_args.kwargs
    assert said["MessageStructure"] == "json"
    assert len(said["Message"].encode()) < 256 * 1024
    return dict(json.loads(said["Message"]))


@pytest.mark.parametrize(
    ("message", "event"),
    [
        (Notice("a", "b"), "rightsizer.notice"),
        (ProposalMessage(proposal()), "rightsizer.proposal"),
        (ReportMessage(REPORT), "rightsizer.report"),
    ],
)
def test_mail_gets_the_text_and_the_chat_its_form(message: Message, event: str) -> None:
    forms = published(message)
    assert forms.keys() == {"default", "https"}
    form = json.loads(forms["https"])
    SCHEMA.validate(form)
    assert form["metadata"]["eventType"] == event, "a name that filters rely on"
    client = mock.Mock()
    Topic(client, "arn").post(message)
    assert client.publish.call_args.kwargs["Message"] == forms["default"], "without a chat the text alone"


def test_what_follows_on_a_proposal_is_one_thread_and_a_question_says_how_to_answer() -> None:
    asked = json.loads(published(ProposalMessage(proposal()))["https"])
    over = json.loads(published(ProposalMessage(replace(proposal(), state=ProposalState.PROVEN)))["https"])
    assert asked["metadata"]["threadId"] == over["metadata"]["threadId"] == proposal().id
    assert f"rightsizer approve {proposal().id} --region eu-west-1" in asked["content"]["nextSteps"]
    assert "nextSteps" not in over["content"]
    assert asked["content"]["description"].count("\n") > 3, "lines stay lines"


@given(st.text(max_size=400), st.text(max_size=400).map(lambda text: text * 60))
def test_nothing_that_somebody_wrote_breaks_the_schema_or_mentions_anybody(subject: str, body: str) -> None:
    said = json.loads(published(Notice(f"<!channel> {subject}", f"<@U1> {body}"))["https"])
    SCHEMA.validate(said)
    assert "<" not in said["content"]["title"] + said["content"]["description"]


def test_a_text_of_any_length_fits() -> None:
    forms = published(Notice("long", '\n"' * 200_000))
    assert len(forms["default"].encode()) <= LONGEST_WITH_CHAT
