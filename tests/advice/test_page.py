"""docs/advise.md: its table of deviations is current, and what it shows can be run."""

import re

import yaml

from rightsizer.advice.advise import advise
from scripts.advise_deviation import PART, main

EXAMPLE = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def test_the_page_shows_todays_deviation() -> None:
    assert main(["--check"]) == 0, "run python -m scripts.advise_deviation"


def test_another_table_would_be_found() -> None:
    page = PART.path.read_text(encoding="utf-8")
    assert PART.put("another", page) != page
    assert PART.put("another", PART.put("one", page)) == PART.put("another", page)


def test_the_example_of_the_page_is_a_workload() -> None:
    found = EXAMPLE.search(PART.path.read_text(encoding="utf-8"))
    assert found is not None
    answer = advise(yaml.safe_load(found[1]))
    assert answer.options
    assert answer.contradictions == ()
