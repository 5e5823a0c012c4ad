"""The cost of a change to one of 10,000 partitions, and of a change to all.

    python -m benchmarks.paths.image_change [--partitions 10000]

CPU time of applying records and building the next image, the least of five repetitions. Target:
100 us for one change, whatever the cluster's shape.
"""

from __future__ import annotations

import argparse
import gc
import time
import timeit
from typing import TYPE_CHECKING

from wirebroker.codecs.metadata_records import MetadataRecord, RecordType, metadata_record
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ROUNDS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    total = parser.parse_args().partitions
    gc.disable()
    for per_topic in sorted({1, min(100, total), total}):
        _report(total // per_topic, per_topic)


def _report(topic_count: int, per_topic: int) -> None:
    ids = [number.to_bytes(16, "big") for number in range(1, topic_count + 1)]
    records = [record for topic_id in ids for record in _topic(topic_id, per_topic)]
    image = _after(ClusterImage(), records)
    single_change = [_change(ids[topic_count // 2], per_topic // 2)]
    all_changes = [_change(topic_id, index) for topic_id in ids for index in range(per_topic)]
    name = image.topics_by_id[ids[0]].name
    print(
        f"{topic_count:6} topics of {per_topic:6} partitions:"
        f" {_us(lambda: _after(ClusterImage(), records), 1) / 1000:5.0f} ms to load,"
        f" {_us(lambda: _after(image, single_change), _ROUNDS):5.1f} us one change,"
        f" {_us(lambda: _after(image, all_changes), 1) / 1000:5.0f} ms a change of each,"
        f" {_us(lambda: image.topics.get(name), 10_000):5.3f} us to find a topic"
    )


def _topic(topic_id: bytes, partitions: int) -> Iterable[MetadataRecord]:
    yield metadata_record(RecordType.TOPIC, name=f"t{topic_id.hex()}", topic_id=topic_id)
    for index in range(partitions):
        yield metadata_record(
            RecordType.PARTITION,
            partition_id=index,
            topic_id=topic_id,
            replicas=[1, 2],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[bytes(16)] * 2,
        )


def _change(topic_id: bytes, index: int) -> MetadataRecord:
    return metadata_record(
        RecordType.PARTITION_CHANGE, topic_id=topic_id, partition_id=index, isr=[1, 2]
    )


def _after(image: ClusterImage, records: Iterable[MetadataRecord]) -> ClusterImage:
    return ImageBuilder(image).apply_all(records).build(offset=1, epoch=1)[0]


def _us(work: Callable[[], object], number: int) -> float:
    timer = time.process_time
    return min(timeit.repeat(work, timer=timer, number=number, repeat=5)) / number * 1e6


if __name__ == "__main__":
    main()
