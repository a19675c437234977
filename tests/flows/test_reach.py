"""A proposal that cannot be approved carries what its owner has to do, into the report too."""

from dataclasses import replace
from typing import Any, cast

from rightsizer.flows.evaluate import Judged, Keeping, within_reach
from rightsizer.model.observation import Mode
from rightsizer.ports import RecommendationStore
from rightsizer.rules.ask import reach_of
from tests import samples
from tests.rules.test_ask import ENDPOINT

KEEPING = Keeping(cast("RecommendationStore", None), lambda e: reach_of(e, writes=True, untagged=False), 14)


def enabled(**changes: Any) -> str:
    found = within_reach(KEEPING, Judged(replace(ENDPOINT, **changes), samples.recommendation()))
    assert not found.approvable
    return found.enable


def test_an_untagged_endpoint_gets_the_tag_command() -> None:
    text = enabled(mode=Mode.PROPOSE, mode_declared=False)
    assert text.splitlines()[-1].startswith(
        "aws sagemaker add-tags --region eu-west-1 --resource-arn arn:aws:sagemaker:"
    )


def test_a_stack_owned_endpoint_gets_the_difference_and_no_command_that_would_drift() -> None:
    text = enabled(owned_by="CloudFormation stack web")
    assert "+ InstanceType: " in text
    assert "add-tags" not in text
