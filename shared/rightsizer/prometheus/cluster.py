"""A cluster's nodes, requests and use from the series of four exporters.

Names of series and labels: NVIDIA's DCGM exporter (default-counters.csv and dcp-metrics-included.csv of
NVIDIA/dcgm-exporter), neuron-monitor (AWS Neuron documentation, neuron-monitor user guide), kube-state-metrics (its
pod and node metrics), and the kubelet's cAdvisor and resource metrics (Kubernetes documentation).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from rightsizer.domain.cluster import ClusterUse, ContainerRequest, ContainerUse, DeviceUse, Node, PodGroup
from rightsizer.errors import InputError
from rightsizer.prometheus.client import Sample

MIB, BYTES = 2**10, 2**30
"""DCGM counts memory in MiB, Kubernetes and Neuron in bytes; both to GiB."""
DEVICES: Mapping[str, str] = {
    "nvidia_com_gpu": "nvidia.com/gpu",
    "aws_amazon_com_neuron": "aws.amazon.com/neuron",
    "aws_amazon_com_neurondevice": "aws.amazon.com/neurondevice",
    "aws_amazon_com_neuroncore": "aws.amazon.com/neuroncore",
}
"""Resources as kube-state-metrics and as pods spell them."""
NODE_LABELS = ("node", "hostname", "Hostname", "kubernetes_node", "instance_name", "instance_id")
"""Labels that may name the node of a device, the best first. Older DCGM exporters write Hostname."""
TYPE_LABELS = ("label_node_kubernetes_io_instance_type", "label_beta_kubernetes_io_instance_type")
REGION_LABELS = ("label_topology_kubernetes_io_region", "label_failure_domain_beta_kubernetes_io_region")
TYPES_HINT = "--metric-labels-allowlist=nodes=[node.kubernetes.io/instance-type,topology.kubernetes.io/region]"

NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

type Key = tuple[str, str, str]
"""Namespace, pod and container."""


class Queries(Protocol):
    """Queries needed of a Prometheus server."""

    def query(self, expression: str) -> tuple[Sample, ...]:
        """The instant vector of an expression."""
        ...


def read_cluster(server: Queries, days: int, namespace: str | None = None) -> ClusterUse:
    """The cluster over the last `days`; with a namespace, its pods only. ReadError where the server cannot be asked."""
    if namespace and not NAMESPACE.fullmatch(namespace):
        raise InputError(f"{namespace!r} is no name of a Kubernetes namespace: small letters, digits and hyphens")
    window, within = f"{days}d", f'namespace="{namespace}"' if namespace else ""
    owners = _owners(server.query(f"max_over_time(kube_pod_owner{{{within}}}[{window}])"))
    requests = tuple(_requests(server.query(f"kube_pod_container_resource_requests{{{within}}}"), owners))
    nodes = tuple(_nodes(server.query("kube_node_labels")))
    gpus, cores = tuple(_gpus(server, window, owners)), tuple(_cores(server, window))
    if namespace:
        asked = {request.node for request in requests if request.devices}
        gpus = tuple(device for device in gpus if _is_within(device, namespace, asked))
        cores = tuple(device for device in cores if _is_within(device, namespace, asked))
    uses = tuple(_uses(server, window, within, owners))
    missing = (*_missing(nodes, owners, requests, uses), *_missing_devices(requests, gpus, cores))
    return ClusterUse(days, nodes, requests, uses, (*gpus, *cores), missing)


def _is_within(device: DeviceUse, namespace: str, nodes: set[str]) -> bool:
    return device.group.namespace == namespace if device.group else device.node in nodes


def _owners(samples: Iterable[Sample]) -> Mapping[tuple[str, str], PodGroup]:
    """The owner of each pod; a ReplicaSet stands for the Deployment that made it."""
    found: dict[tuple[str, str], PodGroup] = {}
    for sample in samples:
        namespace, pod = sample.labels.get("namespace", ""), sample.labels.get("pod", "")
        kind, name = sample.labels.get("owner_kind", ""), sample.labels.get("owner_name", "")
        if kind == "ReplicaSet" and "-" in name:
            kind, name = "Deployment", name.rpartition("-")[0]
        if name and name != "<none>":
            found[namespace, pod] = PodGroup(namespace, kind, name)
    return found


def _group(owners: Mapping[tuple[str, str], PodGroup], namespace: str, pod: str) -> PodGroup:
    return owners.get((namespace, pod), PodGroup(namespace, "Pod", pod))


def _requests(samples: Iterable[Sample], owners: Mapping[tuple[str, str], PodGroup]) -> Iterator[ContainerRequest]:
    found: dict[Key, ContainerRequest] = {}
    for sample in samples:
        labels, resource = sample.labels, sample.labels.get("resource", "")
        key = (labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", ""))
        group = _group(owners, key[0], key[1])
        request = found.get(key, ContainerRequest(group, key[1], key[2], labels.get("node", "")))
        if resource == "cpu":
            request = replace(request, cpu=sample.value)
        elif resource == "memory":
            request = replace(request, memory_gib=sample.value / BYTES)
        elif resource in DEVICES:
            request = replace(request, devices=request.devices + int(sample.value), resource=DEVICES[resource])
        found[key] = request
    yield from found.values()


def _nodes(samples: Iterable[Sample]) -> Iterator[Node]:
    for sample in samples:
        kind = next((sample.labels[name] for name in TYPE_LABELS if sample.labels.get(name)), "")
        region = next((sample.labels[name] for name in REGION_LABELS if sample.labels.get(name)), "")
        yield Node(sample.labels.get("node", ""), kind, region)


def _gpus(server: Queries, window: str, owners: Mapping[tuple[str, str], PodGroup]) -> Iterator[DeviceUse]:
    """One row for each GPU and pod that the DCGM exporter names."""
    mean = server.query(f"avg_over_time(DCGM_FI_DEV_GPU_UTIL[{window}])")
    high = _by_series(server.query(f"quantile_over_time(0.95, DCGM_FI_DEV_GPU_UTIL[{window}])"))
    memory = _by_series(server.query(f"max_over_time(DCGM_FI_DEV_FB_USED[{window}])"))
    tensor = _by_series(server.query(f"avg_over_time(DCGM_FI_PROF_PIPE_TENSOR_ACTIVE[{window}])"))
    for sample in mean:
        labels, key = sample.labels, _series(sample.labels)
        used, active = memory.get(key), tensor.get(key)
        yield DeviceUse(
            _group_of_device(labels, owners),
            _node_of(labels),
            labels.get("modelName", ""),
            sample.value,
            high.get(key),
            None if used is None else used / MIB,
            None if active is None else 100 * active,
        )


def _cores(server: Queries, window: str) -> Iterator[DeviceUse]:
    """One row for each NeuronCore; memory is that of all Neuron devices of its node."""
    mean = server.query(f"avg_over_time(neuroncore_utilization_ratio[{window}])")
    high = _by_series(server.query(f"quantile_over_time(0.95, neuroncore_utilization_ratio[{window}])"))
    memory: dict[str, float] = {}
    used = f'max_over_time(neuron_runtime_memory_used_bytes{{memory_location="neuron_device"}}[{window}])'
    for sample in server.query(used):
        node = _node_of(sample.labels)
        memory[node] = memory.get(node, 0.0) + sample.value / BYTES
    for sample in mean:
        node, top = _node_of(sample.labels), high.get(_series(sample.labels))
        kind = sample.labels.get("instance_type", "")
        yield DeviceUse(None, node, kind, 100 * sample.value, None if top is None else 100 * top, memory.get(node))


def _group_of_device(labels: Mapping[str, str], owners: Mapping[tuple[str, str], PodGroup]) -> PodGroup | None:
    """The pods that hold the device. Labels that clash with those of the scrape begin with exported_."""
    pod, namespace, container = (
        next((labels[name] for name in names if labels.get(name)), "") for names in (POD, NAMESPACES, CONTAINER)
    )
    if not pod or (POD[0] not in labels and POD[1] not in labels and container in EXPORTERS):
        return None
    return _group(owners, namespace, pod)


POD = ("exported_pod", "pod_name", "pod")
NAMESPACES = ("exported_namespace", "pod_namespace", "namespace")
CONTAINER = ("exported_container", "container_name", "container")
"""Labels of the pod that holds a device, the best first: renamed by the scrape, old names, today's."""
EXPORTERS = frozenset({"nvidia-dcgm-exporter", "dcgm-exporter", "exporter"})
"""Containers of the exporter itself, which label its series where it names no pod."""


def _node_of(labels: Mapping[str, str]) -> str:
    return next((labels[name] for name in NODE_LABELS if labels.get(name)), "")


def _uses(
    server: Queries, window: str, within: str, owners: Mapping[tuple[str, str], PodGroup]
) -> Iterator[ContainerUse]:
    """CPU and memory of each container: the 95th percentile of five minutes, and the highest working set."""
    chosen = ",".join(filter(None, ('container!=""', 'container!="POD"', within)))
    rate = f"rate(container_cpu_usage_seconds_total{{{chosen}}}[5m])"
    cpu = server.query(f"quantile_over_time(0.95, {rate}[{window}:5m])")
    memory = server.query(f"max_over_time(container_memory_working_set_bytes{{{chosen}}}[{window}])")
    found: dict[Key, ContainerUse] = {}
    for each, name in [*((sample, "cpu_p95") for sample in cpu), *((sample, "memory_max_gib") for sample in memory)]:
        labels = each.labels
        key = (labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", ""))
        use = found.get(key, ContainerUse(_group(owners, key[0], key[1]), key[2]))
        if name == "cpu_p95":
            found[key] = replace(use, cpu_p95=max(each.value, use.cpu_p95 or 0.0))
        else:
            found[key] = replace(use, memory_max_gib=max(each.value / BYTES, use.memory_max_gib or 0.0))
    yield from found.values()


def _by_series(samples: Iterable[Sample]) -> Mapping[frozenset[tuple[str, str]], float]:
    return {_series(sample.labels): sample.value for sample in samples}


def _series(labels: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """The labels without the name of the metric, which differs between the series of one device."""
    return frozenset((key, value) for key, value in labels.items() if key not in ("__name__", "DCGM_FI_DRIVER_VERSION"))


def _missing(
    nodes: Sequence[Node],
    owners: Mapping[tuple[str, str], PodGroup],
    requests: Sequence[ContainerRequest],
    uses: Sequence[ContainerUse],
) -> Iterator[str]:
    """Series that are not there, what brings them, and what the advice lacks without them."""
    if not requests:
        why = "kube-state-metrics is not scraped, or the namespace has no pods"
        lost = "without it nobody knows which pods have devices, so there is no advice for pods"
        yield f"kube_pod_container_resource_requests: {why}; {lost}"
    if requests and not owners:
        yield "kube_pod_owner: kube-state-metrics does not export it; each pod is advised alone, without its Deployment"
    if not any(node.instance_type for node in nodes):
        hint = f"start kube-state-metrics with {TYPES_HINT}"
        yield f"the instance type of nodes: {hint}; without it there is no cost and no other type"
    for name, known in (
        ("container_cpu_usage_seconds_total", any(use.cpu_p95 is not None for use in uses)),
        ("container_memory_working_set_bytes", any(use.memory_max_gib is not None for use in uses)),
    ):
        if not known:
            yield f"{name}: the kubelet's cAdvisor is not scraped; what pods ask for is not judged by it"


def _missing_devices(
    requests: Sequence[ContainerRequest], gpus: Sequence[DeviceUse], cores: Sequence[DeviceUse]
) -> Iterator[str]:
    """The same for the two exporters of devices, each where pods ask for its devices or nothing is known of any."""
    asked = {request.resource for request in requests if request.devices}
    lost = "use of the devices is unknown, which is not idle, and no other type is advised"
    if not gpus and (GPU in asked or not asked):
        yield f"DCGM_FI_DEV_GPU_UTIL: the DCGM exporter is not scraped; {lost}"
    elif gpus:
        if all(device.group is None for device in gpus):
            yield f"labels of pods at DCGM_FI_DEV_GPU_UTIL: the exporter's Kubernetes mode is off; {lost}"
        if all(device.memory_max_gib is None for device in gpus):
            yield "DCGM_FI_DEV_FB_USED: the DCGM exporter does not export it; no other card is advised without it"
        if all(device.tensor_percent is None for device in gpus):
            text = "only dcp-metrics-included.csv of the DCGM exporter has it; the use of tensor cores is not shown"
            yield f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE: {text}"
    if not cores and (asked - {GPU} or not asked):
        yield f"neuroncore_utilization_ratio: neuron-monitor is not scraped; {lost}"
    elif cores and all(device.memory_max_gib is None for device in cores):
        yield "neuron_runtime_memory_used_bytes: neuron-monitor does not export it; memory of the chips is not shown"


GPU = "nvidia.com/gpu"
