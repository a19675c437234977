"""Answers of AWS that a stop meets, on the simulated account: lost ones, late ones, and the owner's own fallback."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rightsizer.domain.hours_record import HoursState
from tests.hours.world import CLOSES, KIND, NAME, OPENS, HoursWorld, fallback, hours_world

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NIGHT = CLOSES + 2 * HOUR


class Deaf:
    """A SageMaker client of which the first answer to a delete is lost: botocore sends it again and gets a refusal."""

    def __init__(self, client: Any, text: str) -> None:
        self._client, self._text = client, text

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def delete_endpoint(self, **params: Any) -> Any:
        self._client.delete_endpoint(**params)
        error: Any = {
            "Error": {"Code": "ValidationException", "Message": self._text},
            "ResponseMetadata": {"RetryAttempts": 1, "HTTPStatusCode": 400},
        }
        raise ClientError(error, "DeleteEndpoint")


@pytest.mark.parametrize(
    "text", ['Could not find endpoint "arn:chat".', 'Cannot update in-progress endpoint "arn:chat".']
)
def test_a_delete_that_botocore_sent_twice_is_a_stop_of_ours(text: str) -> None:
    with hours_world() as w:
        ports = w.flow.ports
        account: Any = ports.account
        w.flow = replace(
            w.flow, ports=replace(ports, account=replace(account, sagemaker=Deaf(account.sagemaker, text)))
        )
        w.until(NIGHT)
        assert (w.state, w.exists(), w.told) == (HoursState.STOPPED, False, [])
        w.until(OPENS)
        assert (w.state, w.exists()) == (HoursState.RUNNING, True)


def test_a_fallback_that_its_owner_deployed_by_day_is_what_the_next_morning_starts() -> None:
    with hours_world(scaled=False, more_tags={"rightsizer:fallback-config": "small"}) as w:
        fallback(w)
        w.until(OPENS + HOUR)
        assert w.record.last_start is not None
        assert w.record.last_start.config == f"{NAME}-config"
        deploy_small(w)
        w.until(NIGHT + DAY)
        assert w.exists(), "the fallback has the type that runs, so the owner is asked to put the tag right"
        assert "the same instance type" in w.told[-1][1]
        with w.others() as sagemaker:
            arn = sagemaker.describe_endpoint(EndpointName=NAME)["EndpointArn"]
            sagemaker.delete_tags(ResourceArn=arn, TagKeys=["rightsizer:fallback-config"])
        w.until(NIGHT + DAY + 2 * HOUR)
        assert not w.exists()
        w.until(OPENS + 2 * DAY)
        assert w.box.config_name(NAME) == "small"


def deploy_small(w: HoursWorld) -> None:
    """Its owner deploys the other type."""
    with w.others() as sagemaker:
        sagemaker.update_endpoint(EndpointName=NAME, EndpointConfigName="small")


def test_a_fallback_that_our_start_chose_gives_way_to_the_own_type_the_next_morning() -> None:
    with hours_world(scaled=False, more_tags={"rightsizer:fallback-config": "small"}) as w:
        fallback(w)
        w.until(NIGHT)
        w.box.world.fleet.scarce.add(KIND)
        w.until(OPENS + 2 * HOUR)
        assert w.box.config_name(NAME) == "small"
        w.box.world.fleet.scarce.clear()
        w.until(OPENS + DAY)
        assert w.box.config_name(NAME) == f"{NAME}-config"


def test_a_name_that_is_still_being_deleted_costs_no_try() -> None:
    with hours_world(scaled=False, more_tags={"rightsizer:fallback-config": "small"}) as w:
        fallback(w)
        w.until(NIGHT)
        w.box.gate.fail(
            "sagemaker", "CreateEndpoint", "ValidationException", "Cannot create already existing endpoint", times=2
        )
        w.until(OPENS + HOUR)
        assert (w.state, w.box.config_name(NAME)) == (HoursState.RUNNING, f"{NAME}-config")
