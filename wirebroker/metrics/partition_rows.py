"""Metrics of the partitions that this broker leads, and of topics.

Source: kafka_exporter's README; Kafka's Partition, UnifiedLog and BrokerTopicStats metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.metric_field import Kind
from wirebroker.metrics.rows import ShownRow

if TYPE_CHECKING:
    from wirebroker.coordinator.controller.image.cluster_image import PartitionImage
    from wirebroker.replica.partition import Partition
    from wirebroker.replica.traffic import TrafficSum


class LedPartition(NamedTuple):
    """A partition that this broker leads.

    Attributes:
        least_in_sync: In-sync replicas that acks=all requires.
    """

    partition: Partition
    image: PartitionImage
    least_in_sync: int


class LedTopic(NamedTuple):
    """A topic whose first partition this broker leads.

    Attributes:
        partition_count: All partitions of the topic.
        end_sum: Sum of the high watermarks of the partitions led here.
        start_sum: Sum of their log start offsets.
        bytes: Sum of their sizes.
    """

    partition_count: int
    end_sum: int
    start_sum: int
    bytes: int


PARTITION_ROWS: Final[tuple[ShownRow[LedPartition], ...]] = (
    ShownRow(
        "Offset after the last committed record.",
        lambda each: each.partition.log.high_watermark,
        exporter="kafka_topic_partition_current_offset",
        kminion="kminion_kafka_topic_partition_high_water_mark",
    ),
    ShownRow(
        "Offset of the first record.",
        lambda each: each.partition.log.log_start_offset,
        exporter="kafka_topic_partition_oldest_offset",
        kminion="kminion_kafka_topic_partition_low_water_mark",
    ),
    ShownRow(
        "Node id of the leader.",
        lambda each: each.image.leader,
        exporter="kafka_topic_partition_leader",
    ),
    ShownRow(
        "Whether the preferred replica leads.",
        lambda each: int(each.image.leader == each.image.replicas[0]),
        exporter="kafka_topic_partition_leader_is_preferred",
    ),
    ShownRow(
        "Number of replicas.",
        lambda each: len(each.image.replicas),
        exporter="kafka_topic_partition_replicas",
        jmx="kafka_cluster_partition_replicascount",
    ),
    ShownRow(
        "Number of replicas in sync.",
        lambda each: len(each.image.isr),
        exporter="kafka_topic_partition_in_sync_replica",
        jmx="kafka_cluster_partition_insyncreplicascount",
    ),
    ShownRow(
        "Whether some of the replicas are not in sync.",
        lambda each: int(is_under_replicated(each)),
        exporter="kafka_topic_partition_under_replicated_partition",
        jmx="kafka_cluster_partition_underreplicated",
    ),
    ShownRow(
        "Whether fewer replicas are in sync than min.insync.replicas requires.",
        lambda each: int(is_under_least(each)),
        jmx="kafka_cluster_partition_underminisr",
    ),
    ShownRow(
        "Whether exactly as many replicas are in sync as min.insync.replicas requires.",
        lambda each: int(is_at_least(each)),
        jmx="kafka_cluster_partition_atminisr",
    ),
    ShownRow(
        "Committed records after the last stable offset, because of open transactions.",
        lambda each: each.partition.log.high_watermark - each.partition.log.last_stable_offset,
        jmx="kafka_cluster_partition_laststableoffsetlag",
    ),
    ShownRow(
        "Bytes of the log.",
        lambda each: each.partition.log.segments.size_bytes,
        jmx="kafka_log_log_size",
    ),
    ShownRow(
        "Log start offset.",
        lambda each: each.partition.log.log_start_offset,
        jmx="kafka_log_log_logstartoffset",
    ),
    ShownRow(
        "Log end offset.",
        lambda each: each.partition.log.log_end_offset,
        jmx="kafka_log_log_logendoffset",
    ),
    ShownRow(
        "Segments of the log.",
        lambda each: len(each.partition.log.segments),
        jmx="kafka_log_log_numlogsegments",
    ),
)

TOPIC_ROWS: Final[tuple[ShownRow[LedTopic], ...]] = (
    ShownRow(
        "Number of partitions.",
        lambda each: each.partition_count,
        exporter="kafka_topic_partitions",
    ),
    ShownRow(
        "Sum of the high watermarks of the partitions led here.",
        lambda each: each.end_sum,
        kminion="kminion_kafka_topic_high_water_mark_sum",
    ),
    ShownRow(
        "Sum of the first offsets of the partitions led here.",
        lambda each: each.start_sum,
        kminion="kminion_kafka_topic_low_water_mark_sum",
    ),
    ShownRow(
        "Bytes of the logs led here.",
        lambda each: each.bytes,
        kminion="kminion_kafka_topic_log_dir_size_total_bytes",
    ),
)

_TRAFFIC: Final = "kafka_server_brokertopicmetrics_"
# Per topic, and for all topics.
TRAFFIC_ROWS: Final[tuple[ShownRow[TrafficSum], ...]] = (
    ShownRow(
        "Records appended by producers and coordinators.",
        lambda each: each.records_in,
        Kind.COUNTER,
        strimzi=f"{_TRAFFIC}messagesin_total",
        confluent=f"{_TRAFFIC}messagesinpersec",
    ),
    ShownRow(
        "Bytes of records appended by producers and coordinators.",
        lambda each: each.bytes_in,
        Kind.COUNTER,
        strimzi=f"{_TRAFFIC}bytesin_total",
        confluent=f"{_TRAFFIC}bytesinpersec",
    ),
    ShownRow(
        "Bytes of records sent to consumers.",
        lambda each: each.bytes_out,
        Kind.COUNTER,
        strimzi=f"{_TRAFFIC}bytesout_total",
        confluent=f"{_TRAFFIC}bytesoutpersec",
    ),
    ShownRow(
        "Appends for Produce requests, counted for each partition.",
        lambda each: each.produce_requests,
        Kind.COUNTER,
        strimzi=f"{_TRAFFIC}totalproducerequests_total",
        confluent=f"{_TRAFFIC}totalproducerequestspersec",
    ),
    ShownRow(
        "Reads for Fetch requests, counted for each partition.",
        lambda each: each.fetch_requests,
        Kind.COUNTER,
        strimzi=f"{_TRAFFIC}totalfetchrequests_total",
        confluent=f"{_TRAFFIC}totalfetchrequestspersec",
    ),
    ShownRow(
        "Appends that failed.",
        lambda each: each.failed_produces,
        Kind.COUNTER,
        strimzi=f"{_TRAFFIC}failedproducerequests_total",
        confluent=f"{_TRAFFIC}failedproducerequestspersec",
    ),
    ShownRow(
        "Reads for Fetch requests that failed.",
        lambda each: each.failed_fetches,
        Kind.COUNTER,
        strimzi=f"{_TRAFFIC}failedfetchrequests_total",
        confluent=f"{_TRAFFIC}failedfetchrequestspersec",
    ),
)
# For all topics only, as in Kafka.
ALL_TRAFFIC_ROWS: Final[tuple[ShownRow[TrafficSum], ...]] = (
    ShownRow(
        "Bytes of records fetched from leaders.",
        lambda each: each.replicated_bytes,
        Kind.COUNTER,
        strimzi=f"{_TRAFFIC}replicationbytesin_total",
        confluent=f"{_TRAFFIC}replicationbytesinpersec",
    ),
)


def is_under_replicated(partition: LedPartition) -> bool:
    """Return whether any replica is out of sync."""
    return len(partition.image.isr) < len(partition.image.replicas)


def is_under_least(partition: LedPartition) -> bool:
    """Return whether acks=all is refused."""
    return len(partition.image.isr) < partition.least_in_sync


def is_at_least(partition: LedPartition) -> bool:
    """Return whether acks=all would be refused with one replica less."""
    return len(partition.image.isr) == partition.least_in_sync
