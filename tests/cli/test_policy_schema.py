"""The published schema, the model and the reader of the policy document mean the same documents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from rightsizer.domain.policy_document import DEFAULTS, allowed_values
from rightsizer.domain.policy_key import KEYS, Fallback
from rightsizer.policy_reader import read_policy
from rightsizer.terminal.policy_page import policy_model, policy_schema
from tests.test_policy_reader import JSON, PLACES, WHOLE, WRONG, broken_at

DOCS = Path(__file__).parents[2] / "docs"
MODEL = policy_model()


def model_takes(said: Any) -> bool:
    try:
        MODEL.model_validate_json(json.dumps(said))
    except ValidationError:
        return False
    return True


def test_the_committed_schema_is_the_one_of_the_model() -> None:
    """Where it is not: `rightsizer policy schema > docs/policy.schema.json`."""
    assert json.loads((DOCS / "policy.schema.json").read_text()) == policy_schema()


def test_the_example_is_right_and_shows_every_part() -> None:
    said = yaml.safe_load((DOCS / "policy-example.yaml").read_text())
    assert read_policy(json.dumps(said)).problems == ()
    assert model_takes(said)
    assert set(said) == {"version", "defaults", "environments", "assign", "owners"}


def test_a_document_with_every_key_fits_an_ssm_parameter_of_the_standard_tier() -> None:
    assert len(json.dumps(WHOLE, separators=(",", ":")).encode()) < 4096


def test_the_schema_describes_every_key() -> None:
    found = policy_schema()["$defs"]["Defaults"]["properties"]
    assert set(found) == set(KEYS)
    assert all(each["description"] for each in found.values())


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PLACES), st.sampled_from(WRONG) | JSON)
def test_what_the_model_refuses_the_reader_names(place: tuple[str, ...], value: Any) -> None:
    said = broken_at(place, value)
    if not model_takes(said):
        assert read_policy(json.dumps(said)).problems


@pytest.mark.parametrize(
    "said",
    [
        {"defaults": {"window": "mon-fri 9-17"}},
        {"defaults": {"objective": "fast"}},
        {"defaults": {"approvers": ["bob!"]}},
        {"defaults": {"channel": "#ml"}},
        {"environments": {"prod": {}}},
        {"environments": {"production": {"usd_per_day": 1}}},
        {"assign": [{"environment": "qa", "endpoints": "x"}]},
        {"owners": {"a": {"people": []}}},
        {"version": 2},
        {"limits": {}},
    ],
)
def test_both_refuse_what_is_wrong(said: dict[str, Any]) -> None:
    assert not model_takes(said)
    assert read_policy(json.dumps(said)).problems


def test_both_take_a_whole_document() -> None:
    assert model_takes(WHOLE)
    assert read_policy(json.dumps(WHOLE)).problems == ()


def key_lines() -> Iterator[str]:
    """The table of keys in docs/policy.md."""
    for key, known in KEYS.items():
        where = f"`{DEFAULTS}` only" if known.is_of_account else "everywhere"
        held = known.safest if known.fallback is Fallback.SAFE else known.fallback.value
        yield f"| `{key}` | {known.about}: {allowed_values(key)} | {known.default} | {where} | {held} |"


def test_the_page_lists_every_key_as_the_program_knows_it_and_shows_the_example() -> None:
    page = (DOCS / "policy.md").read_text()
    assert [line for line in key_lines() if line not in page] == []
    example = (DOCS / "policy-example.yaml").read_text().split("version: 1\n", 1)[1].strip()
    assert example in page
