"""docs/advise.md: its table of deviations is current, and what it shows can be run."""

import re
from pathlib import Path

import yaml

from rightsizer.advice.advise import advise
from scripts.advise_deviation import PAGE, main, page_with

EXAMPLE = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def test_the_page_shows_todays_deviation() -> None:
    assert main(["--check"]) == 0, "run python -m scripts.advise_deviation"


def test_another_table_would_be_found() -> None:
    page = Path(PAGE).read_text(encoding="utf-8")
    assert page_with("another", page) != page
    assert page_with("another", page_with("one", page)) == page_with("another", page)


def test_the_example_of_the_page_is_a_workload() -> None:
    found = EXAMPLE.search(Path(PAGE).read_text(encoding="utf-8"))
    assert found is not None
    answer = advise(yaml.safe_load(found[1]))
    assert answer.options
    assert answer.contradictions == ()
