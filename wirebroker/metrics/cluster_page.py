"""Metrics of the cluster, from the metadata that this node has applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER
from wirebroker.metrics.broker_rows import (
    BROKER_INFO_ROWS,
    CLUSTER_ROWS,
    CONTROLLER_ROWS,
    ClusterCounts,
)
from wirebroker.metrics.page import label_texts

if TYPE_CHECKING:
    from wirebroker.base.clock import Slices
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.metrics.page import LabelTexts, Page

_NO_LABELS: Final = label_texts(())


async def add_cluster(
    page: Page, image: ClusterImage, slices: Slices, *, is_controller: bool
) -> None:
    """Add the brokers and, on the active controller, counts of the whole cluster."""
    counts = ClusterCounts(
        brokers=len(image.brokers),
        fenced_brokers=sum(node.fenced for node in image.brokers.values()),
        topics=len(image.topics),
    )
    for topic in image.topics.values():
        counts.partitions += len(topic.partitions)
        for partition in topic.partitions.values():
            if partition.leader == NO_LEADER:
                counts.offline_partitions += 1
            elif partition.leader != partition.replicas[0]:
                counts.imbalanced_partitions += 1
        await slices.turn()
    await slices.run(page.add(CLUSTER_ROWS, [(_NO_LABELS, counts)]))
    if is_controller:
        await slices.run(page.add(CONTROLLER_ROWS, [(_NO_LABELS, counts)]))
    infos: list[tuple[LabelTexts, None]] = []
    for node in image.brokers.values():
        endpoint = next(iter(node.endpoints.values()), None)
        if endpoint is not None:
            address = f"{endpoint.host}:{endpoint.port}"
            infos.append((label_texts((("address", address), ("id", str(node.node_id)))), None))
    await slices.run(page.add(BROKER_INFO_ROWS, infos))
