"""A broker in a thread, filled with data for sample requests: a topic, offsets, a transaction."""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import ThreadedServer, config_of, memory_directory
from tests.support.protocol.raw_client import BlockingClient, answer_of, request_frame
from tests.support.protocol.sample_requests import GROUP, TOPIC, TRANSACTIONAL_ID, SampleRequests
from tests.support.protocol.transactional_producer import TransactionalProducer
from tests.support.tools.waiting import eventually
from wirebroker.broker.late_modules import LATE_MODULES
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
_UPGRADE = 1


class FurnishedBroker:
    """A broker and sample requests about its data."""

    def __init__(self, server: ThreadedServer, partitions: int) -> None:
        self.server = server
        with self.client() as client:
            self.samples = furnish(client, partitions)

    @contextlib.contextmanager
    def client(self, *, patience_s: float = 60.0) -> Iterator[BlockingClient]:
        client = BlockingClient(self.server.address, timeout_s=patience_s)
        try:
            yield client
        finally:
            client.close()


@contextlib.contextmanager
def furnished_broker(directory: Path, *, partitions: int) -> Iterator[FurnishedBroker]:
    """Run a broker; its topic's partitions are all in the group and the transaction."""
    # As a broker that has run for seconds: their import is no part of a request's work.
    for module in LATE_MODULES:
        importlib.import_module(module)
    with (
        memory_directory(directory) as data,
        ThreadedServer(config_of(data, settings=_SETTINGS)) as server,
    ):
        yield FurnishedBroker(server, partitions)


def ask(client: BlockingClient, key: ApiKey, version: int, body: dict[str, Any]) -> Any:
    return answer_of(key, version, client.exchange(request_frame(key, version, body)))


def furnish(client: BlockingClient, partitions: int) -> SampleRequests:
    """Fill a broker that has no topics, and return sample requests about its data."""
    counts = {TOPIC: partitions, "__consumer_offsets": 1, "__transaction_state": 1}
    topics = [
        {"name": name, "num_partitions": count, "replication_factor": 1}
        for name, count in counts.items()
    ]
    created = ask(client, ApiKey.CREATE_TOPICS, 7, {"topics": topics, "timeout_ms": 10_000})
    eventually(lambda: _has_coordinators(client))
    updates = [{"feature": "share.version", "max_version_level": 2, "upgrade_type": _UPGRADE}]
    features = {"timeout_ms": 10_000, "feature_updates": updates}
    assert ask(client, ApiKey.UPDATE_FEATURES, 2, features).error_code == 0
    committed = [
        {"partition_index": index, "committed_offset": 7, "committed_metadata": ""}
        for index in range(partitions)
    ]
    offsets = {"group_id": GROUP, "topics": [{"name": TOPIC, "partitions": committed}]}
    ask(client, ApiKey.OFFSET_COMMIT, 8, offsets)
    producer = TransactionalProducer(TRANSACTIONAL_ID)
    producer.become(ask(client, *producer.init()))
    ask(client, *producer.add_partitions(TOPIC, range(partitions)))
    return SampleRequests(created.topics[0].topic_id)


def _has_coordinators(client: BlockingClient) -> bool:
    for key_type, name in enumerate((GROUP, TRANSACTIONAL_ID)):
        body = {"key_type": key_type, "coordinator_keys": [name]}
        (coordinator,) = ask(client, ApiKey.FIND_COORDINATOR, 4, body).coordinators
        if coordinator.error_code:
            return False
    return True
