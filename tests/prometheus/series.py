"""A small cluster as series: what each exporter would have written, for a served answer and for a real Prometheus.

Names and labels follow the exporters' documentation, as `rightsizer.prometheus.cluster` names it.
"""

from collections.abc import Iterator, Mapping

GIB = 2**30

type Series = tuple[str, Mapping[str, str], float]
"""Name, labels and the value that the series always has; a counter has its rate."""


def pod(namespace: str, owner: str, number: int, container: str) -> dict[str, str]:
    return {"namespace": namespace, "pod": f"{owner}-7d9f8b6c5d-{number}", "container": container}


def owned(namespace: str, owner: str, number: int) -> Series:
    labels = {"namespace": namespace, "pod": f"{owner}-7d9f8b6c5d-{number}"}
    return "kube_pod_owner", {**labels, "owner_kind": "ReplicaSet", "owner_name": f"{owner}-7d9f8b6c5d"}, 1.0


def node(name: str, kind: str) -> Series:
    labels = {"label_node_kubernetes_io_instance_type": kind, "label_topology_kubernetes_io_region": "us-east-1"}
    return "kube_node_labels", {"node": name, **labels}, 1.0


def asks(
    labels: Mapping[str, str], where: str, cpu: float, gib: float, resource: str, devices: int
) -> Iterator[Series]:
    name = "kube_pod_container_resource_requests"
    yield name, {**labels, "node": where, "resource": "cpu", "unit": "core"}, cpu
    yield name, {**labels, "node": where, "resource": "memory", "unit": "byte"}, gib * GIB
    if devices:
        yield name, {**labels, "node": where, "resource": resource, "unit": "integer"}, float(devices)


def used(labels: Mapping[str, str], cpu: float, gib: float) -> Iterator[Series]:
    yield "container_cpu_usage_seconds_total", labels, cpu
    yield "container_memory_working_set_bytes", labels, gib * GIB


def gpu(labels: Mapping[str, str], where: str, number: int, busy: float, mib: float) -> Iterator[Series]:
    exported = {f"exported_{key}": value for key, value in labels.items()}
    device = {"gpu": str(number), "UUID": f"GPU-{where}-{number}", "modelName": "NVIDIA A10G", "Hostname": where}
    scraped = {"namespace": "gpu-operator", "pod": "dcgm-exporter-x", "container": "nvidia-dcgm-exporter"}
    every = {**device, **exported, **scraped}
    yield "DCGM_FI_DEV_GPU_UTIL", every, busy
    yield "DCGM_FI_DEV_FB_USED", every, mib
    yield "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", every, busy / 400


def core(where: str, number: int, ratio: float) -> Series:
    labels = {"node": where, "instance_id": "i-0123", "instance_type": "inf2.xlarge", "neuroncore": str(number)}
    return "neuroncore_utilization_ratio", labels, ratio


def cluster() -> Iterator[Series]:
    """A lightly used chat, an embedder that reserves its card, a forgotten notebook, Neuron, and a plain web server."""
    yield node("gpu-a", "g5.2xlarge")
    yield node("gpu-b", "g5.12xlarge")
    yield node("inf-a", "inf2.xlarge")
    yield node("cpu-a", "m5.large")
    chat = [pod("serving", "chat", number, "server") for number in range(2)]
    for number, labels in enumerate(chat):
        where = "gpu-a" if number == 0 else "gpu-b"
        yield owned("serving", "chat", number)
        yield from asks(labels, where, 6, 24, "nvidia_com_gpu", 1)
        yield from used(labels, 1.2, 5.0)
        yield from gpu(labels, where, 0, 12.0, 6 * 1024)
    embed = pod("serving", "embed", 0, "server")
    yield owned("serving", "embed", 0)
    yield from asks(embed, "gpu-b", 2, 8, "nvidia_com_gpu", 1)
    yield from used(embed, 1.7, 7.0)
    yield from gpu(embed, "gpu-b", 1, 70.0, 21 * 1024)
    forgotten = pod("research", "notebook", 0, "jupyter")
    yield owned("research", "notebook", 0)
    yield from asks(forgotten, "gpu-b", 2, 8, "nvidia_com_gpu", 2)
    yield from used(forgotten, 0.01, 0.5)
    yield from gpu(forgotten, "gpu-b", 2, 0.0, 3.0)
    yield from gpu(forgotten, "gpu-b", 3, 0.0, 3.0)
    neuron = pod("serving", "rank", 0, "server")
    yield owned("serving", "rank", 0)
    yield from asks(neuron, "inf-a", 2, 8, "aws_amazon_com_neuron", 1)
    yield from used(neuron, 1.7, 7.0)
    yield core("inf-a", 0, 0.4)
    yield core("inf-a", 1, 0.2)
    memory = {"node": "inf-a", "instance_id": "i-0123", "memory_location": "neuron_device"}
    yield "neuron_runtime_memory_used_bytes", memory, 9.0 * GIB
    yield "neuron_runtime_memory_used_bytes", {**memory, "memory_location": "host"}, 2.0 * GIB
    web = pod("web", "shop", 0, "nginx")
    yield owned("web", "shop", 0)
    yield from asks(web, "cpu-a", 1, 2, "", 0)
    yield from used(web, 0.05, 0.1)
