"""Metrics of the share partitions of this broker's partitions, under Kafka's names.

Source: Kafka's SharePartitionMetrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.metrics.page import label_texts
from wirebroker.metrics.rows import ShownRow

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Slices
    from wirebroker.coordinator.share_partitions.share_partition import SharePartition
    from wirebroker.metrics.page import LabelTexts, Page

_JMX: Final = "kafka_server_sharepartitionmetrics_"

IN_FLIGHT_ROWS: Final[tuple[ShownRow[SharePartition], ...]] = (
    ShownRow(
        "Records in flight: from the start offset to the last acquired one.",
        lambda state: state.in_flight_count,
        jmx=f"{_JMX}inflightmessagecount",
    ),
    ShownRow(
        "Batches in flight.",
        lambda state: len(state.records),
        jmx=f"{_JMX}inflightbatchcount",
    ),
)


async def add_share_partitions(page: Page, broker: Broker, slices: Slices) -> None:
    """Add the records in flight."""
    rows: list[tuple[LabelTexts, SharePartition]] = []
    parts = broker.share_parts.built
    for share in () if parts is None else list(parts.partitions.shares):
        place = (
            ("group", share.key.group_id),
            ("partition", str(share.key.partition)),
            ("topic", share.partition.topic),
        )
        rows.append((label_texts(place), share.state))
        await slices.turn()
    await slices.run(page.add(IN_FLIGHT_ROWS, rows))
