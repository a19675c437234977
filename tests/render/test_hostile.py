"""Whatever others wrote, no channel lets it forge a line, a style, a mention, a formula or a terminal command."""

import csv as reader
import io
import json
import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.aws.errors import text_of
from rightsizer.channels.sns import fit_subject
from rightsizer.domain.capacity_change import CapacityChange, ManualStep
from rightsizer.domain.endpoint import EndpointRef, PolicyChange
from rightsizer.domain.message import CapacityChangeMessage, Notice, ProposalMessage
from rightsizer.domain.option import Target
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.proposal import Decision, Proposal, ProposalState
from rightsizer.domain.reason import LONGEST, Code, Reason, clean_text, one_line
from rightsizer.domain.recommendation import Recommendation
from rightsizer.domain.report import Report
from rightsizer.render import capacity_change, csv, details_page, messages, report_json, report_page, slack, text
from rightsizer.render.details_view import details_blocks
from rightsizer.reporting.totals import Records, make_report
from rightsizer.terminal import tables
from rightsizer.terminal.tables import Screen
from tests.samples import NOW, option, proposal, recommendation

BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
PARTS = [
    *("*bold*", "`code`", "```", "~gone~", "_slanted_", "<!channel>", "<@U0ADA>", "&lt;", "> quoted", "[red]x[/red]"),
    *("\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b2J", "\r", "\n", "\r\n", "\u2028", "\u2029", "\x85", "\x00", "\t"),
    *(BIDI, "\u200b", "\ufeff", "\u00ad", "\U000e0041", "=1+1", "\uff1d1", "+1", "-1", "@SUM(A1)", " =1", "\n=1", "'"),
    *("</pre><script>alert(1)</script>", '" onload="x', "Owner:   somebody else", "x" * 300),
]
others_wrote = st.lists(st.sampled_from(PARTS) | st.text(max_size=9), min_size=1, max_size=6).map("".join).filter(bool)
HOSTILE = "".join(PARTS)


def asked(said: str) -> Proposal:
    """A proposal in which every text that others may write says this."""
    found = recommendation(
        owner=said,
        ref=EndpointRef("111122223333", "eu-west-1", said),
        variant=said,
        beside=(said,),
        instance_type=said,
        reason=Reason(Code.CHEAPER_OPTION, f"why {said}"),
        gate_reason=Reason(Code.NEEDS_APPROVAL, f"gate {said}"),
        options=(
            option(
                notes=(said,),
                facts={said: said},
                policy_changes=(PolicyChange(said, said),),
                not_checked=(said,),
                client_change=said,
                target=Target(said, 1),
            ),
        ),
        not_checked=(said,),
        notes=(Reason(Code.BAD_TAG, f"note {said}"),),
    )
    decision = Decision(ProposalState.REJECTED, f"cli:{said}", NOW, said)
    return replace(
        proposal(), recommendation=found, state=ProposalState.REJECTED, decision=decision, outcome=said, enable=said
    )


def errand_of(said: str) -> CapacityChange:
    """The same for an errand."""
    return CapacityChange(
        "e-1", said or "x", said, ManualStep(said or "x", "UpdateCluster", {"ClusterName": said}), f"headline {said}",
        Reason(Code.CLUSTER_SHORT, f"why {said}"), NOW, NOW + timedelta(days=1), ProposalState.PENDING, False,
        enable=said, facts=((said, said),), not_checked=(said,), outcome=said,
    )  # fmt: skip


def reported(said: str) -> Report:
    """A report about such a proposal."""
    one = asked(said)
    records = Records(
        account="111122223333",
        region="eu-west-1",
        recommendations=[one.recommendation],
        proposals=[one],
        ledger=[],
        occurrences=[Occurrence(said, NOW, said, said, said)],
        running_cost=None,
    )
    return make_report(records, NOW - timedelta(days=7), NOW + timedelta(days=1), NOW)


def texts(block: Any) -> list[dict[str, Any]]:
    """The text objects of Slack blocks."""
    if isinstance(block, list):
        return [one for part in block for one in texts(part)]
    if not isinstance(block, dict):
        return []
    own = [block] if block.get("type") in ("mrkdwn", "plain_text") else []
    return own + [one for part in block.values() for one in texts(part)]


def printable(shown: str) -> bool:
    return all(line.isprintable() for line in shown.split("\n"))


OURS = re.compile(
    r"```.*?```|`rightsizer [^`]*`|^\*[^*\n]*\*$|^\*[^*\n]*\*(?= · )|^\*It cannot be approved [a-z]+[.:]\*|<@\w+>",
    re.S | re.M,
)


@given(others_wrote)
def test_slack_shows_no_style_mention_or_control_character_of_others(said: str) -> None:
    pending = replace(asked(said), state=ProposalState.PENDING, approvable=False, decision=None)
    notice = Notice(said, said)
    for one in (ProposalMessage(asked(said)), ProposalMessage(pending), CapacityChangeMessage(errand_of(said)), notice):
        view = details_blocks(one.proposal) if isinstance(one, ProposalMessage) else []
        for shown in texts([*messages.slack_blocks(one), *view]):
            assert printable(shown["text"]), shown
            assert len(shown["text"]) <= 3000
            if shown["type"] == "mrkdwn":
                rest = OURS.sub("", shown["text"])
                assert not re.search(r"[*`~]|<(?!@)", rest), rest
        line = messages.slack_line(one)
        assert line.isprintable()
        assert not re.search(r"[*`~<]", line)
    for shown in texts(slack.report_blocks(reported(said))):
        assert printable(shown["text"])


@given(others_wrote)
def test_a_text_has_as_many_lines_as_without_hostile_words_and_none_is_forged(said: str) -> None:
    for make in (lambda word: ProposalMessage(asked(word)), lambda word: CapacityChangeMessage(errand_of(word))):
        subject, body = messages.plain(make(said))
        plain_subject, plain_body = messages.plain(make("word"))
        assert subject.isprintable()
        assert plain_subject.isprintable()
        assert body.count("\n") == plain_body.count("\n")
        assert printable(body)
        assert fit_subject(subject).isascii()
    assert sum(line.startswith("Owner:") for line in text.proposal(asked(said))[1].split("\n")) == 1
    assert text.report(reported(said))[1].count("\n") == text.report(reported("word"))[1].count("\n")


@given(others_wrote)
def test_a_page_holds_no_tag_and_no_control_character_of_others(said: str) -> None:
    pages = [
        details_page.details_page(asked(said)),
        capacity_change.html(errand_of(said)),
        report_page.report(reported(said)),
    ]
    plain = [
        details_page.details_page(asked("word")),
        capacity_change.html(errand_of("word")),
        report_page.report(reported("word")),
    ]
    for page, usual in zip(pages, plain, strict=True):
        assert printable(page)
        assert page.count("<script") == usual.count("<script")
        assert page.count("<pre") == usual.count("<pre")


@given(others_wrote)
def test_no_cell_is_a_formula_or_more_than_one_line(said: str) -> None:
    head, *rows = reader.reader(io.StringIO(csv.report(reported(said))))
    assert rows
    assert {len(row) for row in rows} == {len(head)}
    for cell in (cell for row in rows for cell in row):
        assert cell.isprintable()
        assert not re.match(r"\s*[=+@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62]", cell)
        assert not re.match(r"\s*-(?![0-9.]+$)", cell)


@given(others_wrote)
def test_json_is_printable_and_says_exactly_what_was_written(said: str) -> None:
    made = report_json.report(reported(said))
    assert made.isprintable()
    assert json.loads(made)["recommendations"][0]["owner"] == said


@given(others_wrote)
def test_a_terminal_gets_no_control_sequence_and_no_markup_of_others(said: str) -> None:
    found: list[Recommendation] = [asked(said).recommendation]
    screen = Screen(file=io.StringIO(), width=160, force_terminal=True, color_system=None)
    screen.print(tables.explanation(found[0]))
    screen.print(f"{said} could not be read", markup=False)
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert printable(shown)
    assert "\x1b" not in shown


def test_a_style_of_ours_still_reaches_the_terminal() -> None:
    screen = Screen(file=io.StringIO(), width=80, force_terminal=True, color_system="standard")
    screen.print("[red]ours[/red]")
    assert screen.file.getvalue() == "\x1b[31mours\x1b[0m\n"  # type: ignore[attr-defined]


@given(st.text(st.characters(exclude_categories=())) | others_wrote, st.integers(1, 50))
def test_what_is_cleaned_is_printable_bounded_and_stays_so(said: str, most: int) -> None:
    line = one_line(said, most)
    assert line.isprintable()
    assert len(line) <= most
    assert one_line(line, most) == line
    assert printable(clean_text(said))
    assert clean_text(said).replace("\n", " ") == one_line(said)
    line.encode()


@pytest.mark.parametrize("usual", ["chat-7b", "équipe données", "検索チーム", "team_search", "👍 100 %", "a  b"])
def test_what_people_write_every_day_is_left_as_it_is(usual: str) -> None:
    assert one_line(usual) == clean_text(usual) == usual


def test_a_text_of_any_length_is_cut_with_an_ellipsis() -> None:
    assert one_line("x" * 210_000) == "x" * (LONGEST - 1) + "…"


def test_the_reason_and_an_error_message_of_aws_are_one_line() -> None:
    from botocore.exceptions import ClientError

    assert Reason(Code.READ_FAILED, HOSTILE).sentence.isprintable()
    found = text_of(ClientError({"Error": {"Code": "X", "Message": HOSTILE * 9}}, "Op"))
    assert found.isprintable()
    assert len(found) <= 1024


def test_the_cents_of_a_loss_stay_a_number() -> None:
    loss = recommendation(options=(option(saving_usd_per_month=Decimal("-12.50")),))
    report = reported("word")
    report = replace(report, recommendations=(loss,), proposals=(), funnel=())
    assert ",-12.50," in csv.report(report)
