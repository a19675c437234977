from dataclasses import replace
from datetime import UTC, datetime

from rightsizer.render.blocks import reason_form
from sandbox.slack import Message
from sandbox.slack_page import mrkdwn, page
from sandbox.slack_parts import Modal


def message(*blocks: dict[str, object]) -> Message:
    return Message("C1", "1.1", "saves $5 a month", list(blocks))


def test_a_name_that_looks_like_html_is_shown_and_not_obeyed() -> None:
    assert "<script>" not in page([message({"type": "header", "text": {"type": "plain_text", "text": "<script>"}})], [])
    assert mrkdwn("&lt;b&gt;") == "&lt;b&gt;"
    assert mrkdwn("<b>") == "&lt;b&gt;"


def test_bold_code_and_blocks_of_code_are_drawn() -> None:
    assert mrkdwn("*Owner*\n`rightsizer explain a*b`") == "<b>Owner</b><br><code>rightsizer explain a*b</code>"
    assert mrkdwn("```aws *x*```") == "<pre>aws *x*</pre>"


def test_buttons_keep_their_style_and_an_unknown_block_is_named() -> None:
    button = {"type": "button", "text": {"type": "plain_text", "text": "Approve"}, "style": "primary"}
    drawn = page([message({"type": "actions", "elements": [button]}, {"type": "video"})], [])
    assert '<button class="primary">Approve</button>' in drawn
    assert "[video]" in drawn


def test_a_message_has_the_day_and_the_time_at_which_it_was_posted() -> None:
    posted = replace(message(), posted_at=datetime(2026, 11, 20, 4, 11, tzinfo=UTC))
    assert "Fri 20 Nov 04:11 UTC</small>" in page([posted], [])


def test_a_form_is_drawn_with_its_question_its_example_its_hint_and_both_buttons() -> None:
    drawn = page([], [], [Modal("V1", "U1", reason_form("{}"))])
    asked = "<p><b>Why not?</b> (optional)</p><pre>needed for the launch in May</pre>"
    assert f'<h2>Reject</h2>{asked}<div class="context"><p>The owner and later readers see it.' in drawn
    assert '<p><button>Close</button><button class="primary">Reject</button></p></dialog>' in drawn


def test_a_message_without_blocks_is_its_text() -> None:
    assert "saves $5 a month" in page([message()], [])
