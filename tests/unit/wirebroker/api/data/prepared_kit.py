"""A broker with a topic, and a client that sends similar Produce requests."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tests.support.brokers.produce_line import ProduceLine
from tests.support.brokers.servers import client_of, running
from tests.support.protocol.raw_client import answer_of, request_frame
from tests.support.protocol.requests import create_topic, produce_request
from tests.support.records.batches import batch, values_in
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient

# Versions that can be prepared.
SHORT_VERSIONS = range(5, 14)


class World(ProduceLine):
    """A broker with the topic t, and a connection to it.

    Attributes:
        last_answer: The last response, including its size.
    """

    def __init__(self, server: Any, client: RawClient, topic_id: bytes) -> None:
        super().__init__(server)
        self.server = server
        self.last_answer = b""
        self.client = client
        self.topic_id = topic_id
        self.correlation_id = 0

    async def produce(
        self, records: Mapping[tuple[str, int], bytes], *, version: int = 12, **fields: Any
    ) -> list[Any]:
        self.correlation_id += 1
        request = produce_request(records, **fields)
        for topic in request["topic_data"] if version >= 13 else ():
            topic["topic_id"] = self.topic_id
        frame = request_frame(ApiKey.PRODUCE, version, request, correlation_id=self.correlation_id)
        self.last_answer = answer = await self.exchange(frame)
        if fields.get("acks") == 0:
            assert answer == b""
            return []
        assert int.from_bytes(answer[:4]) == len(answer) - 4
        decoded = answer_of(ApiKey.PRODUCE, version, answer[4:], correlation_id=self.correlation_id)
        return [result for topic in decoded.responses for result in topic.partition_responses]

    async def append(self, value: bytes, **fields: Any) -> int:
        (result,) = await self.produce({("t", 0): batch(value)}, **fields)
        assert (result.index, result.error_code) == (0, 0)
        offset: int = result.base_offset
        return offset

    async def error_of(self, records: bytes, **fields: Any) -> int:
        (result,) = await self.produce({("t", 0): records}, **fields)
        code: int = result.error_code
        return code

    async def learn(self, **fields: Any) -> None:
        """Append twice: the next request of this kind takes the fast path."""
        await self.append(b"1", **fields)
        assert self.memo is None
        await self.append(b"2", **fields)
        assert self.memo is not None
        assert self.short_count == 0

    async def alter(self, name: str, value: str) -> None:
        entry = {"name": name, "config_operation": 0, "value": value}
        resource = {"resource_type": 2, "resource_name": "t", "configs": [entry]}
        request = {"resources": [resource], "validate_only": False}
        answer = await self.client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        assert answer.responses[0].error_code == 0

    def stored(self, index: int = 0) -> list[bytes | None]:
        log = self.partition("t", index).log
        log.check()
        file_slice = log.read(log.log_start_offset, 1 << 30, up_to_offset=log.log_end_offset).slice
        return [] if file_slice is None else values_in(file_slice.read())


@contextlib.asynccontextmanager
async def world_of(path: Path, partitions: int = 1, /, **arguments: Any) -> AsyncIterator[World]:
    """Serve from `path`, with a topic t of this many partitions."""
    options = {
        name: arguments.pop(name) for name in ("settings", "clock", "files") if name in arguments
    }
    async with running(path, **options) as server, client_of(server) as client:
        topic_id = await create_topic(client, "t", partitions, **arguments)
        yield World(server, client, topic_id)
