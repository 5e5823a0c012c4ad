"""The memory of a muted connection, in a separate process."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_BYTES_A_CONNECTION = """
import asyncio, gc, sys, tracemalloc
from pathlib import Path

from tests.support.records.batches import batch
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import append, create_topic, produce_request
from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.tools.waiting import until
from wirebroker.codecs.api_keys import ApiKey

COUNT, PAYLOAD_BYTES = 200, 50_000
QUOTA = {"entity": [{"entity_type": "user", "entity_name": "ANONYMOUS"}],
         "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}]}

def held_bytes():
    gc.collect()
    return tracemalloc.get_traced_memory()[0]

async def main():
    async with running(Path(sys.argv[1])) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"x" * PAYLOAD_BYTES))
        frame = request_frame(
            ApiKey.PRODUCE, 9, produce_request({("t", 0): batch(b"x" * PAYLOAD_BYTES)})
        )
        ready = request_frame(ApiKey.API_VERSIONS, 0, {})
        connections = [await asyncio.open_connection(*server.address) for _ in range(COUNT)]
        for reader, writer in connections:
            writer.write(ready)
            await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        await client.ask(
            ApiKey.ALTER_CLIENT_QUOTAS, 1, {"entries": [QUOTA], "validate_only": False}
        )
        tracemalloc.start()
        before = held_bytes()
        for reader, writer in connections:  # answered at once, and muted
            writer.write(frame)
            await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        await until(lambda: broker_of(server).quotas.produced.throttled_count == COUNT)
        muted = held_bytes() - before
        for _, writer in connections:  # what they send meanwhile stays in the socket
            writer.write(frame)
        for _ in range(5):
            await client.ask(ApiKey.API_VERSIONS, 0, {})
        asked = held_bytes() - before
        unsent = sum(writer.transport.get_write_buffer_size() for _, writer in connections)
        assert not unsent, "it is for the broker to take, and it does not"
        print(muted // COUNT, asked // COUNT)
        for _, writer in connections:
            writer.transport.abort()

asyncio.run(main())
"""


def test_muted_connection_uses_little_memory_however_much_is_sent(
    tmp_path: Path,
) -> None:
    result = subprocess.run(
        [sys.executable, "-c", _BYTES_A_CONNECTION, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    muted_bytes, sent_more_bytes = map(int, result.stdout.split())
    # A timer, and then a watch for its end; a frame would be 50 KB.
    assert muted_bytes < 1_500
    assert sent_more_bytes < 2_000
