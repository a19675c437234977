"""The rules that advice cites: each is on the page with its source, and each is cited or used."""

import csv
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from rightsizer.advice.advise import advise
from rightsizer.advice.answer import Advice
from rightsizer.advice.rules import Rule, rules
from sandbox.template import QUICK
from scripts.advise_rules import GROUPS, PART, main
from scripts.page_part import DOCS

ROOT = Path(__file__).parents[2]
CODE = [
    path
    for folder in ("advice", "kubernetes", "prometheus", "terminal")
    for path in (ROOT / "shared" / "rightsizer" / folder).glob("*.py")
    if path.name != "rules.py"
]
CASES = [
    case for path in (Path(__file__).parent / "cases").glob("*.yaml") for case in yaml.load(path.read_text(), QUICK)
]
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
    page = PART.path.read_text(encoding="utf-8")
    assert PART.put("another", page) != page
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
    assert (parts.scheme == "https" and parts.netloc) or (DOCS / cited.url).exists()


HOSTS = {
    "arxiv.org",
    "aws.amazon.com",
    "awsdocs-neuron.readthedocs-hosted.com",
    "blog.eleuther.ai",
    "docs.aws.amazon.com",
    "docs.nvidia.com",
    "docs.ultralytics.com",
    "docs.vllm.ai",
    "github.com",
    "huggingface.co",
    "kubernetes.io",
    "wesmckinney.com",
}
"""Homes of the documentation and papers that tables of advice cite; a new one is added by hand, after a look at it."""
FORMS = {
    "arxiv.org": r"/abs/\d{4}\.\d{4,5}",
    "docs.aws.amazon.com": r"/[\w-]+/.+",
    "github.com": r"/[\w.-]+/[\w.-]+([/?#].*)?",
    "huggingface.co": r"/[\w.-]+/.+",
}
"""What the path of an address looks like, by host."""
TABLES = sorted((ROOT / "shared" / "rightsizer" / "advice").glob("*.csv"))


def fault(url: str) -> str:
    """What is wrong with a cited address; empty where nothing is. Nothing is asked of a network."""
    parts = urlsplit(url)
    if re.fullmatch(r"[\w-]+\.md(#.*)?", url):
        return "" if (ROOT / "docs" / parts.path).is_file() else f"{url} is no page of the documentation"
    if parts.scheme != "https" or parts.hostname not in HOSTS:
        return f"{url} is no https address of a known home of documentation"
    form = FORMS.get(parts.hostname, r"/.+")
    rest = parts._replace(scheme="", netloc="").geturl()
    return "" if re.fullmatch(form, rest) and not re.search(r"\s", url) else f"{url} has not the form {form}"


@pytest.mark.parametrize("table", TABLES, ids=lambda path: str(path.name))
def test_every_cited_address_has_the_form_of_known_documentation(table: Path) -> None:
    with table.open(encoding="utf-8") as file:
        urls = [row["url"] for row in csv.DictReader(file)]
    assert urls
    assert [said for url in urls if (said := fault(url))] == []


@pytest.mark.parametrize(
    "url",
    [
        "http://arxiv.org/abs/1910.02054",
        "https://arxiv.org/abs/19",
        "https://example.com/a",
        "",
        "https://github.com/one",
    ],
)
def test_an_address_of_another_form_is_found(url: str) -> None:
    assert fault(url)
