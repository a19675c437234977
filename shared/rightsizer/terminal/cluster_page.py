"""Advice for a cluster at a terminal: `rightsizer advise --from-prometheus`."""

from collections import Counter
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rightsizer.advice.cluster import ClusterAdvice, NodeGroup, PodAdvice, advise_cluster
from rightsizer.advice.ec2 import HOME, ec2_market
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
    named = Counter(each.region for each in use.nodes if each.region)
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
    parts += [Text(), Text("Node groups", style="bold"), *(_group(each) for each in answer.groups)]
    parts += [Text(), Text("Why", style="bold"), *_reasons(answer.pods[:SHOWN])]
    if answer.unknown:
        parts += [Text(), Text("Not known", style="bold")]
        parts += [Padding(Text(f"- {each}"), (0, 0, 0, 2)) for each in answer.unknown]
    return Group(*parts)


def _pods(pods: tuple[PodAdvice, ...]) -> Table:
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for name in COLUMNS:
        rows.add_column(name, overflow="fold")
    for each in pods:
        busy = "" if each.busy_percent is None else f"{each.busy_percent:.0f} % (p95 {each.busy_p95_percent or 0:.0f})"
        held = "" if each.memory_max_gib is None else f"{each.memory_max_gib:.1f}"
        devices = f"{each.devices} {each.resource}" if each.devices else ""
        cells = [f"{each.pods} x {each.group}/{each.container}", devices, each.instance_type, busy, held]
        cells.append(_from_to(each.cpu_request, each.cpu_needed))
        cells.append(_from_to(each.memory_request_gib, each.memory_needed_gib))
        cells += [each.action.value, each.advised_type or ("none" if each.devices else ""), _cost(each)]
        rows.add_row(*(Text(cell) for cell in cells))
    return rows


def _line(each: PodAdvice) -> str:
    """One container without the table."""
    devices = f"{each.devices} {each.resource} on {each.instance_type or 'unknown nodes'}" if each.devices else ""
    advised = f"{each.action.value} {each.advised_type}".rstrip()
    cpu, memory = _from_to(each.cpu_request, each.cpu_needed), _from_to(each.memory_request_gib, each.memory_needed_gib)
    cost = f"USD {_cost(each)} a month" if each.usd_per_month is not None else ""
    words = (f"{each.pods} x {each.group}/{each.container}", devices, f"CPU {cpu}", f"GiB {memory}", advised, cost)
    return ", ".join(filter(None, words))


def _from_to(asked: float | None, needed: float | None) -> str:
    before = "none" if asked is None else f"{asked:g}"
    return before if needed is None or needed == asked else f"{before} to {needed:g}"


def _cost(each: PodAdvice) -> str:
    if each.usd_per_month is None:
        return ""
    if each.advised_usd_per_month in (None, each.usd_per_month):
        return f"{each.usd_per_month:,.2f}"
    return f"{each.usd_per_month:,.2f} to {each.advised_usd_per_month:,.2f}"


def _group(each: NodeGroup) -> RenderableType:
    bounds = f"{each.least} to {each.most} nodes"
    text = f"{each.nodes} x {each.instance_type}, {bounds}, USD {each.usd_per_month:,.2f} a month; {each.resource},"
    return Padding(Text(f"- {text} taint {each.taint}; for {', '.join(each.pods)}"), (0, 0, 0, 2))


def _reasons(pods: tuple[PodAdvice, ...]) -> Iterator[RenderableType]:
    for each in pods:
        for reason in each.reasons:
            line = f"- {each.group}/{each.container}: {reason.text} [{reason.source}]"
            yield Padding(Text(line), (0, 0, 0, 2))
