"""Inference components: models packed on the instances of a variant without a ModelName.

Sources: API reference of the six InferenceComponent operations.
There is no event for them: poll.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sandbox.clock import next_minute
from sandbox.paging import page
from sandbox.refusals import invalid

if TYPE_CHECKING:
    from sandbox.world import World

type Params = dict[str, Any]


@dataclass(slots=True)
class Component:
    """An inference component."""

    name: str
    arn: str
    endpoint: str
    variant: str
    specification: Params
    copies: int
    desired: int
    created: datetime
    modified: datetime
    status: str = "Creating"
    until: datetime | None = None


class Components:
    """Every inference component, and its operations."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.known: dict[str, Component] = {}

    def next_due(self, now: datetime) -> datetime | None:
        """When the next one is done; waits at most a minute."""
        dues = [component.until for component in self.known.values() if component.until]
        return max(next_minute(now) if min(dues) <= now else min(dues), now) if dues else None

    def happen(self, now: datetime) -> None:
        """Let components finish."""
        for component in list(self.known.values()):
            if component.until and now >= component.until:
                component.until = None
                if component.status == "Deleting":
                    del self.known[component.name]
                    continue
                component.copies, component.status, component.modified = component.desired, "InService", now

    def CreateInferenceComponent(self, p: Params) -> Params:
        """Place copies of a model on a variant."""
        name = p["InferenceComponentName"]
        arn = self._world.fleet.arn("inference-component", name)
        endpoint = self._world.fleet.endpoint(p["EndpointName"])
        variant = endpoint.variants.get(p.get("VariantName", ""))
        if variant is None or variant.spec.get("ModelName"):
            raise invalid(
                f"Inference components need a variant without a model; {p.get('VariantName')} is none."
            )  # [assumed]
        if name in self.known:
            raise invalid(f'Cannot create already existing inference component "{arn}".')
        copies, now = p.get("RuntimeConfig", {}).get("CopyCount", 1), self._world.clock.now
        component = Component(name, arn, endpoint.name, variant.name, p["Specification"], 0, copies, now, now)
        component.until = now + self._world.fleet.timing.scale
        self.known[name] = component
        self._world.tags.add(arn, p.get("Tags") or [])
        return {"InferenceComponentArn": arn}

    def DescribeInferenceComponent(self, p: Params) -> Params:
        """Describe a component; the image appears as DeployedImage, the copies as two counts."""
        c = self._component(p)
        specification = dict(c.specification)
        if container := specification.get("Container"):
            image = container.get("Image", "")
            specification["Container"] = {key: value for key, value in container.items() if key != "Image"} | {
                "DeployedImage": {"SpecifiedImage": image, "ResolvedImage": image, "ResolutionTime": c.created}
            }
        return {
            "InferenceComponentName": c.name, "InferenceComponentArn": c.arn, "EndpointName": c.endpoint,
            "EndpointArn": self._world.fleet.arn("endpoint", c.endpoint), "VariantName": c.variant,
            "Specification": specification, "CreationTime": c.created, "LastModifiedTime": c.modified,
            "RuntimeConfig": {"DesiredCopyCount": c.desired, "CurrentCopyCount": c.copies},
            "InferenceComponentStatus": c.status,
        }  # fmt: skip

    def ListInferenceComponents(self, p: Params) -> Params:
        """List components; pages of 10 unless asked for more."""
        rows = [
            {
                "InferenceComponentName": c.name, "InferenceComponentArn": c.arn, "EndpointName": c.endpoint,
                "EndpointArn": self._world.fleet.arn("endpoint", c.endpoint), "VariantName": c.variant,
                "CreationTime": c.created, "LastModifiedTime": c.modified, "InferenceComponentStatus": c.status,
            }
            for c in self.known.values()
            if p.get("EndpointNameEquals", c.endpoint) == c.endpoint
            and p.get("VariantNameEquals", c.variant) == c.variant
            and p.get("NameContains", "").lower() in c.name.lower()
        ]  # fmt: skip
        shown, token = page(rows, p.get("NextToken"), p.get("MaxResults") or 10)
        return {"InferenceComponents": shown, "NextToken": token}

    def UpdateInferenceComponent(self, p: Params) -> Params:
        """Change specification or copies."""
        component = self._idle(p)
        component.specification = p.get("Specification") or component.specification
        component.desired = p.get("RuntimeConfig", {}).get("CopyCount", component.desired)
        return self._begin(component, "Updating")

    def UpdateInferenceComponentRuntimeConfig(self, p: Params) -> Params:
        """Change the number of copies."""
        component = self._idle(p)
        component.desired = p["DesiredRuntimeConfig"]["CopyCount"]
        return self._begin(component, "Updating")

    def DeleteInferenceComponent(self, p: Params) -> Params:
        """Delete a component."""
        self._begin(self._idle(p), "Deleting")
        return {}

    def _begin(self, component: Component, status: str) -> Params:
        component.status, component.modified = status, self._world.clock.now
        component.until = self._world.clock.now + self._world.fleet.timing.scale
        return {"InferenceComponentArn": component.arn}

    def _component(self, p: Params) -> Component:
        name = p["InferenceComponentName"]
        if name not in self.known:
            raise invalid(f'Could not find inference component "{self._world.fleet.arn("inference-component", name)}".')
        return self.known[name]

    def _idle(self, p: Params) -> Component:
        component = self._component(p)
        if component.status not in {"InService", "Failed"}:
            raise invalid(f'Cannot update in-progress inference component "{component.arn}".')  # [assumed] text
        return component
