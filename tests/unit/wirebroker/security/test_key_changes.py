"""Key changes in a running broker: readable files, and the key that applies."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.security.tls_files import certificate, tls_configs, write
from tests.support.tools.ports import free_port
from tests.unit.wirebroker.broker.dynamic.tls_probes import FIRST, SECOND, shown_name
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config.rows.authorizer import STANDARD

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient

LOCATION = "listener.name.ssl.ssl.keystore.location"


def listeners(folder: Path, port: int) -> dict[str, str]:
    return tls_configs(folder) | {"listeners": f"PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:{port}"}


async def set_location(client: RawClient, path: str) -> Any:
    entry = {"name": LOCATION, "config_operation": 0, "value": path}
    resource = {"resource_type": 4, "resource_name": "1", "configs": [entry]}
    answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
    return answer.responses[0]


async def test_last_of_many_concurrent_changes_applies(tmp_path: Path) -> None:
    port = free_port()
    settings = listeners(tmp_path / "tls", port)
    paths = [write(tmp_path, f"keys-{n}", (FIRST, SECOND)[n % 2]) for n in range(8)]
    async with running(tmp_path / "data", settings=settings) as server:
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(client_of(server)) for _ in paths]
            changes = [set_location(*arguments) for arguments in zip(clients, paths, strict=True)]
            answers = await asyncio.gather(*changes)
        assert {answer.error_code for answer in answers} == {0}
        location = str(broker_of(server).config.value(LOCATION))
        expected = ("first", "second")[paths.index(location) % 2]
        assert await shown_name(tmp_path, port) == expected


async def test_non_regular_file_is_refused_and_blocks_nothing(tmp_path: Path) -> None:
    """Opening a FIFO would wait for a writer, in the thread that every other change needs."""
    port = free_port()
    settings = listeners(tmp_path / "tls", port)
    os.mkfifo(tmp_path / "fifo")
    good = write(tmp_path, "good", SECOND)
    bad = [str(tmp_path / "fifo"), str(tmp_path), "/dev/zero", f"{good}\0", str(tmp_path / "no")]
    async with running(tmp_path / "data", settings=settings) as server, client_of(server) as client:
        for path in bad:
            answer = await set_location(client, path)
            assert answer.error_code == ErrorCode.INVALID_REQUEST, path
        assert (await set_location(client, good)).error_code == 0
        assert await shown_name(tmp_path, port) == "second"


async def test_key_files_are_read_only_for_clients_with_alter_configs(tmp_path: Path) -> None:
    settings = listeners(tmp_path / "tls", free_port()) | {
        "authorizer.class.name": STANDARD,
        "super.users": "User:admin",
    }
    readable = write(tmp_path, "keys", certificate())
    paths = (readable, "/nowhere", "/etc/passwd")
    async with running(tmp_path / "data", settings=settings) as server, client_of(server) as client:
        answers = [await set_location(client, path) for path in paths]
    assert {answer.error_code for answer in answers} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert len({answer.error_message for answer in answers}) == 1
