"""A Kubernetes cluster as its metrics describe it: nodes, requests of containers, and what they and devices did."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """One node that runs now."""

    name: str
    instance_type: str
    """The EC2 name, such as ``g5.xlarge``; empty where no label tells it."""
    region: str = ""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """The pods that one owner makes: a Deployment, a StatefulSet, a Job, or a pod alone."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """Requests of one container that runs now."""

    group: PodGroup
    pod: str
    container: str
    node: str
    cpu: float | None = None
    """vCPUs."""
    memory_gib: float | None = None
    devices: int = 0
    resource: str = ""
    """Name of the device in a pod's specification, such as ``nvidia.com/gpu``."""


@dataclass(frozen=True, slots=True)
class ContainerUse:
    """Use of one container in the window."""

    group: PodGroup
    container: str
    cpu_p95: float | None = None
    """vCPUs."""
    memory_max_gib: float | None = None


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """Use of one GPU, or one NeuronCore, in the window.

    `group` is None where no label names a pod.
    """

    group: PodGroup | None
    node: str
    model: str
    busy_percent: float | None = None
    """Mean of the window, 0 to 100."""
    busy_p95_percent: float | None = None
    memory_max_gib: float | None = None
    tensor_percent: float | None = None
    """Mean share of the cycles in which tensor cores worked, 0 to 100; None where it is not exported."""


@dataclass(frozen=True, slots=True)
class ClusterUse:
    """Everything that was read of a cluster."""

    days: int
    nodes: tuple[Node, ...] = ()
    requests: tuple[ContainerRequest, ...] = ()
    uses: tuple[ContainerUse, ...] = ()
    devices: tuple[DeviceUse, ...] = ()
    missing: tuple[str, ...] = ()
    """Series that the server does not have, each with what would bring it."""
