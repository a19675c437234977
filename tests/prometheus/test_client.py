"""The client: what it asks, what it leaves out, and what it says when a server cannot answer."""

import json
import socket
import ssl
import threading
from urllib.error import URLError
from urllib.request import OpenerDirector

import pytest

from rightsizer.errors import InputError, ReadError
from rightsizer.prometheus.client import Prometheus
from tests.prometheus.server import serving


def body(result: object, kind: str = "vector") -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


def test_a_vector_is_labels_and_values_and_the_server_is_only_read() -> None:
    rows = [{"metric": {"gpu": "0"}, "value": [1790000000.1, "12.5"]}]
    with serving(lambda _: (200, body(rows))) as (url, asked):
        (sample,) = Prometheus(f"{url}/").query('up{job="a b"}')
    assert (dict(sample.labels), sample.value) == ({"gpu": "0"}, 12.5)
    assert asked == ['GET /api/v1/query up{job="a b"}']


@pytest.mark.parametrize(
    "row",
    [
        {"metric": {}, "value": [1, "NaN"]},
        {"metric": {}, "value": [1, "+Inf"]},
        {"metric": {}, "value": [1, "many"]},
        {"metric": {}, "value": []},
        {"metric": "x", "value": [1, "1"]},
        {"value": [1, "1"]},
        7,
    ],
)
def test_a_value_that_cannot_be_counted_with_is_left_out(row: object) -> None:
    with serving(lambda _: (200, body([row, {"metric": {}, "value": [1, "2"]}]))) as (url, _):
        assert [each.value for each in Prometheus(url).query("up")] == [2.0]


@pytest.mark.parametrize(
    ("code", "text", "says"),
    [
        (400, b'{"status":"error","errorType":"bad_data","error":"parse error"}', "HTTP 400, bad_data: parse error"),
        (503, b"overloaded", "HTTP 503, overloaded"),
        (
            401,
            b"Unauthorized",
            "HTTP 401, Unauthorized; a server that asks for a login is not asked: give the address of",
        ),
        (403, b"", "HTTP 403, no text; a server that asks for a login"),
        (404, b"404 page not found", "HTTP 404, 404 page not found; give the address in front of /api/v1"),
        (200, b"<html>", "the answer is no JSON"),
        (200, b'{"status":"error","errorType":"timeout","error":"too slow"}', "timeout: too slow"),
        (200, b"[1]", r"\[1\]"),
        (200, body([], "matrix"), "the answer is no vector"),
    ],
)
def test_a_server_that_does_not_answer_is_named_with_the_query(code: int, text: bytes, says: str) -> None:
    with serving(lambda _: (code, text)) as (url, _), pytest.raises(ReadError, match=says) as error:
        Prometheus(url).query("up")
    assert f"asking {url} for up" in str(error.value)


def test_a_redirect_is_not_followed() -> None:
    elsewhere = {"Location": "http://127.0.0.1:1/"}
    with serving(lambda _: (302, b""), elsewhere) as (url, asked), pytest.raises(ReadError, match="HTTP 302"):
        Prometheus(url).query("up")
    assert len(asked) == 1


def test_tls_to_a_server_without_it_is_told_to_go_without() -> None:
    with serving(lambda _: (200, body([]))) as (url, _), pytest.raises(ReadError, match="address with http://"):
        Prometheus(url.replace("http:", "https:"), timeout_s=5).query("up")


def test_a_server_that_is_silent_is_left_after_the_time_that_is_named() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(ReadError, match=r"no answer within 0\.3 seconds"):
            Prometheus(f"http://127.0.0.1:{mute.getsockname()[1]}", timeout_s=0.3).query("up")


def test_a_certificate_that_nobody_trusts_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise URLError(ssl.SSLCertVerificationError(1, "self-signed certificate"))

    monkeypatch.setattr(OpenerDirector, "open", refuse)
    with pytest.raises(ReadError, match="SSL_CERT_FILE"):
        Prometheus("https://127.0.0.1:9").query("up")


def test_an_address_where_nothing_listens_is_said() -> None:
    with serving(lambda _: (200, b"")) as (url, _):
        pass
    with pytest.raises(ReadError, match="port-forward"):
        Prometheus(url, timeout_s=2).query("up")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "127.0.0.1:9090",
        "",
        "ftp://host",
        "http://127.0.0.1:many",
        "http://127.0.0.1:70000",
        "http://127.0.0.1:0",
        "http://[::1",
        "http://",
        "http://:9090",
        "http://a b:9090",
        "http://host:9090/\n",
        f"http://{'a' * 70}.example",
        "http://host:9090/?query=up",
        "http://host:9090/#graph",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="no address of a Prometheus server"):
        Prometheus(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://ada:hunter2@host:many",  # pragma: allowlist secret
        "ada:hunter2@host",
        "ftp://ada:hun@ter2@host",  # pragma: allowlist secret
        "//a:hunter2@",
    ],
)
def test_a_password_in_a_refused_address_is_not_shown(url: str) -> None:
    with pytest.raises(InputError) as error:
        Prometheus(url)
    assert "hun" not in str(error.value)
    assert "ter2" not in str(error.value)


def test_an_address_with_a_user_or_a_password_is_refused_with_what_to_give() -> None:
    for user in ("ada:hunter2@", "ada@", ":hunter2@"):
        with pytest.raises(InputError, match="without them, of a port-forward") as error:
            Prometheus(f"https://{user}prometheus.example:9090/prom")
        assert "'https://prometheus.example:9090/prom'" in str(error.value)
        assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "result", [None, 7, "up", {"metric": {}}, True], ids=["none", "a number", "a text", "an object", "a flag"]
)
def test_an_answer_of_another_shape_is_an_error_that_names_the_query(result: object) -> None:
    with (
        serving(lambda _: (200, body(result))) as (url, _),
        pytest.raises(ReadError, match="no list of series") as error,
    ):
        Prometheus(url).query("up")
    assert f"asking {url} for up" in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'{"status":"success","data":7}', "no vector"),
        (b'{"status":"success"}', "no vector"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"status":"error","error":"a\\u001b[31mb"}', "error: a"),
    ],
)
def test_an_answer_that_is_odd_inside_is_an_error_and_no_traceback(text: bytes, says: str) -> None:
    with serving(lambda _: (200, text)) as (url, _), pytest.raises(ReadError, match=says) as error:
        Prometheus(url).query("up")
    assert "\x1b" not in str(error.value)


def test_a_number_too_large_to_count_with_is_left_out() -> None:
    text = body([{"metric": {}, "value": [1, 7]}]).replace(b"7", b"1" + b"0" * 400)
    with serving(lambda _: (200, text)) as (url, _):
        assert Prometheus(url).query("up") == ()


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz"])
def test_a_server_that_speaks_something_else_is_told_with_the_address(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ReadError, match="the answer is no HTTP") as error:
            Prometheus(url, timeout_s=5).query("up")
        thread.join()
    assert f"asking {url} for up" in str(error.value)
