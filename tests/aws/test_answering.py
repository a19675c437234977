"""Answers to clicks: only to Slack, once, in time; links that S3 accepts; keys that are read when they must be."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import boto3
import botocore.auth
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from rightsizer.aws.light import FRESH, LASTS, PAUSE, LightSession, PageLinks, SlackSecret
from rightsizer.channels.response_url import LEAST_S, MOST_S, ResponseUrls
from rightsizer.errors import InputError, PermissionMissingError, ReadError, ThrottledError, WriteRefusedError
from rightsizer.render import blocks
from sandbox.account import Sandbox
from sandbox.links import LinkRefusedError, opened
from sandbox.role import Role
from sandbox.slack import Reply, Workspace, listening
from tests.samples import NOW

READS = [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket-1/pages/*.html"}]


@pytest.fixture
def workspace() -> Iterator[tuple[Workspace, ResponseUrls, str]]:
    made = Workspace(clock=lambda: NOW, answers=[Reply("U1", NOW)])
    with listening(made) as address:
        urls = ResponseUrls(lambda: NOW, address)
        yield made, urls, f"{made.hooks}/actions/T0SANDBOX/1/sandbox"
        urls.close()


def test_an_answer_reaches_the_person_who_clicked_and_replaces_nothing(
    workspace: tuple[Workspace, ResponseUrls, str],
) -> None:
    slack, urls, url = workspace
    urls.post(url, blocks.answer("a <b> & c"), NOW)
    (said,) = slack.answers[0].said
    assert said == {"response_type": "ephemeral", "replace_original": False, "text": "a &lt;b&gt; &amp; c"}


def test_a_sixth_answer_and_a_late_one_are_refused(workspace: tuple[Workspace, ResponseUrls, str]) -> None:
    slack, urls, url = workspace
    for _ in range(5):
        urls.post(url, blocks.answer("x"), NOW)
    with pytest.raises(WriteRefusedError, match="used_url"):
        urls.post(url, blocks.answer("x"), NOW)
    slack.answers = [Reply("U1", NOW - timedelta(minutes=31))]
    with pytest.raises(WriteRefusedError, match="expired_url"):
        urls.post(url, blocks.answer("x"), NOW)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://hooks.slack.com/actions/T/1/x",
        "https://hooks.slack.com.evil.example/actions/T/1/x",
        "https://hooks.slack.com@evil.example/actions/T/1/x",
        "https://hooks.slack.com:8443/actions/T/1/x",
        "https://evil.example/https://hooks.slack.com/actions",
        "https://hooks.slack.com/actions?x=1",
        "https://hooks.slack.com/actions#x",
        "https://hooks.slack.com/actions\\@evil.example",
        "https://hooks.slack.com/actions\r\nHost: evil.example",
        "https://hooks.slack.com/" + "a" * 600,
        "HTTPS://HOOKS.SLACK.COM/actions/T/1/x",
        "https://169.254.169.254/latest/meta-data",
        "https://slack.com/api/chat.postMessage",
    ],
)
def test_nothing_is_posted_to_another_address_than_slacks(url: str) -> None:
    urls = ResponseUrls(lambda: NOW, "https://slack.com/api")
    with mock.patch("urllib3.PoolManager.request") as sent, pytest.raises(InputError, match="no address of Slack's"):
        urls.post(url, {}, NOW)
    assert not sent.called


@pytest.mark.parametrize("host", ["hooks.slack.com", "hooks.slack-gov.com"])
@pytest.mark.parametrize(
    ("age_s", "seconds"), [(0, MOST_S), (1, MOST_S), (1.5, 1.2), (2.5, LEAST_S), (9, LEAST_S), (None, LEAST_S)]
)
def test_an_answer_is_given_up_before_slack_gives_up(host: str, age_s: float | None, seconds: float) -> None:
    urls = ResponseUrls(lambda: NOW, "https://slack.com/api")
    sent_at = None if age_s is None else NOW - timedelta(seconds=age_s)
    with mock.patch("urllib3.PoolManager.request", return_value=mock.Mock(status=200)) as sent:
        urls.post(f"https://{host}/actions/T/1/x", {}, sent_at)
    assert sent.call_args.kwargs["timeout"].total == pytest.approx(seconds)
    assert sent.call_args.kwargs["redirect"] is False


def test_a_slack_that_is_silent_costs_no_more_than_the_time_that_is_left() -> None:
    urls = ResponseUrls(lambda: NOW, "http://127.0.0.1:9/api")
    began = time.monotonic()
    with pytest.raises(ThrottledError, match="no answer"):
        urls.post("http://127.0.0.1:9/actions/1", {}, NOW)
    assert time.monotonic() - began < MOST_S + 1
    urls.close()


def test_a_link_is_a_button_and_one_that_is_too_long_stands_in_the_text() -> None:
    short, long = blocks.answer("x", "https://s3/a?b&c"), blocks.answer("x", "https://s3/" + "a" * 3000)
    (button,) = short["blocks"][1]["elements"]
    assert (button["url"], "https" in short["text"]) == ("https://s3/a?b&c", False)
    assert "blocks" not in long
    assert long["text"].endswith("a" * 3000)


# links


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with Sandbox(region="ap-southeast-2") as made:
        where: Any = {"CreateBucketConfiguration": {"LocationConstraint": "ap-southeast-2"}}
        made.client("s3").create_bucket(Bucket="bucket-1", **where)
        made.client("s3").put_object(Bucket="bucket-1", Key="pages/p-1.html", Body=b"<p>")
        yield made


def reader(box: Sandbox) -> Role:
    return Role(box.world, READS)


def test_a_link_opens_the_page_and_ends_soon(box: Sandbox) -> None:
    url = PageLinks(LightSession(), "bucket-1").link("pages/p-1.html")
    assert opened(box, url, reader(box)) == b"<p>"
    assert urlsplit(url).netloc == "bucket-1.s3.ap-southeast-2.amazonaws.com"
    assert "X-Amz-Expires=900" in url
    assert [call for call in box.calls if call.service == "s3" and call.operation == "GetObject"] == []


@pytest.mark.parametrize(("bucket", "style"), [("bucket-1", "virtual"), ("with.dots", "path")])
def test_a_link_is_the_one_that_boto3_would_sign(box: Sandbox, bucket: str, style: Any) -> None:
    moment = datetime(2026, 11, 22, 18, tzinfo=UTC)
    config = Config(signature_version="s3v4", s3={"addressing_style": style})
    regional = "https://s3.ap-southeast-2.amazonaws.com"
    client = boto3.client("s3", region_name="ap-southeast-2", config=config, endpoint_url=regional)
    with mock.patch.object(botocore.auth, "get_current_datetime", return_value=moment):
        wanted = client.generate_presigned_url(
            "get_object", Params={"Bucket": bucket, "Key": "pages/p 1+é.html"}, ExpiresIn=900
        )
        assert PageLinks(LightSession(), bucket).link("pages/p 1+é.html") == wanted


def test_a_link_opens_only_what_the_role_may_read(box: Sandbox) -> None:
    box.client("s3").put_object(Bucket="bucket-1", Key="digests/d.json", Body=b"{}")
    with pytest.raises(LinkRefusedError, match="AccessDenied"):
        opened(box, PageLinks(LightSession(), "bucket-1").link("digests/d.json"), reader(box))


def test_s3_refuses_links_of_signature_version_2_of_the_global_host_and_changed_ones(box: Sandbox) -> None:
    old = boto3.client("s3", region_name="ap-southeast-2", config=Config(signature_version="s3"))
    with pytest.raises(LinkRefusedError, match="Please use AWS4-HMAC-SHA256"):
        opened(
            box,
            old.generate_presigned_url("get_object", Params={"Bucket": "bucket-1", "Key": "pages/p-1.html"}),
            reader(box),
        )
    url = PageLinks(LightSession(), "bucket-1").link("pages/p-1.html")
    with pytest.raises(LinkRefusedError, match="TemporaryRedirect"):
        opened(box, url.replace(".s3.ap-southeast-2.", ".s3."), reader(box))
    with pytest.raises(LinkRefusedError, match="SignatureDoesNotMatch"):
        opened(box, url.replace("p-1", "p-2"), reader(box))
    with pytest.raises(LinkRefusedError, match="week"):
        opened(box, url.replace("Expires=900", "Expires=604801"), reader(box))


def test_a_link_ends_with_the_session_that_signed_it(box: Sandbox) -> None:
    url, now = PageLinks(LightSession(), "bucket-1").link("pages/p-1.html"), datetime.now(UTC)
    assert opened(box, url, reader(box), session_ends=now + timedelta(hours=1)) == b"<p>"
    with pytest.raises(LinkRefusedError, match="ExpiredToken"):
        opened(box, url, reader(box), session_ends=now - timedelta(seconds=1))
    assert timedelta(days=7) >= LASTS, "longer than Signature Version 4 allows"
    with mock.patch.dict("os.environ", AWS_SESSION_TOKEN="of-the-next-session"):
        with pytest.raises(LinkRefusedError, match="InvalidToken"):
            opened(box, url, reader(box))
        again = PageLinks(LightSession(), "bucket-1").link("pages/p-1.html")
        assert opened(box, again, reader(box)) == b"<p>"


def test_s3_refuses_a_link_without_the_token_of_its_session(box: Sandbox) -> None:
    url = PageLinks(LightSession(), "bucket-1").link("pages/p-1.html")
    with pytest.raises(LinkRefusedError, match="InvalidToken"):
        opened(box, url.replace("X-Amz-Security-Token=sandbox&", ""), reader(box))


def test_a_function_without_credentials_signs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    session = LightSession("eu-west-1")
    monkeypatch.setattr(session, "credentials", lambda: None)
    with pytest.raises(ReadError, match="signing a link"):
        PageLinks(session, "b").link("pages/p-1.html")


# the secret


class Vault:
    """Secrets Manager with one secret, counting its calls."""

    def __init__(self) -> None:
        self.text, self.calls, self.error = '{"signing_secret":"old"}', 0, ""
        self.now = NOW
        client: Any = self
        self.secret = SlackSecret(client, "arn:s", lambda: self.now)

    def get_secret_value(self, SecretId: str) -> dict[str, str]:  # noqa: N803  (AWS's own name)
        self.calls += 1
        if self.error:
            raise ClientError({"Error": {"Code": self.error, "Message": self.text}}, "GetSecretValue")
        return {"SecretString": self.text}


def test_fifty_requests_while_secrets_manager_is_down_cost_one_call() -> None:
    vault = Vault()
    vault.error = "InternalServiceError"
    for _ in range(50):
        with pytest.raises(ReadError):
            vault.secret.keys()
    assert vault.calls == 1
    vault.error, vault.now = "", vault.now + PAUSE + timedelta(seconds=1)
    assert vault.secret.keys().signing_secret == "old"


def test_a_rotated_secret_is_read_at_once_and_forged_requests_cost_few_calls() -> None:
    vault = Vault()
    vault.secret.keys()
    vault.now += timedelta(minutes=1)
    vault.text = '{"signing_secret":"new"}'
    renewed = [vault.secret.renew() for _ in range(50)]
    assert renewed[0] is not None
    assert renewed[0].signing_secret == vault.secret.keys().signing_secret == "new"
    assert renewed[1:] == [None] * 49
    assert vault.calls == 2


def test_a_renewal_that_fails_leaves_the_known_keys_no_longer_than_they_were_good() -> None:
    vault = Vault()
    vault.secret.keys()
    vault.now += timedelta(minutes=1)
    vault.error = "InternalServiceError"
    assert vault.secret.renew() is None
    assert vault.secret.keys().signing_secret == "old"
    vault.now = NOW + FRESH + timedelta(seconds=1)
    with pytest.raises(ReadError):
        vault.secret.keys()


def test_a_key_of_the_customers_that_may_not_be_used_is_named() -> None:
    vault = Vault()
    vault.error, vault.text = "AccessDeniedException", "Access to KMS is not allowed"
    with pytest.raises(PermissionMissingError, match="kms:Decrypt") as refused:
        vault.secret.keys()
    assert "let the key's policy allow it" in str(refused.value)
