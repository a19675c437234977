"""Tags say what the owner wants; nonsense is named and costs nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.aws.tags import parse_tags
from rightsizer.domain.endpoint import Mode
from rightsizer.domain.reason import Code


def test_tags_are_read() -> None:
    said = parse_tags(
        {
            "rightsizer:mode": "auto",
            "rightsizer:p95-ms": "250",
            "rightsizer:error-percent": "0.5",
            "rightsizer:owner": "@search",
        }
    )
    assert (said.mode, said.mode_declared, said.owner, said.bad) == (Mode.AUTO, True, "@search", ())
    assert said.objective.p95_s == 0.25
    assert said.objective.error_share == 0.005


def test_an_untagged_endpoint_is_proposed_and_has_declared_nothing() -> None:
    said = parse_tags({})
    assert (said.mode, said.mode_declared, said.objective.p95_s) == (Mode.PROPOSE, False, None)


def test_a_nonsense_mode_is_named_and_allows_nothing() -> None:
    said = parse_tags({"rightsizer:mode": "yolo", "rightsizer:p95-ms": "100"})
    assert said.mode is Mode.REPORT
    assert said.bad[0].code is Code.BAD_TAG
    assert "'yolo'" in said.bad[0].sentence
    assert said.objective.p95_s == 0.1


@pytest.mark.parametrize("value", ["fast", "", "nan", "inf", "-5", "0", "1e99", "250ms"])
def test_a_nonsense_objective_is_no_objective(value: str) -> None:
    said = parse_tags({"rightsizer:p95-ms": value})
    assert said.objective.p95_s is None
    assert [reason.code for reason in said.bad] == [Code.BAD_TAG]


@pytest.mark.parametrize(
    ("tags", "owner"),
    [
        ({"aws:cloudformation:stack-name": "ml-prod"}, "CloudFormation stack ml-prod"),
        ({"ManagedBy": "terraform"}, "Terraform"),
        ({"managed-by": "Pulumi/prod"}, "Pulumi"),
        ({"Terraform": "true"}, "Terraform"),
        ({"terraform": "false"}, ""),
        ({"managed-by": "alice"}, ""),
    ],
)
def test_the_tool_that_owns_an_endpoint_is_found(tags: dict[str, str], owner: str) -> None:
    assert parse_tags(tags).owned_by == owner


@given(
    st.dictionaries(
        st.sampled_from(["rightsizer:mode", "rightsizer:p95-ms", "rightsizer:error-percent", "owner"]) | st.text(),
        st.text(),
    )
)
def test_no_tag_however_odd_breaks_the_reading_or_opens_the_door(tags: dict[str, str]) -> None:
    said = parse_tags(tags)
    assert said.mode is not Mode.AUTO or tags["rightsizer:mode"].strip().lower() == "auto"
    assert said.objective.p95_s is None or said.objective.p95_s > 0
