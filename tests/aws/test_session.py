"""Clients come from one place, for one Region, once."""

from datetime import UTC, datetime

import pytest
from botocore.exceptions import ParamValidationError

from rightsizer.aws.read_checks import Scene
from rightsizer.aws.session import OLDEST_BOTOCORE, Session, botocore_warning
from rightsizer.errors import SettingsError


@pytest.fixture(autouse=True)
def no_ambient_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")


def test_a_client_is_made_once() -> None:
    session = Session("eu-west-1")
    assert session.client("sagemaker") is session.client("sagemaker")


def test_only_who_reads_many_series_leaves_its_parameters_to_aws() -> None:
    class SentError(Exception):
        """Where a request would leave the machine."""

    def stop(**_: object) -> None:
        raise SentError

    session = Session("eu-west-1")
    reader, writer = session.client("cloudwatch", validated=False), session.client("cloudwatch")
    assert reader is session.client("cloudwatch", validated=False)
    for each, raised in ((reader, SentError), (writer, ParamValidationError)):
        each.meta.events.register("before-call", stop)
        with pytest.raises(raised):
            each.get_metric_data()


def test_what_cannot_wait_gives_a_silent_connection_up_soon() -> None:
    session = Session("eu-west-1")
    swift, patient = session.client("autoscaling", seconds=5.0).meta.config, session.client("autoscaling").meta.config
    assert (swift.read_timeout, swift.connect_timeout, swift.retries["total_max_attempts"]) == (5.0, 2, 3)
    assert (patient.read_timeout, patient.retries["total_max_attempts"]) == (30, 8)


def test_a_missing_region_is_said_with_its_remedy() -> None:
    with pytest.raises(SettingsError, match="--region"):
        Session()


def test_an_unknown_profile_is_named() -> None:
    with pytest.raises(SettingsError, match="nobody"):
        Session("eu-west-1", profile="nobody")


@pytest.mark.parametrize(
    ("region", "answers"), [("eu-west-2", "eu-central-1"), ("ap-south-2", "ap-south-1"), ("us-west-2", "us-east-1")]
)
def test_the_price_list_is_asked_where_it_answers(region: str, answers: str) -> None:
    assert Session(region).pricing().meta.region_name == answers


def test_an_endpoint_url_redirects_every_client() -> None:
    session = Session("eu-west-1", endpoint_url="http://127.0.0.1:9999")
    assert session.client("cloudwatch").meta.endpoint_url == "http://127.0.0.1:9999"
    assert session.pricing().meta.endpoint_url == "http://127.0.0.1:9999"


@pytest.mark.parametrize("version", ["1.37.0", "1.38.46", "0.99.100", "1.9.0"])
def test_an_older_botocore_is_named_with_the_oldest_supported_one_and_a_remedy(version: str) -> None:
    complaint = botocore_warning(version)
    assert f"botocore {version} " in complaint
    assert OLDEST_BOTOCORE in complaint
    assert "runtime management" in complaint
    assert "\n" not in complaint


@pytest.mark.parametrize("version", [OLDEST_BOTOCORE, "1.44.5", "1.100.0", "2.0.0", "1.44.5.dev1", "unknown"])
def test_a_newer_botocore_and_one_that_nobody_can_read_are_not_complained_about(version: str) -> None:
    assert botocore_warning(version) == ""


@pytest.mark.parametrize(
    ("region", "partition"), [("eu-west-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_what_a_check_asks_for_is_named_in_the_partition_of_the_region(region: str, partition: str) -> None:
    scene = Scene(Session(region), "111122223333", datetime(2026, 11, 1, tzinfo=UTC))
    assert scene.arn("sagemaker", "endpoint/x") == f"arn:{partition}:sagemaker:{region}:111122223333:endpoint/x"
