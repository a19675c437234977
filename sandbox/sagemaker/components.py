"""Inference components: models packed on the instances of a variant without a ModelName.

Sources: API reference of the six InferenceComponent operations.
There is no event for them: poll.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sandbox.clock import next_minute
from sandbox.paging import page
from sandbox.refusals import invalid
from sandbox.sagemaker.deployment import REASONS, Ending
from sandbox.sagemaker.placement import NO_ROOM, Homes, first_homes, shares_of
from sandbox.strict import on

if TYPE_CHECKING:
    from sandbox.scaling.api import Target
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
    reason: str = ""
    """Why its last update failed."""
    wanted: Params | None = None
    """What its update asks for; the copies take it on when the roll is done."""
    alarms: tuple[str, ...] = ()
    """Roll-back alarms of its update."""
    images: dict[str, Params] = field(default_factory=dict)
    """What each image meant when the copies of now were started."""


class Components:
    """Every inference component, and its operations."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.known: dict[str, Component] = {}
        self._homes: dict[str, Homes] = {}
        """Where the copies of each endpoint are."""
        self.scripts: dict[str, list[Ending]] = {}
        """How the next rolls of a component end; they succeed otherwise, unless one of their alarms fires."""

    def next_due(self, now: datetime) -> datetime | None:
        """When the next one is done; waits at most a minute."""
        dues = [component.until for component in self.known.values() if component.until]
        return max(next_minute(now) if min(dues) <= now else min(dues), now) if dues else None

    def happen(self, now: datetime) -> None:
        """Let components finish."""
        for component in list(self.known.values()):
            if component.wanted is not None and (fired := self._world.alarms.firing(component.alarms)):
                self._took_back(component, Ending.ALARM, now, ", ".join(fired))
            elif component.until and now >= component.until:
                component.until = None
                if component.status == "Deleting":
                    del self.known[component.name]
                    continue
                self._arrive(component, now)

    def _arrive(self, component: Component, now: datetime) -> None:
        """The roll is done, or ends as it was told to."""
        script = self.scripts.get(component.name)
        ending = script.pop(0) if script and component.wanted is not None else Ending.SUCCESS
        if ending is not Ending.SUCCESS:
            self._took_back(component, ending, now)
            return
        component.specification = component.wanted or component.specification
        if component.wanted is not None:
            component.images.clear()
        component.wanted, component.reason = None, ""
        component.status, component.modified = "InService", now
        self._place(component)

    def _place(self, component: Component) -> None:
        """The copies that are asked for, as far as instances hold them; managed instances follow."""
        variant = self._world.fleet.endpoint(component.endpoint).variants[component.variant]
        mine = [c for c in self.known.values() if (c.endpoint, c.variant) == (component.endpoint, component.variant)]
        shares = {c.name: shares_of(c.specification, variant.instance_type) for c in mine}
        homes = self._homes.get(component.endpoint)
        if homes is None or len(homes.instances) != variant.count:  # others changed the count, or the fleet is new
            homes = first_homes(variant, iter(mine), shares)
        self._homes[component.endpoint] = homes
        homes.has_capacity = variant.instance_type not in self._world.fleet.scarce
        component.copies = homes.settle(component, component.desired, variant, shares)
        if component.copies < component.desired:
            component.status, component.reason = "Failed", NO_ROOM

    def _took_back(self, component: Component, ending: Ending, now: datetime, alarms: str = "") -> None:
        """InferenceComponentDeploymentConfig: a failed roll goes back to the old specification."""
        facts = {"variant": component.variant, "alarms": alarms, "timeout": ""}
        component.reason = REASONS[ending].format_map(facts)
        component.status = "Failed" if ending is Ending.FAILED else "InService"
        component.wanted, component.until, component.modified = None, None, now

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
        specification = _specification(p) or {}
        component = Component(name, arn, endpoint.name, variant.name, specification, 0, copies, now, now)
        component.until = now + self._world.fleet.timing.scale
        self.known[name] = component
        self._world.tags.add(arn, p.get("Tags") or [])
        return {"InferenceComponentArn": arn}

    def DescribeInferenceComponent(self, p: Params) -> Params:
        """Describe a component; the image appears as DeployedImage, the copies as two counts."""
        c = self._component(p, "DescribeInferenceComponent")
        several = c.specification.get("Specifications")
        shown = (
            {"Specifications": [self._shown(each, c) for each in several]}
            if several
            else {"Specification": self._shown(c.specification, c)}
        )
        return shown | ({"FailureReason": c.reason} if c.reason else {}) | {
            "InferenceComponentName": c.name, "InferenceComponentArn": c.arn, "EndpointName": c.endpoint,
            "EndpointArn": self._world.fleet.arn("endpoint", c.endpoint), "VariantName": c.variant,
            "CreationTime": c.created, "LastModifiedTime": c.modified,
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
        size = p.get("MaxResults") or 10
        shown, token = page(rows, p.get("NextToken"), size, operation="ListInferenceComponents")
        return {"InferenceComponents": shown, "NextToken": token}

    def UpdateInferenceComponent(self, p: Params) -> Params:
        """Change specification or copies: a part of the copies at a time, watched by alarms."""
        component, wanted = self._idle(p, "UpdateInferenceComponent"), _specification(p)
        self._profile(component, p)
        deployment = p.get("DeploymentConfig") or {}
        batches = _batches(deployment, component.desired)
        component.desired = p.get("RuntimeConfig", {}).get("CopyCount", component.desired)
        answer = self._begin(component, "Updating")
        if wanted is not None:
            component.wanted, component.reason = wanted, ""
            component.alarms = tuple(
                a["AlarmName"] for a in (deployment.get("AutoRollbackConfiguration") or {}).get("Alarms", [])
            )
            component.until = self._world.clock.now + batches * self._world.fleet.timing.scale
        return answer

    def _profile(self, component: Component, p: Params) -> None:
        """ComputeResourceRequirements, AcceleratorPartitionType: one of the variant's layout, and required with one."""
        variant = self._world.fleet.endpoint(component.endpoint).variants[component.variant]
        layouts = variant.spec.get("AcceleratorPartitionLayouts") or []
        known = {kind for layout in layouts for kind in layout.get("AcceleratorPartitionTypes") or []}
        for one in [*(p.get("Specifications") or []), *filter(None, [p.get("Specification")])]:
            needs = one.get("ComputeResourceRequirements")
            kind = (needs or {}).get("AcceleratorPartitionType")
            wrong = needs is not None and (kind not in known if kind or known else False)
            if wrong and on("UpdateInferenceComponent", "profile"):
                raise invalid(f"AcceleratorPartitionType {kind} is none of the variant's layout.")  # [assumed] text

    def UpdateInferenceComponentRuntimeConfig(self, p: Params) -> Params:
        """Change the number of copies."""
        component = self._idle(p, "UpdateInferenceComponentRuntimeConfig")
        component.desired = p["DesiredRuntimeConfig"]["CopyCount"]
        return self._begin(component, "Updating")

    def set_copies(self, component: Component, copies: int) -> None:
        """Application Auto Scaling asks for so many copies; not while the component is being changed."""
        if component.status in {"InService", "Failed"} and component.desired != copies:
            component.desired = copies
            self._begin(component, "Updating")

    def follow(self, target: "Target") -> None:
        """Copies within the bounds of a scalable target, where it is one of a component."""
        component = self.known.get(target.identity[0].removeprefix("inference-component/"))
        if component is not None:
            self.set_copies(component, min(max(component.desired, target.minimum), target.maximum))

    def is_serving(self, endpoint: str) -> bool:
        """Whether any component of the endpoint has a copy, or is about to have one; True where it has none at all."""
        mine = [c for c in self.known.values() if c.endpoint == endpoint]
        return not mine or any(c.copies or c.desired for c in mine)

    def DeleteInferenceComponent(self, p: Params) -> Params:
        """Delete a component."""
        self._begin(self._idle(p, "DeleteInferenceComponent"), "Deleting")
        return {}

    def _begin(self, component: Component, status: str) -> Params:
        component.status, component.modified = status, self._world.clock.now
        component.until = self._world.clock.now + self._world.fleet.timing.scale
        return {"InferenceComponentArn": component.arn}

    def _shown(self, specification: Params, component: Component) -> Params:
        """A specification as it is described: the image appears as DeployedImage, as it was resolved when it began."""
        container = specification.get("Container")
        if not container:
            return dict(specification)
        image = container.get("Image", "")
        deployed = component.images.setdefault(image, self._world.fleet.resolved(image))
        rest = {key: value for key, value in container.items() if key != "Image"}
        return {**specification, "Container": rest | {"DeployedImage": deployed}}

    def _component(self, p: Params, operation: str) -> Component:
        name = p["InferenceComponentName"]
        if name not in self.known and on(operation, "unknown"):
            raise invalid(f'Could not find inference component "{self._world.fleet.arn("inference-component", name)}".')
        return self.known[name]

    def _idle(self, p: Params, operation: str) -> Component:
        component = self._component(p, operation)
        if component.status not in {"InService", "Failed"} and on(operation, "busy"):
            raise invalid(f'Cannot update in-progress inference component "{component.arn}".')  # [assumed] text
        return component


def _specification(p: Params) -> Params | None:
    """What a request says of the component: one specification, or one for each instance type; None for neither."""
    if p.get("Specification") and p.get("Specifications") and on("UpdateInferenceComponent", "both"):
        raise invalid("Specify either Specification or Specifications, not both.")  # API text; [assumed] wording
    return {"Specifications": p["Specifications"]} if p.get("Specifications") else p.get("Specification")


def _batches(deployment: Params, copies: int) -> int:
    """Rounds of a roll. API text: a batch is 5 to 50 percent of the copies."""
    policy = deployment.get("RollingUpdatePolicy")
    if not policy:
        return 1
    size = policy["MaximumBatchSize"]
    percent = size["Value"] if size["Type"] == "CAPACITY_PERCENT" else 100 * size["Value"] / max(1, copies)
    if not 5 <= percent <= 50 and on("UpdateInferenceComponent", "share"):
        raise invalid(f"MaximumBatchSize must be between 5 and 50 percent of the copy count, got {percent:.0f}.")
    return int(-(-100 // percent))
