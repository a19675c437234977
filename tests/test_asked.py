"""The labels of tests/cases/asked: each says what is right and what would harm, and a few of them are asked here.

All of them are asked by `python -m tests.asked`, which takes a minute.
"""

from collections import Counter

import pytest

from tests.asked import accounts, asked, harmful, wrong
from tests.asked_traffic import Words

ASKED = (
    "p95-fast-on-too-large-a-host",
    "autoscaled-by-schedule",
    "mode-off-with-a-hard-space",
    "forgotten-demo",
    "host-of-64-cpus-for-one-card",
    "silent-since-yesterday",
    "autoscaled-to-its-limit-each-evening",
    "gpu-that-polls",
    "variant-on-four-gpus",
    "components-on-eight-gpus",
    "saturdays-three-times-the-week",
    "traffic-moved-away-last-week",
)
"""Quick ones: a tag that is not clear, a schedule of the owner, a refusal with an odd space, an idle endpoint, a
smaller host of the same card behind four options of other cards, one without datapoints of late, one that is late at
its maximum, one whose GPU works at something else, two that are too large and can have no shadow test, and two whose
busiest days a slower card may not carry that nobody measured."""
RIGHT = {"finding", "gate", "kind", "to", "count", "lowest", "saves", "said", "same_as"}


def labels() -> list[Words]:
    return [one for _, endpoints in accounts() for one in endpoints]


def test_each_label_has_a_name_a_reason_right_answers_and_harms_of_its_own() -> None:
    found = labels()
    assert len(found) >= 100
    for key in ("name", "why"):
        assert [value for value, times in Counter(one[key] for one in found).items() if times > 1] == []
    assert [one["name"] for one in found if not one["right"] or not set(one["right"]) <= RIGHT] == []
    assert [
        one["name"] for one in found if not one["harm"] or not all(set(each) <= RIGHT for each in one["harm"])
    ] == []


@pytest.mark.slow
def test_scan_answers_as_they_are_labelled() -> None:
    chosen = [one for one in labels() if one["name"] in ASKED]
    answers = asked({}, chosen)
    assert {one["name"]: (wrong(one, answers), harmful(one, answers)) for one in chosen} == dict.fromkeys(
        ASKED, ([], [])
    )


def test_an_answer_that_is_not_right_is_told_and_one_that_harms_is_named() -> None:
    one = {
        "name": "e",
        "right": {"finding": "Idle", "gate": "propose", "said": ["asleep"]},
        "harm": [{"gate": "apply"}],
    }
    answers = {"e": {"finding": "Optimized", "gate": "apply", "recommended": None}}
    assert wrong(one, answers) == [
        "finding is Optimized, not Idle",
        "gate is apply, not propose",
        "said is not said, not ['asleep']",
    ]
    assert harmful(one, answers) == [{"gate": "apply"}]
