"""A cluster read from the series of its exporters, and the advice for it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

import pytest

from rightsizer.advice.answer import Action
from rightsizer.advice.cluster import ClusterAdvice, PodAdvice, advise_cluster
from rightsizer.advice.market import ec2_market
from rightsizer.advice.rules import Rule
from rightsizer.domain.cluster import ClusterUse, PodGroup
from rightsizer.errors import InputError
from rightsizer.prometheus.client import Prometheus
from rightsizer.prometheus.cluster import read_cluster
from tests.prometheus.series import Series, cluster
from tests.prometheus.server import serving, vector


def read(series: Iterable[Series] = (), namespace: str | None = None) -> ClusterUse:
    held = list(series) or list(cluster())
    with serving(lambda expression: (200, vector(held, expression))) as (url, asked):
        use = read_cluster(Prometheus(url), 14, namespace)
    assert all(each.startswith("GET /api/v1/query ") for each in asked)
    return use


@pytest.fixture(scope="module")
def use() -> ClusterUse:
    return read()


@pytest.fixture(scope="module")
def answer(use: ClusterUse) -> ClusterAdvice:
    return advise_cluster(use, ec2_market("us-east-1"))


def of(answer: ClusterAdvice, name: str) -> PodAdvice:
    return next(each for each in answer.pods if each.group.name == name)


def sources(made: PodAdvice) -> set[str]:
    return {str(each.source) for each in made.reasons}


def test_requests_use_devices_and_nodes_are_read_with_their_units(use: ClusterUse) -> None:
    assert {each.name: each.instance_type for each in use.nodes}["gpu-b"] == "g5.12xlarge"
    chat = PodGroup("serving", "Deployment", "chat")
    asked = [each for each in use.requests if each.group == chat]
    assert {(each.cpu, each.memory_gib, each.devices, each.resource) for each in asked} == {
        (6, 24, 1, "nvidia.com/gpu")
    }
    devices = [each for each in use.devices if each.group == chat]
    assert {(each.busy_percent, each.memory_max_gib, each.tensor_percent) for each in devices} == {(12.0, 6.0, 3.0)}
    did = [each for each in use.uses if each.group == chat]
    assert {(each.cpu_p95, each.memory_max_gib) for each in did} == {(1.2, 5.0)}
    assert use.missing == ()


def test_cores_of_neuron_are_found_by_their_node(use: ClusterUse) -> None:
    cores = [each for each in use.devices if each.group is None]
    assert sorted(each.busy_percent or 0 for each in cores) == [20.0, 40.0]
    assert {each.memory_max_gib for each in cores} == {9.0}


def test_a_namespace_narrows_what_is_asked_and_kept() -> None:
    use = read(namespace="research")
    assert {each.group.namespace for each in use.requests} == {"research"}
    assert {each.group for each in use.devices} == {PodGroup("research", "Deployment", "notebook")}


@pytest.mark.parametrize("namespace", ['a"} or up', "Upper", "-x", "x" * 64])
def test_what_is_no_namespace_is_refused(namespace: str) -> None:
    with pytest.raises(InputError, match="no name of a Kubernetes namespace"):
        read(namespace=namespace)


def test_series_that_are_not_there_are_named_with_what_brings_them() -> None:
    use = read([("up", {}, 1.0)])
    assert len(use.missing) == 6
    assert "--metric-labels-allowlist=nodes=[node.kubernetes.io/instance-type" in " ".join(use.missing)
    assert advise_cluster(use, ec2_market("us-east-1")).pods == ()


def without(*names: str) -> ClusterUse:
    return read([each for each in cluster() if not each[0].startswith(names)])


@pytest.mark.parametrize(
    ("absent", "named", "lost"),
    [
        ("kube_pod_owner", "kube_pod_owner", "each pod is advised alone"),
        ("kube_pod_container_resource_requests", "kube-state-metrics", "no advice for pods"),
        ("kube_node_labels", "--metric-labels-allowlist", "no cost"),
        ("DCGM_", "the DCGM exporter is not scraped", "no other type is advised"),
        ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED", "no other card is advised"),
        ("DCGM_FI_PROF", "dcp-metrics-included.csv", "tensor cores is not shown"),
        ("neuroncore", "neuron-monitor is not scraped", "no other type is advised"),
        ("neuron_runtime", "neuron_runtime_memory_used_bytes", "not shown"),
        ("container_cpu", "container_cpu_usage_seconds_total", "not judged"),
        ("container_memory", "container_memory_working_set_bytes", "not judged"),
    ],
)
def test_a_source_that_is_missing_is_named_with_what_it_costs_the_advice(absent: str, named: str, lost: str) -> None:
    use = without(absent)
    (text,) = use.missing
    assert named in text
    assert lost in text
    answer = advise_cluster(use, ec2_market("us-east-1"))
    assert text in answer.unknown
    if absent.startswith("DCGM_") and absent != "DCGM_FI_PROF":
        assert {each.advised_type for each in answer.pods if each.group.name == "chat"} <= {
            "",
            "g5.2xlarge",
            "g5.12xlarge",
        }


def test_a_cluster_with_all_sources_misses_none(use: ClusterUse) -> None:
    assert use.missing == ()


def test_a_cluster_without_neuron_does_not_miss_its_monitor() -> None:
    plain = [
        each for each in cluster() if "neuron" not in each[0] and each[1].get("resource") != "aws_amazon_com_neuron"
    ]
    assert read(plain).missing == ()


@pytest.mark.parametrize(
    "renamed",
    [
        {"Hostname": "hostname"},
        {"exported_pod": "pod_name", "exported_namespace": "pod_namespace", "exported_container": "container_name"},
    ],
)
def test_labels_of_other_releases_of_the_dcgm_exporter_name_the_same_nodes_and_pods(
    use: ClusterUse, renamed: Mapping[str, str]
) -> None:
    other = [
        (name, {renamed.get(key, key): each for key, each in labels.items()}, value)
        for name, labels, value in cluster()
    ]
    assert read(other) == use


def test_an_exporter_that_names_no_pods_is_said() -> None:
    bare = [
        (name, {key: each for key, each in labels.items() if not key.startswith("exported_")}, value)
        for name, labels, value in cluster()
    ]
    assert any("Kubernetes mode is off" in text for text in read(bare).missing)


def test_a_lightly_used_gpu_may_move_to_a_cheaper_type_after_a_test(answer: ClusterAdvice) -> None:
    chat = of(answer, "chat")
    assert (chat.pods, chat.devices, chat.action) == (2, 1, Action.TEST)
    assert chat.advised_type == "g4dn.xlarge"
    assert chat.advised_usd_per_month is not None
    assert chat.usd_per_month is not None
    assert chat.advised_usd_per_month < chat.usd_per_month
    assert {Rule.MEASURE_FIRST, Rule.SHARED_DEVICE, Rule.REQUESTS_FROM_PEAK} <= sources(chat)
    assert (chat.cpu_needed, chat.memory_needed_gib) == (1.4, 5.75)


def test_a_full_card_is_taken_as_reserved_and_no_smaller_one_is_advised(answer: ClusterAdvice) -> None:
    embed = of(answer, "embed")
    assert Rule.RESERVED_MEMORY in sources(embed)
    assert (embed.action, embed.advised_type) == (Action.PROPOSE, "g5.xlarge")
    assert "the same GPU" in embed.reasons[-1].text
    assert Rule.SHARED_DEVICE not in sources(embed)


def test_devices_without_work_are_given_back(answer: ClusterAdvice) -> None:
    notebook = of(answer, "notebook")
    assert (notebook.action, notebook.advised_type) == (Action.PROPOSE, "")
    assert notebook.advised_usd_per_month == Decimal("0.00")
    assert Rule.IDLE_DEVICES in sources(notebook)


def test_short_work_is_work() -> None:
    def hardly(series: Iterator[Series]) -> Iterator[Series]:
        for name, labels, value in series:
            held = "notebook" in labels.get("exported_pod", "") and name == "DCGM_FI_DEV_GPU_UTIL"
            yield name, labels, 2.0 if held and labels["gpu"] == "2" else value

    notebook = of(advise_cluster(read(hardly(cluster())), ec2_market("us-east-1")), "notebook")
    assert notebook.action is not Action.PROPOSE
    assert Rule.WHOLE_DEVICES in sources(notebook)


def test_neuron_is_left_to_the_price_of_a_request(answer: ClusterAdvice) -> None:
    rank = of(answer, "rank")
    assert (rank.action, rank.advised_type, rank.busy_percent) == (Action.KEEP, "inf2.xlarge", 30.0)
    assert Rule.PRICE_OF_A_REQUEST in sources(rank)


def test_a_pod_without_a_device_gets_its_requests_only(answer: ClusterAdvice) -> None:
    shop = of(answer, "shop")
    assert (shop.devices, shop.advised_type, shop.usd_per_month) == (0, "", None)
    assert (shop.cpu_needed, shop.memory_needed_gib) == (0.1, 0.25)


def test_missing_device_metrics_are_not_idle() -> None:
    series = [each for each in cluster() if not each[0].startswith("DCGM")]
    chat = of(advise_cluster(read(series), ec2_market("us-east-1")), "chat")
    assert chat.action is Action.UNKNOWN
    assert Rule.MISSING_IS_NOT_IDLE in sources(chat)
    assert chat.advised_usd_per_month == chat.usd_per_month


def test_without_the_memory_of_the_gpu_no_type_is_advised() -> None:
    series = [each for each in cluster() if each[0] != "DCGM_FI_DEV_FB_USED"]
    chat = of(advise_cluster(read(series), ec2_market("us-east-1")), "chat")
    assert (chat.action, chat.advised_type) == (Action.KEEP, chat.instance_type)


def test_nodes_without_a_label_of_their_type_are_said() -> None:
    series = [each for each in cluster() if each[0] != "kube_node_labels"]
    made = advise_cluster(read(series), ec2_market("us-east-1"))
    assert of(made, "chat").action is Action.UNKNOWN
    assert of(made, "chat").usd_per_month is None


def test_node_groups_hold_every_pod_with_a_device_and_their_cost_is_of_ec2(answer: ClusterAdvice) -> None:
    groups = {each.instance_type: each for each in answer.groups}
    chat = of(answer, "chat")
    assert groups["g4dn.xlarge"].nodes == chat.pods
    assert groups["g4dn.xlarge"].usd_per_hour == Decimal("0.526") * 2
    assert groups["inf2.xlarge"].taint.startswith("aws.amazon.com/neuron")
    named = {pod for each in answer.groups for pod in each.pods}
    assert named == {"serving/chat", "serving/embed", "serving/rank"}
    assert all(each.least == each.nodes <= each.most for each in answer.groups)


def test_a_group_of_jobs_may_shrink_to_zero(use: ClusterUse) -> None:
    job = PodGroup("serving", "Job", "rank")
    old = PodGroup("serving", "Deployment", "rank")
    requests = tuple(replace(each, group=job if each.group == old else each.group) for each in use.requests)
    made = advise_cluster(replace(use, requests=requests), ec2_market("us-east-1"))
    assert {each.least for each in made.groups if each.instance_type == "inf2.xlarge"} == {0}


def test_another_region_derives_its_prices_and_says_so() -> None:
    home, there = ec2_market("us-east-1"), ec2_market("eu-central-1")
    here, away = home.find("ml.g5.xlarge"), there.find("ml.g5.xlarge")
    assert here is not None
    assert away is not None
    assert here.price.basis == "ec2"
    assert "derived" in away.price.basis
    assert away.hourly > here.hourly
