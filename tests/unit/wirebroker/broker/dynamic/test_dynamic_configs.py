"""Each dynamic config is shown to take effect, row by row."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.protocol.requests import produce_request
from tests.support.records.batches import batch
from tests.support.tools.waiting import PATIENCE_S, until
from tests.unit.wirebroker.broker.dynamic import (
    cleaning_probes,  # noqa: F401 - they register probes
    log_probes,  # noqa: F401 - they register probes
    sasl_probes,  # noqa: F401 - they register probes
    share_probes,  # noqa: F401 - they register probes
    tls_probes,  # noqa: F401 - they register probes
)
from tests.unit.wirebroker.broker.dynamic.dynamic_config_kit import (
    PROBES,
    World,
    is_noticed,
    probe,
    world,
)
from tests.unit.wirebroker.broker.dynamic.listener_probes import MAP, STATIC_LISTENER
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config.rows.row import Effect, Mutability
from wirebroker.config.table import BROKER_ROWS
from wirebroker.net.listeners import open_listeners
from wirebroker.net.listeners.listener import bind

if TYPE_CHECKING:
    import socket
    from pathlib import Path


def _changeable() -> list[str]:
    return sorted(
        name
        for name, row in BROKER_ROWS.items()
        if row.mutability is not Mutability.READ_ONLY and row.effect is Effect.READ
    )


@pytest.mark.parametrize("name", _changeable())
async def test_dynamic_config_takes_effect_at_runtime(name: str, tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), world(tmp_path) as w:
        await (PROBES[name](w) if name in PROBES else is_noticed(w, name))


def test_every_probe_belongs_to_a_dynamic_config() -> None:
    assert PROBES.keys() <= set(_changeable())


@pytest.mark.parametrize(
    "name", ["log.retention.ms", "log.preallocate", "max.connections", "log.cleanup.policy"]
)
async def test_config_without_a_probe_is_read_after_a_change(name: str, tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), world(tmp_path) as w:
        await is_noticed(w, name)


async def test_unread_config_change_is_detected(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), world(tmp_path) as w:
        # It is read when a log is compacted, which does not happen here.
        with pytest.raises(AssertionError, match="say by what one sees it"):
            await is_noticed(w, "log.cleaner.io.buffer.load.factor")


# -- transactions --


@probe("transaction.partition.verification.enable")
async def _verification(w: World) -> None:
    await w.topic()
    init = {"transactional_id": "x", "transaction_timeout_ms": 60_000}
    while True:  # the coordinator's topic is being created
        await w.client.ask(ApiKey.FIND_COORDINATOR, 4, {"key_type": 1, "coordinator_keys": ["x"]})
        producer = await w.client.ask(ApiKey.INIT_PRODUCER_ID, 4, init)
        if producer.error_code == 0:
            break
    records = batch(
        b"v",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        is_transactional=True,
    )

    async def error() -> ErrorCode:
        request = produce_request({("t", 0): records}, transactional_id="x")
        answer = await w.client.ask(ApiKey.PRODUCE, 10, request)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    assert await error() is ErrorCode.INVALID_TXN_STATE
    await w.set(("transaction.partition.verification.enable", "false"))
    assert await error() is ErrorCode.NONE


async def test_listener_bound_during_a_stop_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go = threading.Event(), threading.Event()
    sockets: list[socket.socket] = []

    def slow_bind(*arguments: Any) -> socket.socket:
        began.set()
        assert go.wait(PATIENCE_S)
        sockets.append(bind(*arguments))
        return sockets[0]

    monkeypatch.setattr(open_listeners, "bind", slow_bind)

    async with asyncio.timeout(PATIENCE_S), world(tmp_path) as w:
        listeners = w.server.listeners
        assert listeners is not None
        added_listener = ("listeners", f"{STATIC_LISTENER},INSIDE://127.0.0.1:0")
        change = asyncio.create_task(
            w.set(added_listener, (MAP, "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"))
        )
        await until(began.is_set)
        listeners.close()
        go.set()
        await change
        assert "INSIDE" not in listeners
    assert sockets[0].fileno() == -1
