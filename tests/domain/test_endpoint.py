"""The variant or the component of a registration is read off its resource id in one place, whole."""

import pytest

from rightsizer.domain.endpoint import ScalableTarget, component_resource_id, variant_resource_id
from rightsizer.domain.tags import declared_p95_s


def scaled(resource_id: str) -> ScalableTarget:
    return ScalableTarget(resource_id, "d", 1, 4)


@pytest.mark.parametrize("variant", ["AllTraffic", "canary-p95", "variant"])
def test_the_variant_of_a_resource_id_is_the_one_it_was_made_of(variant: str) -> None:
    target = scaled(variant_resource_id("chat", variant))
    assert (target.variant_name, target.component_name) == (variant, None)


def test_a_component_is_no_variant() -> None:
    target = scaled(component_resource_id("chat-part"))
    assert (target.variant_name, target.component_name) == (None, "chat-part")


def test_the_end_of_a_name_is_not_the_name() -> None:
    """Two variants of which one name ends like the other."""
    assert scaled(variant_resource_id("chat", "old-blue")).variant_name != "blue"


@pytest.mark.parametrize("resource_id", ["", "table/orders", "endpoint/chat", "endpoint/chat/variant/a/b", "r"])
def test_what_is_neither_names_nothing(resource_id: str) -> None:
    target = scaled(resource_id)
    assert (target.variant_name, target.component_name) == (None, None)


@pytest.mark.parametrize(
    ("tags", "seconds"),
    [
        ({"rightsizer:p95-ms": "300"}, 0.3),
        ({"rightsizer:p95-ms": "0"}, None),
        ({"rightsizer:p95-ms": "1e9"}, None),
        ({"rightsizer:p95-ms": "fast"}, None),
        ({}, None),
    ],
)
def test_the_declared_p95_is_a_number_of_milliseconds(tags: dict[str, str], seconds: float | None) -> None:
    assert declared_p95_s(tags) == seconds
