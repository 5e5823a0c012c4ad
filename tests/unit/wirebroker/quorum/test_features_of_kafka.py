"""Feature levels of a new cluster and their changes, compared with Apache Kafka 4.4.0.

Kafka's responses are recorded (tests/support/protocol/feature_conversation.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any, Final

from tests.support.brokers.servers import running
from tests.support.protocol.feature_conversation import hold
from tests.support.protocol.raw_client import BlockingClient

RECORDED: Final = Path(__file__).with_name("features_of_kafka.json")


async def test_new_cluster_and_its_features_match_kafka(tmp_path: Path) -> None:
    async with running(tmp_path, settings={"node.id": "1"}) as server:
        results = await asyncio.to_thread(_hold, server.address)
    expected = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert len(results) == len(expected)
    for wirebroker_result, kafka_result in zip(results, expected, strict=True):
        assert wirebroker_result == kafka_result


def _hold(address: tuple[str, int]) -> list[dict[str, Any]]:
    with contextlib.closing(BlockingClient(address)) as client:
        return hold(client.ask)
