"""Advice for a cluster at a terminal: `rightsizer advise --from-prometheus`."""

from collections import Counter
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rightsizer.advice.cluster import ClusterAdvice, NodeGroup, PodAdvice, advise_cluster
from rightsizer.advice.market import HOME, ec2_market
from rightsizer.domain.cluster import ClusterUse
from rightsizer.prometheus.client import Prometheus
from rightsizer.prometheus.cluster import read_cluster
from rightsizer.terminal.advise_page import WIDE

COLUMNS = ("Pods", "Devices", "Runs on", "Busy", "GPU GiB", "CPU", "Memory GiB", "Action", "Advised", "USD/month")
SHOWN = 40
"""Containers in the table; --json has all."""


def advise_from_prometheus(url: str, namespace: str | None, days: int, region: str | None) -> ClusterAdvice:
    """Read the server and advise. The Region is the given one, else that of most nodes, else us-east-1."""
    use = read_cluster(Prometheus(url), days, namespace)
    return advise_cluster(use, ec2_market(region or _region(use)))


def _region(use: ClusterUse) -> str:
    named = Counter(node.region for node in use.nodes if node.region)
    return named.most_common(1)[0][0] if named else HOME


def cluster_page(answer: ClusterAdvice, width: int = WIDE) -> RenderableType:
    """The answer for a person: cost, pods, node groups, reasons and what is not known; no table on few columns."""
    head = f"{answer.days} days of metrics; EC2 On-Demand prices of {answer.region}, {answer.prices_as_of}"
    shares = f"USD {answer.usd_per_month:,.2f} a month, as advised {answer.advised_usd_per_month:,.2f}"
    whole = f"whole nodes of the groups {answer.nodes_usd_per_month:,.2f}"
    cost = f"pods with devices, by their share of the nodes: {shares}; {whole}"
    shown = answer.pods[:SHOWN]
    pods = [_pods(shown)] if width >= WIDE else [Text(line) for line in map(_line, shown)]
    parts: list[RenderableType] = [Text(head), Text(cost, style="bold"), Text(), *pods]
    parts += [Text(), Text("Node groups", style="bold"), *(_group(node_group) for node_group in answer.groups)]
    parts += [Text(), Text("Why", style="bold"), *_reasons(answer.pods[:SHOWN])]
    if answer.unknown:
        parts += [Text(), Text("Not known", style="bold")]
        parts += [Padding(Text(f"- {each}"), (0, 0, 0, 2)) for each in answer.unknown]
    return Group(*parts)


def _pods(pods: tuple[PodAdvice, ...]) -> Table:
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for name in COLUMNS:
        rows.add_column(name, overflow="fold")
    for advice in pods:
        busy = (
            ""
            if advice.busy_percent is None
            else f"{advice.busy_percent:.0f} % (p95 {advice.busy_p95_percent or 0:.0f})"
        )
        held = "" if advice.memory_max_gib is None else f"{advice.memory_max_gib:.1f}"
        devices = f"{advice.devices} {advice.resource}" if advice.devices else ""
        cells = [f"{advice.pods} x {advice.group}/{advice.container}", devices, advice.instance_type, busy, held]
        cells.append(_from_to(advice.cpu_request, advice.cpu_needed))
        cells.append(_from_to(advice.memory_request_gib, advice.memory_needed_gib))
        cells += [advice.action.value, advice.advised_type or ("none" if advice.devices else ""), _cost(advice)]
        rows.add_row(*(Text(cell) for cell in cells))
    return rows


def _line(advice: PodAdvice) -> str:
    """One container without the table."""
    devices = (
        f"{advice.devices} {advice.resource} on {advice.instance_type or 'unknown nodes'}" if advice.devices else ""
    )
    advised = f"{advice.action.value} {advice.advised_type}".rstrip()
    cpu, memory = (
        _from_to(advice.cpu_request, advice.cpu_needed),
        _from_to(advice.memory_request_gib, advice.memory_needed_gib),
    )
    cost = f"USD {_cost(advice)} a month" if advice.usd_per_month is not None else ""
    words = (
        f"{advice.pods} x {advice.group}/{advice.container}",
        devices,
        f"CPU {cpu}",
        f"GiB {memory}",
        advised,
        cost,
    )
    return ", ".join(filter(None, words))


def _from_to(asked: float | None, needed: float | None) -> str:
    before = "none" if asked is None else f"{asked:g}"
    return before if needed is None or needed == asked else f"{before} to {needed:g}"


def _cost(advice: PodAdvice) -> str:
    if advice.usd_per_month is None:
        return ""
    if advice.advised_usd_per_month in (None, advice.usd_per_month):
        return f"{advice.usd_per_month:,.2f}"
    return f"{advice.usd_per_month:,.2f} to {advice.advised_usd_per_month:,.2f}"


def _group(each: NodeGroup) -> RenderableType:
    bounds = f"{each.least} to {each.most} nodes"
    text = f"{each.nodes} x {each.instance_type}, {bounds}, USD {each.usd_per_month:,.2f} a month; {each.resource},"
    return Padding(Text(f"- {text} taint {each.taint}; for {', '.join(each.pods)}"), (0, 0, 0, 2))


def _reasons(pods: tuple[PodAdvice, ...]) -> Iterator[RenderableType]:
    for advice in pods:
        for reason in advice.reasons:
            line = f"- {advice.group}/{advice.container}: {reason.text} [{reason.source}]"
            yield Padding(Text(line), (0, 0, 0, 2))
