"""A message gets its picture by a function of its own, and keeps it to its end."""

from unittest.mock import patch

from rightsizer.domain.recommendation import Recommendation, WeekSignals
from tests.doors.scene import BIG, PROPOSE, Scene, scene


def drawn(found: Recommendation, seen: WeekSignals) -> bytes:
    assert any(one is not None for one in seen.gpu_percent)
    return b"\x89PNG"


def pictures(at: Scene) -> list[str]:
    return [block["slack_file"]["id"] for block in at.message(BIG).blocks if block["type"] == "image"]


def test_the_picture_follows_the_message_and_later_edits_keep_it() -> None:
    with (
        scene() as at,
        patch("rightsizer.render.pictures.figure_class"),
        patch("rightsizer.render.pictures.draw", drawn),
        patch("time.sleep"),
    ):
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.pass_time(minutes=2)
        (file,) = at.slack.files
        assert (file.name, file.content, file.is_complete) == (f"{BIG}-two-weeks.png", b"\x89PNG", True)
        assert "GPU use, GPU memory and p95 latency" in file.says
        assert pictures(at) == [file.id]
        at.click(BIG, "Snooze 7 days")
        at.pass_time(minutes=1)
        assert "Snoozed" in at.message(BIG).plain()
        assert pictures(at) == [file.id]
        assert len([one for one in at.stack.runs("picture") if one.error is None]) == 1
        assert at.refused() == []
        assert at.stack.dead_letters() == []


def test_without_the_scope_or_the_library_the_message_stands_without_a_picture() -> None:
    with scene() as at, patch("rightsizer.render.pictures.draw", drawn):
        at.slack.scopes -= {"files:write"}
        at.add(BIG, tags=PROPOSE)
        at.sweep()
        at.pass_time(minutes=2)
        assert pictures(at) == []
        assert set(at.message(BIG).buttons()) >= {"Approve", "Reject", "Details"}
        assert at.stack.failures == []
        assert at.stack.dead_letters() == []


def test_the_owner_whose_e_mail_is_in_the_tag_is_mentioned() -> None:
    with scene() as at:
        at.slack.members_by_email["ada@example.com"] = "U0ADA12345"
        at.add(BIG, tags={**PROPOSE, "rightsizer:owner": "ada@example.com"})
        at.sweep()
        assert at.message(BIG).blocks[0]["text"]["text"].startswith("<@U0ADA12345> *")
        assert not [one for one in at.box.calls.of("sns", "Publish") if "owner" in one.params["Subject"]]


def test_without_the_scope_for_e_mails_the_tag_is_named_and_the_topic_told_once() -> None:
    with scene() as at:
        at.slack.scopes -= {"users:read.email"}
        for name in (BIG, "other-embeddings"):
            at.add(BIG, tags={**PROPOSE, "rightsizer:owner": "ada@example.com"}, as_name=name)
        at.sweep()
        assert "owner ada@example.com" in at.message(BIG).blocks[0]["text"]["text"]
        told = [one for one in at.box.calls.of("sns", "Publish") if "owner" in one.params["Subject"]]
        assert len(told) == 1
        assert "slack-app-manifest.yaml" in told[0].params["Message"]
