"""A stopped broker is freed with its event loop, in a process that starts others."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING

from tests.support.brokers.servers import ONE_NODE, client_of, running
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


async def _serve(directory: Path) -> list[weakref.ref[Any]]:
    async with running(directory, settings=ONE_NODE) as server, client_of(server) as client:
        for api_key, version, body in (
            (ApiKey.CREATE_TOPICS, 5, {"topics": [topic("orders")], "timeout_ms": 10_000}),
            (ApiKey.METADATA, 9, {"topics": None}),
            (ApiKey.FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": ["group"]}),
            (ApiKey.LIST_GROUPS, 4, {}),
        ):
            await client.ask(api_key, version, body)
        return [weakref.ref(server), weakref.ref(asyncio.get_running_loop())]


def topic(name: str) -> dict[str, object]:
    return {"name": name, "num_partitions": 3, "replication_factor": 1}


def test_a_stopped_broker_is_freed_with_its_loop(tmp_path: Path) -> None:
    references = asyncio.run(_serve(tmp_path))

    def are_freed() -> bool:
        gc.collect()
        return all(reference() is None for reference in references)

    eventually(are_freed)  # threads end a little later
