"""What DescribeInferenceComponent shows is what UpdateInferenceComponent gets, field by field."""

from typing import Any

import botocore.session
import pytest

from rightsizer.domain.component import request_of, rolling_update, unknown_paths

SAGEMAKER = botocore.session.get_session().get_service_model("sagemaker")


def full(shape: Any) -> Any:
    """A value with every member of the shape."""
    match shape.type_name:
        case "structure":
            return {name: full(member) for name, member in shape.members.items()}
        case "list":
            return [full(shape.member)]
        case "map":
            return {"KEY": "value"}
        case "timestamp" | "string":
            return (getattr(shape, "enum", None) or ["text"])[0]
        case _:
            return 1


def members(shape: Any, value: Any) -> list[str]:
    """Members of a value that the shape does not have."""
    if shape.type_name == "list":
        return [one for each in value for one in members(shape.member, each)]
    if shape.type_name != "structure":
        return []
    odd = [key for key in value if key not in shape.members]
    return odd + [m for key, inner in value.items() if key in shape.members for m in members(shape.members[key], inner)]


SHOWN = full(SAGEMAKER.shape_for("InferenceComponentSpecificationSummary"))
ASKED = SAGEMAKER.shape_for("InferenceComponentSpecification")


def test_every_field_that_the_installed_api_shows_is_in_the_list() -> None:
    assert list(unknown_paths(SHOWN)) == []


def test_a_request_says_everything_that_is_shown_in_the_words_of_a_request() -> None:
    made = request_of(SHOWN)
    assert members(ASKED, made) == []
    assert set(made) == set(ASKED.members)  # type: ignore[attr-defined]
    assert set(made["Container"]) == set(ASKED.members["Container"].members)  # type: ignore[attr-defined]
    assert made["Container"]["Image"] == SHOWN["Container"]["DeployedImage"]["SpecifiedImage"]
    assert {k: made[k] for k in made if k != "Container"} == {k: SHOWN[k] for k in SHOWN if k != "Container"}


@pytest.mark.parametrize("path", ["Specification.Newer", "Specification.Container.Newer"])
def test_a_new_field_is_named_with_its_path(path: str) -> None:
    inner = SHOWN | {"Newer": 1} if path.count(".") == 1 else SHOWN | {"Container": SHOWN["Container"] | {"Newer": 1}}
    assert list(unknown_paths(inner)) == [path]


@pytest.mark.parametrize("copies", [0, 1, 2, 3, 4, 40])
@pytest.mark.parametrize("bake", [0, 300, 100_000])
def test_a_roll_keeps_to_the_limits_of_the_api(copies: int, bake: int) -> None:
    policy = rolling_update(copies, bake, ("a",)).config["RollingUpdatePolicy"]
    assert 5 <= policy["MaximumBatchSize"]["Value"] <= 50
    assert 0 <= policy["WaitIntervalInSeconds"] <= 3600
    assert 600 <= policy["MaximumExecutionTimeoutInSeconds"] <= 28_800
    rounds = 100 // policy["MaximumBatchSize"]["Value"]
    assert rounds * policy["WaitIntervalInSeconds"] < policy["MaximumExecutionTimeoutInSeconds"]
