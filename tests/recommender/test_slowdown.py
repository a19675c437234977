"""What a slowdown was taken from says whether a test still tells something."""

import pytest

from rightsizer.domain.hardware import Accelerator
from rightsizer.domain.policy import Policy
from rightsizer.domain.slowdown import SlowdownSource
from rightsizer.recommender.slowdown import expected_slowdown, measured_slowdown
from tests.recommender import kit

POLICY = Policy()


def accelerator(name: str) -> Accelerator:
    found = kit.catalogue().find(name)
    assert found is not None
    assert found.accelerator is not None
    return found.accelerator


A10G, T4 = accelerator("ml.g5.xlarge"), accelerator("ml.g4dn.xlarge")


def test_the_source_of_each_slowdown() -> None:
    assert expected_slowdown(A10G, A10G, POLICY).source is SlowdownSource.SAME
    assert expected_slowdown(A10G, T4, POLICY).source is SlowdownSource.DATASHEET
    assert expected_slowdown(A10G, T4, POLICY, width=1.1).source is SlowdownSource.LEARNT
    assert measured_slowdown(A10G, T4, 2.0, 0.1).source is SlowdownSource.TESTED


@pytest.mark.parametrize(
    ("source", "is_guess", "is_measured"),
    [("same", False, False), ("datasheet", True, False), ("learnt", True, False), ("tested", False, True)],
)
def test_a_test_tells_something_only_where_the_slowdown_is_a_guess(
    source: str, is_guess: bool, is_measured: bool
) -> None:
    found = SlowdownSource(source)
    assert (found.is_guess, found.is_measured) == (is_guess, is_measured)
    assert f"({found})" == f"({source})", "people read the value"
