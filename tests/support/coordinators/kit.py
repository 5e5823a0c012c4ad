"""Cluster images and requests for tests of the controller's rules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from wirebroker.codecs.metadata_records import MetadataRecord, RecordType, metadata_record
from wirebroker.config import Config
from wirebroker.coordinator.controller.image.cluster_image import (
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    broker_record,
)
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.coordinator.operation import complete

CONFIG = Config({"log.dirs": "data", "num.partitions": "3"})
DIRECTORY = bytes(15) + b"\x07"


def topic_id(number: int) -> bytes:
    return number.to_bytes(16)


def broker(node_id: int = 1, **changes: Any) -> MetadataRecord:
    """Return the registration of an unfenced broker; `changes` override it."""
    image = BrokerImage(
        node_id=node_id,
        epoch=5,
        incarnation_id=bytes([node_id]) * 16,
        endpoints={"PLAINTEXT": Endpoint("PLAINTEXT", "localhost", 9092, 0)},
        features={"metadata.version": (7, 30)},
        rack=None,
        fenced=False,
        in_controlled_shutdown=False,
        log_directories=(DIRECTORY,),
    )
    return broker_record(image._replace(**changes))


def topic(name: str, number: int, partitions: int = 1, **changes: Any) -> list[MetadataRecord]:
    """Return the records of a topic on broker 1; `changes` are fields of all its partitions."""
    fields: dict[str, Any] = {
        "replicas": [1],
        "isr": [1],
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "directories": [DIRECTORY],
    } | changes
    return [
        metadata_record(RecordType.TOPIC, name=name, topic_id=topic_id(number)),
        *(
            metadata_record(
                RecordType.PARTITION, partition_id=index, topic_id=topic_id(number), **fields
            )
            for index in range(partitions)
        ),
    ]


def image_of(*records: MetadataRecord, base: ClusterImage | None = None) -> ClusterImage:
    base = base or ClusterImage()
    builder = ImageBuilder(base).apply_all(records)
    image, _ = builder.build(offset=base.offset + len(records), epoch=1)
    image.check()
    return image


def one_broker(*records: MetadataRecord) -> ClusterImage:
    return image_of(broker(), *records)


def partition_of(image: ClusterImage, name: str, index: int = 0) -> PartitionImage:
    partition = image.partition(name, index)
    assert partition is not None
    return partition


def run(operation: Any, image: ClusterImage) -> tuple[Any, ClusterImage, list[MetadataRecord]]:
    """Run an operation and apply it; return its response, the new image and its records."""
    result = complete(operation)
    return result.response, image_of(*result.records, base=image), result.records


def new_topic(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    *,
    assignments: dict[int, list[int]] | list[tuple[int, list[int]]] | None = None,
    configs: dict[str, str | None] | None = None,
) -> Any:
    pairs = assignments.items() if isinstance(assignments, dict) else assignments or ()
    return SimpleNamespace(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            SimpleNamespace(partition_index=index, broker_ids=ids) for index, ids in pairs
        ],
        configs=[SimpleNamespace(name=key, value=value) for key, value in (configs or {}).items()],
    )


def request(*, validate_only: bool = False, **lists: list[Any]) -> Any:
    return SimpleNamespace(validate_only=validate_only, timeout_ms=1000, **lists)
