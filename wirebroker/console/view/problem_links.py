"""Links from a problem to what it affects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.console.view.links import cluster_url

if TYPE_CHECKING:
    from wirebroker.console.model.snapshot import ClusterProblem, ClusterSnapshot


def problem_links(snapshot: ClusterSnapshot, problem: ClusterProblem) -> list[tuple[str, str]]:
    """Return texts and addresses, for the names that have a page."""
    links: list[tuple[str, str]] = []
    for name in problem.names:
        address = _address(snapshot, problem.kind, name)
        if address is not None:
            links.append((name, address))
    return links


def _address(snapshot: ClusterSnapshot, kind: str, name: str) -> str | None:
    cluster = snapshot.name
    if kind == "group" and name in snapshot.groups:
        return cluster_url(cluster, "group", name=name)
    if kind in {"broker", "disk"} and name.isdigit() and int(name) in snapshot.brokers:
        return cluster_url(cluster, "broker", id=name)
    if kind == "transaction":
        return cluster_url(cluster, "transactions", q=name)
    if kind == "quorum":
        return cluster_url(cluster, "quorum")
    topic = name if name in snapshot.topics else name.rpartition("-")[0]
    if topic in snapshot.topics:
        return cluster_url(cluster, "topic", name=topic)
    return None
