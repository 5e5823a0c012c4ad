"""Fencing of brokers without heartbeats, also after a failed attempt."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.support.tools.waiting import PATIENCE_S
from tests.unit.wirebroker.quorum.log.metadata_kit import CLUSTER_ID, Node
from wirebroker.base.clock import pause
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.brokers import broker_sessions
from wirebroker.coordinator.controller.image.cluster_image import Endpoint
from wirebroker.coordinator.outcome import Moment
from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
from wirebroker.quorum.channel.controller_channel import LocalChannel

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from wirebroker.quorum.controller.quorum_controller import QuorumController


async def _with_others(directory: Path, *node_ids: int) -> QuorumController:
    controller = await Node(directory).open()
    for node_id in node_ids:
        lifecycle = BrokerLifecycle(LocalChannel(controller), controller.follower, node_id=node_id)
        await lifecycle.register(
            cluster_id=CLUSTER_ID,
            endpoints=[Endpoint("PLAINTEXT", "localhost", 9092, 0)],
            log_directories=[bytes([node_id]) * 16],
        )
        await lifecycle.unfence()
    return controller


async def test_failed_fencing_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker_sessions, "_AGAIN_MS", 10)
    controller = await _with_others(tmp_path, 2, 3)
    refusals = [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)]
    assert controller.term is not None
    append = controller.term.log.append

    def refuse_once(*arguments):
        if refusals:
            raise refusals.pop()
        append(*arguments)

    monkeypatch.setattr(
        type(controller.term.log), "append", lambda _, *arguments: refuse_once(*arguments)
    )
    sessions = controller.rules.sessions
    for node_id, session in sessions._sessions.items():
        session.ends_at_ms = 0
        sessions.timers.set(node_id, 0, node_id)
    controller.term.engine._on_time()
    async with asyncio.timeout(PATIENCE_S):
        while not all(broker.fenced for broker in controller.follower.image.brokers.values()):
            await pause(0.001)
    assert "cannot fence broker" in caplog.text
    assert "its session timed out" in caplog.text
    await controller.close()


async def test_broker_that_sends_a_heartbeat_or_registers_is_not_fenced(tmp_path: Path) -> None:
    controller = await _with_others(tmp_path, 2)
    epoch = controller.follower.image.brokers[2].epoch
    rules = controller.rules
    end_ms = rules.sessions._sessions[2].ends_at_ms
    for broker_epoch, now_ms, is_fenced in (
        (epoch, end_ms - 1, False),
        (epoch - 1, end_ms, False),
        (epoch, end_ms, True),
    ):

        def fence(image, _moment, broker_epoch=broker_epoch, now_ms=now_ms):
            return rules.fence(2, broker_epoch, image, Moment(0, now_ms))

        assert await controller.submit(fence) == is_fenced
        assert controller.follower.image.brokers[2].fenced == is_fenced
    await controller.close()
