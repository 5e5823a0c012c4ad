"""Metadata records that no request creates here, but that a cluster of Apache Kafka can have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.brokers.servers import controller_of
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.controller.image.cluster_image import ResourceType
from wirebroker.coordinator.operation import ControllerResult

if TYPE_CHECKING:
    from wirebroker.broker.server import Server
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.outcome import Moment


async def give_remote_storage(server: Server, topic: str) -> None:
    record = metadata_record(
        RecordType.CONFIG,
        resource_type=int(ResourceType.TOPIC),
        resource_name=topic,
        name="remote.storage.enable",
        value="true",
    )

    def write(_image: ClusterImage, _now: Moment) -> Operation[None]:
        yield
        return ControllerResult(None, [record])

    await controller_of(server).submit(write)
