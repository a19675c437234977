"""Which instance holds which copy, and which instances come back: AWS shows neither, a caller sees counts alone.

Sources: API reference, ComputeResourceRequirements, ProductionVariantManagedInstanceScaling and its ScaleInPolicy
(IDLE_RELEASE: instances without a copy leave; CONSOLIDATION: copies move together to empty some; MinInstanceCount is
kept). A copy for which nothing is free fails with a reason. [assumed]: copies are spread when they come, the fullest
instance loses one first, an instance is there or gone with the copy, and where AWS has no capacity none comes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from rightsizer import catalog
from rightsizer.catalog import catalogue
from rightsizer.domain.hardware import Catalogue

if TYPE_CHECKING:
    from sandbox.sagemaker.components import Component
    from sandbox.sagemaker.nouns import Variant

NO_ROOM = (
    "There is not enough hardware resources on the instances for this endpoint to create a copy of the inference"
    " component."
)
type Shares = tuple[float, ...]


@cache
def _types() -> Catalogue:
    return catalogue(catalog.instances(), catalog.accelerators())


@dataclass(slots=True)
class Homes:
    """The instances of one variant, each with the names of the components that have a copy on it."""

    instances: list[list[str]] = field(default_factory=list)
    has_capacity: bool = True
    """Whether AWS has more instances of the type."""

    def settle(self, component: "Component", wanted: int, variant: "Variant", shares: Mapping[str, Shares]) -> int:
        """Copies that run after; fewer than wanted where nothing has room. Instances follow where they are managed."""
        held = sum(names.count(component.name) for names in self.instances)
        for _ in range(held - wanted):
            max((i for i in self.instances if component.name in i), key=len).remove(component.name)
        for _ in range(wanted - held):
            if (home := self._room(component.name, variant, shares)) is None:
                break
            home.append(component.name)
        self._release(variant, shares)
        return sum(names.count(component.name) for names in self.instances)

    def _room(self, name: str, variant: "Variant", shares: Mapping[str, Shares]) -> list[str] | None:
        free = [i for i in self.instances if _fits(i, name, shares)]
        managed = _managed(variant)
        if (
            not free
            and managed
            and self.has_capacity
            and len(self.instances) < managed.get("MaxInstanceCount", len(self.instances))
        ):
            self.instances.append([])
            free = [self.instances[-1]] if _fits([], name, shares) else []
        return min(free, key=len) if free else None

    def _release(self, variant: "Variant", shares: Mapping[str, Shares]) -> None:
        """Empty instances leave, down to the minimum; a policy that consolidates empties some before."""
        managed = _managed(variant)
        if not managed:
            return
        if (managed.get("ScaleInPolicy") or {}).get("Strategy") == "CONSOLIDATION":
            self._consolidate(shares)
        least = int(managed.get("MinInstanceCount", 1))
        while len(self.instances) > least and [] in self.instances:
            self.instances.remove([])
        variant.count = variant.desired_count = len(self.instances)

    def _consolidate(self, shares: Mapping[str, Shares]) -> None:
        """The copies of the emptiest instance move to the others, where all of them fit."""
        for source in sorted(filter(None, self.instances), key=len):
            others = [list(i) for i in self.instances if i is not source and i]
            if others and _is_moved(source, others, shares):
                empty: list[list[str]] = [[] for _ in range(len(self.instances) - len(others))]
                self.instances = others + empty


def first_homes(variant: "Variant", components: Iterator["Component"], shares: Mapping[str, Shares]) -> Homes:
    """The instances that run, with the copies that run spread over them; what does not fit stays where it is."""
    found = Homes([[] for _ in range(variant.count)])
    for component in components:
        for _ in range(component.copies):
            free = [i for i in found.instances if _fits(i, component.name, shares)] or found.instances
            if free:
                min(free, key=len).append(component.name)
    return found


def shares_of(specification: Mapping[str, Any], instance_type: str | None) -> Shares:
    """Shares of one instance that a copy reserves; nothing of an adapter, and of a type that is not known."""
    needs = specification.get("ComputeResourceRequirements") or {}
    hardware = _types().find(instance_type or "")
    if hardware is None:
        return (0.0, 0.0, 0.0)
    return (
        float(needs.get("NumberOfCpuCoresRequired") or 0) / hardware.vcpu,
        float(needs.get("NumberOfAcceleratorDevicesRequired") or 0) / max(hardware.accelerator_count, 1),
        float(needs.get("MinMemoryRequiredInMb") or 0) / (1024 * hardware.memory_gib),
    )


def _fits(names: list[str], name: str, shares: Mapping[str, Shares]) -> bool:
    rows = [shares[n] for n in (*names, name) if n in shares]
    return all(sum(column) <= 1 + 1e-9 for column in zip(*rows, strict=True))


def _is_moved(source: list[str], others: list[list[str]], shares: Mapping[str, Shares]) -> bool:
    """Whether every copy of one instance found room on the others, which hold it then."""
    for name in source:
        home = next((other for other in others if _fits(other, name, shares)), None)
        if home is None:
            return False
        home.append(name)
    return True


def _managed(variant: "Variant") -> Mapping[str, Any]:
    found: Mapping[str, Any] = variant.spec.get("ManagedInstanceScaling") or {}
    return found if found.get("Status") == "ENABLED" else {}
