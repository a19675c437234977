"""The client: what it asks, what it leaves out, and what it says when a server cannot answer."""

import json

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


def test_an_address_where_nothing_listens_is_said() -> None:
    with serving(lambda _: (200, b"")) as (url, _):
        pass
    with pytest.raises(ReadError, match="port-forward"):
        Prometheus(url, timeout_s=2).query("up")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "127.0.0.1:9090", "", "ftp://host"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="no address of a Prometheus server"):
        Prometheus(url)
