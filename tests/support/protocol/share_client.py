"""Members of share groups that send raw requests to a broker in the test's process."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import ONE_NODE, broker_of, running
from tests.support.protocol.raw_client import RawClient
from tests.support.protocol.requests import create_topic
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.share_state.state import PersistedState, StateError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence
    from pathlib import Path

    from wirebroker.broker.server import Server
    from wirebroker.codecs.errors import ErrorCode
    from wirebroker.coordinator.share_state.state import StateWrite

VERSION = 2
SHARE_NODE = {
    **ONE_NODE,
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
Batch = tuple[int, int, "Sequence[int]"]


class MemoryPersister:
    """A persister without a topic; every group begins at offset 0.

    Attributes:
        fails_with: The error of all reads and writes.
        writes: All writes so far, in order.
    """

    def __init__(self) -> None:
        self.fails_with: ErrorCode | None = None
        self.writes: list[StateWrite] = []

    async def read(
        self, group_id: str, partitions: Mapping[tuple[bytes, int], int]
    ) -> dict[tuple[bytes, int], PersistedState | StateError]:
        del group_id
        if self.fails_with is not None:
            return dict.fromkeys(partitions, StateError(self.fails_with, "told to"))
        return dict.fromkeys(partitions, PersistedState(0, 0, 0, ()))

    async def write(
        self, group_id: str, partitions: Mapping[tuple[bytes, int], StateWrite]
    ) -> dict[tuple[bytes, int], StateError | None]:
        del group_id
        if self.fails_with is not None:
            return dict.fromkeys(partitions, StateError(self.fails_with, "told to"))
        self.writes += partitions.values()
        return dict.fromkeys(partitions)


class ShareBroker:
    """A broker with a topic `t`, whose share partitions use a MemoryPersister."""

    def __init__(self, server: Server, topic_id: bytes) -> None:
        self.server = server
        self._clients: list[RawClient] = []
        self.topic_id = topic_id
        self.persister = MemoryPersister()
        persister: Any = self.persister  # without the methods that share partitions do not call
        self.broker = broker_of(server)
        self.shares = self.broker.shares
        self.shares._loader._persister = persister
        self.shares._writer._persister = persister

    async def client(self) -> RawClient:
        client = await RawClient.connect(self.server.address)
        self._clients.append(client)
        return client

    async def member(self, name: str, group: str = "g") -> ShareMemberClient:
        return ShareMemberClient(await self.client(), self.topic_id, name, group)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


@contextlib.asynccontextmanager
async def share_broker(
    path: Path, partitions: int = 1, **settings: str
) -> AsyncIterator[ShareBroker]:
    configs = {name.replace("_", "."): value for name, value in settings.items()}
    async with running(path, settings={**SHARE_NODE, **configs}) as server:
        client = await RawClient.connect(server.address)
        topic_id = await create_topic(client, "t", partitions)
        await client.close()
        share = ShareBroker(server, topic_id)
        try:
            yield share
        finally:
            await share.close()


class ShareMemberClient:
    """A member with its session, on a separate connection."""

    def __init__(self, client: RawClient, topic_id: bytes, name: str, group: str) -> None:
        self.client = client
        self.topic_id = topic_id
        self.name = name
        self.group = group
        self.epoch = 0

    def _next_epoch(self) -> int:
        self.epoch += 1
        return self.epoch - 1

    def _topics(self, batches: Mapping[int, Sequence[Batch]]) -> list[dict[str, Any]]:
        names = ("first_offset", "last_offset", "acknowledge_types")
        partitions = [
            {
                "partition_index": index,
                "acknowledgement_batches": [dict(zip(names, batch, strict=True)) for batch in of],
            }
            for index, of in batches.items()
        ]
        return [{"topic_id": self.topic_id, "partitions": partitions}] if partitions else []

    def fetch_body(
        self,
        partitions: Collection[int] = (0,),
        *,
        wait_ms: int = 5_000,
        acks: Mapping[int, Sequence[Batch]] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        batches = dict.fromkeys(partitions, ()) | dict(acks or {})
        return {
            "group_id": self.group,
            "member_id": self.name,
            "share_session_epoch": self._next_epoch(),
            "max_wait_ms": wait_ms,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": self._topics(batches),
            **fields,
        }

    async def fetch(self, partitions: Collection[int] = (0,), **fields: Any) -> Any:
        return await self.client.ask(
            ApiKey.SHARE_FETCH, VERSION, self.fetch_body(partitions, **fields)
        )

    async def acquired(
        self, partitions: Collection[int] = (0,), **fields: Any
    ) -> list[tuple[int, int, int]]:
        """Fetch one partition and return its acquired records."""
        return acquired_in(await self.fetch(partitions, **fields))

    async def acknowledge(self, *batches: Batch, partition: int = 0, **fields: Any) -> Any:
        """Acknowledge; return the result of the partition."""
        body = {
            "group_id": self.group,
            "member_id": self.name,
            "share_session_epoch": self._next_epoch(),
            "topics": self._topics({partition: batches}),
            **fields,
        }
        answer = await self.client.ask(ApiKey.SHARE_ACKNOWLEDGE, VERSION, body)
        assert answer.error_code == 0
        return answer.responses[0].partitions[0]


def acquired_in(response: Any) -> list[tuple[int, int, int]]:
    """Return the acquired records of a response's first partition."""
    assert response.error_code == 0
    if not response.responses:
        return []
    result = response.responses[0].partitions[0]
    assert result.error_code == 0, result
    return [
        (records.first_offset, records.last_offset, records.delivery_count)
        for records in result.acquired_records
    ]
