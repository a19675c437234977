"""HyperPod: what a cluster or a node says is recorded; a lack of capacity becomes a request for a person to send."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rightsizer.domain.capacity_change import Errand
from rightsizer.domain.hardware import Catalogue
from rightsizer.domain.job import Handover, NoHandover
from rightsizer.domain.outcome import Occurrence
from rightsizer.domain.trigger import JobMoved
from rightsizer.errors import VanishedError
from rightsizer.ports.changes import SavingsLedger
from rightsizer.ports.spot import ClusterReader, ErrandBook
from rightsizer.spot.group_options import stand_ins
from rightsizer.spot.jobs import further_group, is_short, is_spot, lacks_capacity, more_types
from rightsizer.spot.proposal import hand_errand
from rightsizer.telemetry import logger

MOST_NEW_TYPES = 3


@dataclass(frozen=True, slots=True)
class HyperPodPorts:
    """What it needs."""

    clusters: ClusterReader
    errands: ErrandBook
    ledger: SavingsLedger
    catalogue: Catalogue
    proposal_days: int = 14


def cluster_moved(ports: HyperPodPorts, moved: JobMoved, now: datetime) -> tuple[Errand, ...]:
    """Ask about each group that is short for lack of capacity; returns the errands that are new.

    A sick node is HyperPod's to replace where node recovery is on; where it is off, the record says so. ReadError
    goes up, so that the queue delivers the message again.
    """
    name = moved.name.partition("/")[0]
    sick = moved.resource == "hyperpod-node" and moved.status != "Healthy"
    if not sick and not lacks_capacity(moved.detail):
        return ()
    try:
        cluster = ports.clusters.cluster(name)
    except VanishedError:
        logger.info("a cluster is gone", extra={"cluster": name})
        return ()
    if sick:
        _sick(ports, moved, cluster)
        return ()
    return tuple(errand for errand in _short(ports, cluster, now) if ports.errands.ask(errand))


def _sick(ports: HyperPodPorts, moved: JobMoved, cluster: Mapping[str, Any]) -> None:
    replaces = cluster.get("NodeRecovery") == "Automatic"
    then = "HyperPod replaces it" if replaces else "node recovery is off: replace it (BatchReplaceClusterNodes)"
    text = f"the node {moved.name} is {moved.status} ({moved.detail or 'no cause given'}): {then}"
    ports.ledger.note(Occurrence(f"{moved.key}|node", moved.at, "hyperpod-node-health", moved.name, text))


def _short(ports: HyperPodPorts, cluster: Mapping[str, Any], now: datetime) -> Iterator[Errand]:
    name = str(cluster["ClusterName"])
    for row in cluster.get("InstanceGroups", ()):
        if not is_short(row):
            continue
        group = str(row.get("InstanceGroupName", "?"))
        found = _request(ports.catalogue, cluster, row)
        text = f"the group {group} of {name} has {row.get('CurrentCount')} of {row.get('TargetCount')} instances"
        key = f"{cluster.get('ClusterArn', name)}|{group}|short|{now:%Y-%m-%d}"
        kind, said = "hyperpod-short", f"{text}, for lack of capacity: {found.reason}"
        ports.ledger.note(Occurrence(key, now, kind, f"{name}/{group}", said))
        if isinstance(found, Handover):
            headline = f"{name}/{group} lacks capacity: {row.get('CurrentCount')} of {row.get('TargetCount')}"
            expires = now + timedelta(days=ports.proposal_days)
            scope = f"{cluster.get('ClusterArn', name)}/{group}"
            yield hand_errand(found, scope, "", headline, found.reason, now=now, expires_at=expires)


def _request(catalogue: Catalogue, cluster: Mapping[str, Any], row: Mapping[str, Any]) -> Handover | NoHandover:
    """More types where the group takes several, else a further group: On-Demand beside Spot, another type beside it."""
    group, missing = str(row["InstanceGroupName"]), int(row["TargetCount"]) - int(row["CurrentCount"])
    held = row.get("InstanceRequirements") or {}
    types = [*(held.get("DesiredInstanceTypes") or held.get("CurrentInstanceTypes") or ()), row.get("InstanceType", "")]
    others = _others(catalogue, next((kind for kind in types if kind), ""))
    if held:
        return more_types(cluster, group, others[:MOST_NEW_TYPES])
    if is_spot(row):
        return further_group(cluster, group, str(row["InstanceType"]), missing, spot=False)
    return further_group(cluster, group, others[0] if others else str(row["InstanceType"]), missing, spot=False)


def _others(catalogue: Catalogue, name: str) -> list[str]:
    present = catalogue.find(name)
    return stand_ins(present, catalogue) if present is not None and present.has_gpu else []
