"""Slack, the topic, the secret and the report stores, over the wire."""

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any
from unittest import mock

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from rightsizer.aws.light import LightSession, SlackSecret
from rightsizer.aws.s3 import BucketReports
from rightsizer.channels.notifier import Channels
from rightsizer.channels.slack import Slack
from rightsizer.channels.sns import Topic, fit_subject
from rightsizer.domain.message import Notice
from rightsizer.domain.proposal import MessageRef
from rightsizer.errors import InputError, PermissionMissingError, SettingsError, ThrottledError, WriteRefusedError
from rightsizer.ports.evaluation import Notifier, ReportStore
from tests.samples import NOW

HELLO = Notice("hello", "It is there.")
OK: tuple[int, dict[str, str], Any] = (200, {}, {"ok": True, "channel": "C9", "ts": "1.5"})


class SlackServer:
    """Answers in turn, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str], Any]] = []
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append((self.path, self.headers["Authorization"], body))
                status, headers, answer = server.answers.pop(0)
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Be silent."""

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/api"
        self.slept: list[float] = []
        self.slack = Slack(lambda: "xoxb-test", "C1", self.slept.append, self.url)
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.fixture
def server() -> Iterator[SlackServer]:
    made = SlackServer()
    yield made
    made.http.shutdown()
    made.http.server_close()
    made.slack.close()


def test_a_message_is_posted_with_the_token_and_can_be_followed(server: SlackServer) -> None:
    server.answers = [OK, OK]
    posted = server.slack.post(HELLO)
    assert (posted.channel, posted.ts) == ("C9", "1.5")
    server.slack.update(MessageRef("p-1", posted.channel, posted.ts, ""), Notice("changed", ""))
    (path, token, body), (update, _, changed) = server.asked
    assert (path, token, body["channel"], body["text"]) == ("/api/chat.postMessage", "Bearer xoxb-test", "C1", "hello")
    assert (update, changed["channel"], changed["ts"]) == ("/api/chat.update", "C9", "1.5")


def test_slack_is_waited_for_once_when_it_asks_so(server: SlackServer) -> None:
    server.answers = [(429, {"Retry-After": "3"}, b""), OK]
    assert server.slack.post(HELLO).ts == "1.5"
    assert server.slept == [3.0]


@pytest.mark.parametrize(
    "answers",
    [
        [(429, {"Retry-After": "60"}, b"")],
        [(429, {}, b"")] * 2,
        [(503, {}, b"")],
        [(200, {}, {"ok": False, "error": "internal_error"})],
    ],
)
def test_a_busy_slack_is_left_to_the_retry(server: SlackServer, answers: list[Any]) -> None:
    server.answers = answers
    with pytest.raises(ThrottledError, match="tried again later"):
        server.slack.post(HELLO)


@pytest.mark.parametrize(
    ("answer", "code"),
    [({"ok": False, "error": "not_in_channel"}, "not_in_channel"), (b"<html>", "HTTP 200"), ([], "HTTP 200")],
)
def test_what_slack_refuses_names_the_error(server: SlackServer, answer: Any, code: str) -> None:
    server.answers = [(200, {}, answer)]
    with pytest.raises(WriteRefusedError) as refused:
        server.slack.post(HELLO)
    assert refused.value.code == code
    assert "xoxb" not in str(refused.value)


def test_a_slack_that_does_not_answer_is_left_to_the_retry() -> None:
    slack = Slack(lambda: "xoxb-test", "C1", lambda _: None, "http://127.0.0.1:9/api")
    with pytest.raises(ThrottledError, match="no answer"):
        slack.post(HELLO)
    slack.close()


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        yield


@pytest.mark.usefixtures("aws")
def test_a_text_reaches_the_topic_with_a_subject_that_sns_takes() -> None:
    sns = boto3.client("sns", region_name="eu-west-1")
    arn = sns.create_topic(Name="t")["TopicArn"]
    with mock.patch.object(sns, "publish", wraps=sns.publish) as published:
        Topic(sns, arn).post(Notice("1 × ml.g5.xlarge\n" + "long " * 40, "text"))
    subject = published.call_args.kwargs["Subject"]
    assert subject.isascii()
    assert len(subject) <= 99


def test_a_subject_of_nothing_printable_is_still_a_subject() -> None:
    assert fit_subject("\n\t") == "rightsizer"


def test_nothing_configured_tells_nobody_and_fails_nobody() -> None:
    nobody: Notifier = Channels(())
    assert nobody.post(HELLO) is None
    nobody.update(MessageRef("", "C1", "1.0", ""), HELLO)


def test_a_missing_permission_to_publish_is_named() -> None:
    client = mock.Mock()
    client.publish.side_effect = ClientError({"Error": {"Code": "AuthorizationError", "Message": "no"}}, "Publish")
    with pytest.raises(PermissionMissingError, match="sns:Publish"):
        Topic(client, "arn").post(HELLO)


@pytest.mark.usefixtures("aws")
def test_a_secret_is_read_once_in_five_minutes_and_never_printed() -> None:
    client = boto3.client("secretsmanager", region_name="eu-west-1")
    arn = client.create_secret(Name="s", SecretString='{"signing_secret":"hush","bot_token":"xoxb"}')["ARN"]
    time = [NOW]
    secret = SlackSecret(client, arn, lambda: time[0])
    assert secret.keys().signing_secret == "hush"
    assert "hush" not in repr(secret.keys())
    client.put_secret_value(SecretId=arn, SecretString='{"signing_secret":"new"}')
    assert secret.keys().signing_secret == "hush"
    time[0] += timedelta(minutes=6)
    assert secret.keys().signing_secret == "new"


@pytest.mark.parametrize("text", ["hush", "{}", "[]", '{"signing_secret": ""}', '{"signing_secret": 7}'])
def test_a_malformed_secret_says_what_it_must_be_and_not_what_it_is(text: str) -> None:
    client = mock.Mock()
    client.get_secret_value.return_value = {"SecretString": text}
    with pytest.raises(SettingsError, match="signing_secret") as refused:
        SlackSecret(client, "arn:s", lambda: NOW).keys()
    assert "hush" not in str(refused.value)


@pytest.mark.usefixtures("aws")
def test_a_report_in_the_bucket_has_an_address() -> None:
    s3 = boto3.client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket="reports-bucket")
    store: ReportStore = BucketReports(s3, "reports-bucket")
    where = store.put("reports/2026-01.html", b"<p>", "text/html")
    assert where == "s3://reports-bucket/reports/2026-01.html"
    assert s3.get_object(Bucket="reports-bucket", Key="reports/2026-01.html")["ContentType"] == "text/html"


@pytest.mark.parametrize("key", ["/etc/passwd", "../x", "a/../../x", ""])
def test_a_key_that_is_no_relative_path_is_refused(key: str) -> None:
    client: Any = SimpleNamespace(put_object=dict)
    with pytest.raises(InputError):
        BucketReports(client, "reports-bucket").put(key, b"", "text/plain")


@pytest.mark.usefixtures("aws")
def test_the_light_clients_do_what_the_heavy_ones_do() -> None:
    light = LightSession("eu-west-1")
    assert light.dynamodb().list_tables()["TableNames"] == []
    assert light.secrets() is light.secrets()
