"""The rules that advice cites: each is on the page with its source, and each is cited or used."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from rightsizer.advice.advise import advise
from rightsizer.advice.answer import Advice
from rightsizer.advice.rules import Rule, rules
from scripts.advise_rules import GROUPS, PAGE, main, page_with

ROOT = Path(__file__).parents[2]
CODE = [
    path
    for folder in ("advice", "kubernetes", "prometheus", "terminal")
    for path in (ROOT / "shared" / "rightsizer" / folder).glob("*.py")
    if path.name != "rules.py"
]
CASES = [case for path in (Path(__file__).parent / "cases").glob("*.yaml") for case in yaml.safe_load(path.read_text())]
CITED = re.compile(r"\brules? ([A-Z]\d+)\b")
ITSELF = {"arithmetic", "price snapshot", "snapshot", "catalogue", "catalogue and price snapshot", "the description"}
ITSELF |= {"assumption", "general knowledge", "not known", "the API's ProductionVariantInstanceType", ""}
"""Sources that say themselves what they are; docs/advise-rules.md explains them."""


def sources(answer: Advice) -> set[str]:
    """Every source that an answer names."""
    reasons = [*answer.notes, *(each.reason for each in answer.refused)]
    reasons += [reason for option in answer.options for reason in option.reasons]
    reasons += [reason for variant in answer.environments for reason in variant.differs]
    return {str(reason.source) for reason in reasons}


def test_the_page_has_every_rule_as_the_table_has_it() -> None:
    assert main(["--check"]) == 0, "run python -m scripts.advise_rules"
    page = PAGE.read_text(encoding="utf-8")
    assert page_with("another", page) != page
    assert set(re.findall(r"^\| ([A-Z]\d+) \|", page, re.MULTILINE)) == {each.id for each in rules().values()}


def test_names_in_the_code_and_the_table_are_the_same() -> None:
    assert {rule.value: rule.name for rule in Rule} == {key: each.name for key, each in rules().items()}
    assert {each.id[0] for each in rules().values()} <= set(GROUPS)


def test_every_rule_is_cited_or_used() -> None:
    text = "\n".join(path.read_text() for path in CODE)
    used = set(re.findall(r"\bRule\.([A-Z_0-9]+)\b", text))
    named = set(CITED.findall(text))
    idle = [f"{rule.name} ({rule.value})" for rule in Rule if rule.name not in used and rule.value[5:] not in named]
    assert idle == []


def test_every_rule_that_a_docstring_names_exists() -> None:
    named = {number for path in CODE for number in CITED.findall(path.read_text())}
    assert {f"rule {number}" for number in named} <= set(rules())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['number']}{case.get('part', '')}")
def test_every_reason_of_an_answer_has_a_source_that_a_reader_can_look_up(case: dict[str, object]) -> None:
    workload = case["workload"]
    assert isinstance(workload, dict)
    said = sources(advise(workload))
    unknown = {each for each in said if each not in ITSELF and not set(each.split(", ")) <= set(rules())}
    assert unknown == set()


@pytest.mark.parametrize("rule", list(Rule), ids=lambda rule: rule.name)
def test_a_rule_is_a_sentence_with_a_public_source(rule: Rule) -> None:
    cited = rules()[rule]
    assert cited.rule.endswith(".")
    assert cited.source
    parts = urlsplit(cited.url)
    assert (parts.scheme == "https" and parts.netloc) or (PAGE.parent / cited.url).exists()
