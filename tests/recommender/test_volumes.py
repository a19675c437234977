"""EBS volumes are in no figure, and whoever is asked is told so where an instance has one."""

import pytest

from rightsizer.bootstrap import catalogue
from rightsizer.domain.history import History
from rightsizer.domain.option import Option
from rightsizer.domain.policy import Policy
from rightsizer.recommender.other_endpoint import volume_notes
from tests.recommender import kit
from tests.recommender.kit import judge

KNOWN = catalogue().types


@pytest.mark.parametrize(
    ("now", "then", "named"),
    [
        ("ml.g5.xlarge", "ml.g6.xlarge", []),
        ("ml.p3.2xlarge", "ml.g5.xlarge", ["ml.p3.2xlarge"]),
        ("ml.g5.xlarge", "ml.inf2.xlarge", ["ml.inf2.xlarge"]),
        ("ml.p3.8xlarge", "ml.p3.2xlarge", ["ml.p3.2xlarge", "ml.p3.8xlarge"]),
        ("ml.p3.2xlarge", "ml.p3.2xlarge", ["ml.p3.2xlarge"]),
    ],
)
def test_the_types_with_a_volume_are_named_each_once(now: str, then: str, named: list[str]) -> None:
    said = " ".join(volume_notes(KNOWN[now], KNOWN[then]))
    assert [name for name in sorted({now, then}) if name in said] == named
    assert ("up to 512 GB" in said) is bool(named)


def test_of_all_types_with_a_gpu_only_p3_has_one() -> None:
    assert {t.family for t in KNOWN.values() if t.has_gpu and not t.has_local_nvme} == {"p3"}


def options(usage: dict[str, float]) -> list[Option]:
    types = kit.catalogue(kit.OTHERS)
    found = judge(
        kit.endpoint(p95_s=0.72),
        [kit.window(kit.steady(**usage))],
        kit.prices(),
        types,
        {},
        History(),
        Policy(),
        kit.NOW,
    )
    return list(found.options)


def test_an_option_without_a_gpu_and_one_of_another_chip_say_that_their_volumes_are_not_counted() -> None:
    found = [*options({"gpu": 0.02, "memory": 90.0}), *options({"memory": 60.0})]
    stored = [o for o in found if o.target.instance_type.startswith(("ml.m", "ml.inf2"))]
    assert {o.target.instance_type.split(".")[1] for o in stored} >= {"m5", "m8g"}
    for option in found:
        named = [said for said in option.not_checked if "EBS volumes" in said]
        assert len(named) == (option in stored)


def test_an_inferentia_option_says_it_too() -> None:
    quotas = {name: 0 for name in kit.TYPES if name != "ml.g6e.xlarge"}
    found = judge(
        kit.endpoint("ml.g6e.xlarge", p95_s=5.0), [kit.window(kit.steady(memory=60.0))], kit.prices(),
        kit.catalogue(kit.OTHERS), quotas, History(), Policy(), kit.NOW,
    )  # fmt: skip
    assert found.chosen_option is not None
    assert found.chosen_option.target.instance_type == "ml.inf2.xlarge"
    assert any("EBS volumes of ml.inf2.xlarge" in said for said in found.chosen_option.not_checked)
