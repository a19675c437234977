"""The catalogue and the accelerators of it, once for all tests of advice."""

from collections.abc import Mapping

import pytest

from rightsizer import catalog
from rightsizer.catalog import catalogue
from rightsizer.domain.hardware import Accelerator, Catalogue


@pytest.fixture(scope="session")
def hardware() -> Catalogue:
    return catalogue(catalog.instances(), catalog.accelerators())


@pytest.fixture(scope="session")
def chips(hardware: Catalogue) -> Mapping[str, Accelerator]:
    return {each.accelerator.model: each.accelerator for each in hardware if each.accelerator}
