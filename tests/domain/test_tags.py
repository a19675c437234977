"""Tags say what the owner wants; nonsense is named and costs nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightsizer.domain.endpoint import Mode
from rightsizer.domain.reason import Code
from rightsizer.domain.tags import is_yes, parse_tags


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


@pytest.mark.parametrize(
    "value", ["fast", "", "nan", "inf", "-5", "0", "1e99", "0.8", "2.000", "about 800", "8 min", "٨٠٠"]
)
def test_an_objective_that_is_not_clear_is_none_and_nothing_changes_by_itself(value: str) -> None:
    said = parse_tags({"rightsizer:mode": "auto", "rightsizer:p95-ms": value})
    assert said.objective.p95_s is None
    assert [reason.code for reason in said.bad] == [Code.BAD_TAG]
    assert said.mode is Mode.PROPOSE
    assert said.asks_because.startswith(f"the tag rightsizer:p95-ms is {value!r}; it should be milliseconds from 1 to")
    assert said.asks_because.endswith("until then nothing changes by itself")


@pytest.mark.parametrize("value", ["800", " 800 ", "800ms", "800 MS", "800.00", "0.8 s", "0.8S", "0.800 s"])
def test_an_objective_is_clear_with_spaces_and_with_its_unit(value: str) -> None:
    said = parse_tags({"rightsizer:mode": "auto", "rightsizer:p95-ms": value})
    assert (said.mode, said.objective.p95_s, said.bad) == (Mode.AUTO, 0.8, ())


@pytest.mark.parametrize(
    "tag",
    [
        ("rightsizer:min-instances", "two"),
        ("rightsizer:min-instances", "2.5"),
        ("rightsizer:min-instances", "0"),
        ("rightsizer:error-percent", "lots"),
        ("rightsizer:error-percent", "250"),
        ("rightsizer:may-grow", "a bit"),
        ("rightsizer:cold-start-ok", "nein"),
        ("rightsizer:shadow-ok", "maybe"),
        ("rightsizer:async-ok", "1"),
        ("rightsizer:hours", "nine to five"),
        ("rightsizer:p95ms", "800"),
        ("Rightsizer:Mode", "off"),
    ],
)
def test_each_tag_that_is_not_clear_is_named_and_keeps_automatic_mode_from_acting(tag: tuple[str, str]) -> None:
    said = parse_tags({"rightsizer:mode": "auto", **dict([tag])})
    assert said.mode is Mode.PROPOSE
    assert [tag[0] in reason.sentence for reason in said.bad] == [True]
    assert tag[0] in said.asks_because


def test_tags_that_are_clear_are_read_in_any_case_and_with_spaces() -> None:
    said = parse_tags(
        {
            "rightsizer:mode": "auto",
            "rightsizer:min-instances": " 2 ",
            "rightsizer:error-percent": "0.5 %",
            "rightsizer:may-grow": " 500 ",
            "rightsizer:cold-start-ok": "FALSE ",
            "rightsizer:shadow-ok": "True",
            "rightsizer:async-ok": "Yes",
            "rightsizer:hours": "mon-fri 08:00-19:00 Europe/Berlin",
            "rightsizer:owner": "team-search",
        }
    )
    assert (said.mode, said.bad) == (Mode.AUTO, ())
    assert (said.objective.min_instances, said.objective.error_share) == (2, 0.005)


@pytest.mark.parametrize(("value", "yes"), [("true", True), (" Yes", True), ("no", False), ("y", False), ("", False)])
def test_a_word_that_is_clearly_yes_is_yes(value: str, yes: bool) -> None:
    assert is_yes(value) is yes


def test_a_tag_that_is_nearly_one_of_ours_is_told_which_was_meant() -> None:
    (found,) = parse_tags({"rightsizer:p95_ms": "800"}).bad
    assert found.sentence == "the tag rightsizer:p95_ms is none that rightsizer reads; did you mean rightsizer:p95-ms?"


@pytest.mark.parametrize("value", [" OFF", "Off", "off\u00a0"])
def test_off_is_obeyed_however_it_is_written(value: str) -> None:
    assert (parse_tags({"rightsizer:mode": value}).mode, parse_tags({"rightsizer:mode": value}).bad) == (Mode.OFF, ())


@pytest.mark.parametrize("value", ["AUTO", "auto ", "Propose"])
def test_a_mode_that_iam_would_not_know_permits_no_change_and_says_how_to_write_it(value: str) -> None:
    said = parse_tags({"rightsizer:mode": value})
    assert said.mode is Mode.PROPOSE
    assert f"{value.strip().lower()}, letter by letter, for IAM compares it so" in said.bad[0].sentence


@pytest.mark.parametrize(
    ("tags", "owner"),
    [
        ({"aws:cloudformation:stack-name": "ml-prod"}, "CloudFormation stack ml-prod"),
        ({"ManagedBy": "terraform"}, "Terraform"),
        ({"managed-by": "Pulumi/prod"}, "Pulumi"),
        ({"Terraform": "true"}, "Terraform"),
        ({"terraform": "false"}, ""),
        ({"sagemaker:project-name": "churn", "sagemaker:project-id": "p-1"}, "SageMaker project"),
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
    assert said.mode is not Mode.AUTO or tags["rightsizer:mode"] == "auto"
    assert said.objective.p95_s is None or said.objective.p95_s > 0
