"""What a new cluster finalizes and how features change, compared with Apache Kafka 4.4.0.

Kafka's responses are recorded (tests/support/feature_conversation.py). The differences are these
and no others: features of groups that are not served, and the newest metadata.version.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.support.feature_conversation import METADATA, hold
from tests.support.raw_client import BlockingClient
from tests.support.servers import running
from wirebroker.coordinator.controller.feature_control import METADATA_VERSION_LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORDED: Final = Path(__file__).with_name("features_of_kafka.json")
# Groups by the new protocols are not served.
NOT_SERVED: Final = {"group.version", "share.version", "streams.version"}
KAFKAS_NEWEST: Final = 33


async def test_a_new_cluster_and_its_features_are_as_those_of_kafka(tmp_path: Path) -> None:
    async with running(tmp_path, settings={"node.id": "1"}) as server:
        said = await asyncio.to_thread(_hold, server.address)
    expected = list(_as_here(json.loads(RECORDED.read_text(encoding="utf-8"))))
    assert len(said) == len(expected)
    for ours, kafkas in zip(said, expected, strict=True):
        assert ours == kafkas


def _hold(address: tuple[str, int]) -> list[dict[str, Any]]:
    with contextlib.closing(BlockingClient(address)) as client:
        return hold(client.ask)


def _as_here(recorded: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield Kafka's responses with the differences that there are."""
    for step in recorded:
        changed = dict(step)
        if "features" in step:
            supported = dict(step["features"]["supported"])
            supported[METADATA] = [supported[METADATA][0], METADATA_VERSION_LEVEL]
            changed["features"] = {
                "supported": _served(supported),
                "finalized": _level_here(step["features"]["finalized"]),
            }
        if "finalized" in step:
            changed["finalized"] = _level_here(step["finalized"])
        message = step.get("error_message")
        if message is not None:
            here = str(METADATA_VERSION_LEVEL)
            changed["error_message"] = re.sub(rf"\b{KAFKAS_NEWEST}\b", here, message)
        yield changed


def _level_here(finalized: dict[str, int]) -> dict[str, int]:
    return _served({**finalized, METADATA: METADATA_VERSION_LEVEL})


def _served(levels: dict[str, Any]) -> dict[str, Any]:
    return {name: level for name, level in levels.items() if name not in NOT_SERVED}
