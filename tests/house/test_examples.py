"""The examples in docstrings of what others implement run, and none of them is missing."""

import doctest
import inspect

import pytest

from rightsizer.domain.price import NoPrice
from rightsizer.domain.reason import Code, Reason
from rightsizer.ports import evaluation

IMPLEMENTED = (evaluation.Notifier, evaluation.PriceSource)
"""Ports that a newcomer implements. docs/extending.md and docs/extending-dimensions.md have the whole examples."""


@pytest.mark.parametrize("port", IMPLEMENTED)
def test_a_port_for_newcomers_has_an_example(port: type) -> None:
    assert "Example:" in (inspect.getdoc(port) or "")


def test_the_examples_of_the_ports_run() -> None:
    names = {"Code": Code, "NoPrice": NoPrice, "Reason": Reason}
    done = doctest.testmod(evaluation, extraglobs=names)
    assert (done.failed, done.attempted > len(IMPLEMENTED)) == (0, True)
