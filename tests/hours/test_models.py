"""What a creation loads is what ran: models, their files and images, before and after a night."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from rightsizer.domain.hours_record import HoursState
from tests.hours.world import CLOSES, NAME, OPENS, HoursWorld, hours_world

HOUR = timedelta(hours=1)
NIGHT = CLOSES + 2 * HOUR
MODEL, BUCKET, KEY = f"{NAME}-model", "models-111122223333", "chat/model.tar.gz"
NAMED = {"model": {"PrimaryContainer": {"ModelDataUrl": f"s3://{BUCKET}/{KEY}"}}}


def write(w: HoursWorld, text: bytes) -> None:
    """Somebody writes the model data."""
    with w.others():
        s3 = w.box.client("s3")
        s3.put_object(Bucket=BUCKET, Key=KEY, Body=text)


def bucket(w: HoursWorld) -> None:
    with w.others():
        where: Any = {"LocationConstraint": w.box.region}
        w.box.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)


def made_anew(w: HoursWorld, **changes: Any) -> None:
    with w.others() as sagemaker:
        body = sagemaker.describe_model(ModelName=MODEL)
        kept = {k: body[k] for k in ("PrimaryContainer", "ExecutionRoleArn") if k in body}
        kept["PrimaryContainer"] = kept["PrimaryContainer"] | changes
        sagemaker.delete_model(ModelName=MODEL)
        sagemaker.create_model(ModelName=MODEL, **kept)


def deleted(w: HoursWorld) -> None:
    with w.others() as sagemaker:
        sagemaker.delete_model(ModelName=MODEL)


@pytest.mark.parametrize(
    ("meddle", "said"),
    [
        (deleted, "model Chat-model was deleted"),
        (lambda w: made_anew(w, Environment={"A": "1"}), "model Chat-model was made anew with other content"),
        (made_anew, ""),
    ],
)
def test_a_model_that_is_not_the_one_of_the_evening_is_handed_over_with_the_command(
    meddle: Callable[[HoursWorld], None], said: str
) -> None:
    with hours_world(scaled=False) as w:
        w.until(NIGHT)
        meddle(w)
        w.until(OPENS)
        if not said:
            assert (w.state, w.told) == (HoursState.RUNNING, [])
            return
        ((_, text),) = w.told
        assert (w.state, w.exists()) == (HoursState.HANDED_OVER, False)
        assert said in text
        assert "aws sagemaker create-model" in text


def test_an_image_that_its_registry_deleted_keeps_the_endpoint_on() -> None:
    with hours_world(scaled=False) as w:
        image = w.box.world.fleet.models[MODEL].request["PrimaryContainer"]["Image"]
        w.box.world.registry.removed.add(image)
        w.until(NIGHT)
        assert w.exists()
        assert "not in its registry any more" in w.told[0][1]


def test_model_data_that_is_written_at_night_serves_and_is_told() -> None:
    with hours_world(scaled=False, model=NAMED["model"]) as w:
        bucket(w)
        write(w, b"one")
        deploy_again(w)
        w.until(NIGHT)
        assert (w.state, w.told) == (HoursState.STOPPED, [])
        write(w, b"two")
        w.until(OPENS)
        assert w.state is HoursState.RUNNING
        ((_, text),) = w.told
        assert text == f"the model data of {MODEL} was written while it was stopped, and it serves the new one since"
        assert w.record.stopped_times[-1].modified_at is None, "it is a new endpoint"


def test_model_data_that_was_written_after_the_deployment_keeps_the_endpoint_on() -> None:
    with hours_world(scaled=False, model=NAMED["model"]) as w:
        bucket(w)
        write(w, b"one")
        w.until(NIGHT)
        assert w.exists()
        assert "the morning would bring another model" in w.told[0][1]


def deploy_again(w: HoursWorld) -> None:
    """After the data was written, as S3 says it: its clock is not that of the simulated account."""
    endpoint = w.box.world.fleet.endpoints[NAME]
    with w.others():
        (row,) = w.box.client("s3").list_objects_v2(Bucket=BUCKET)["Contents"]
    endpoint.modified = max(endpoint.modified, row["LastModified"])
