"""A broker beside its controller: what it still says is over with it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from tests.support.servers import PATIENCE_S
from tests.unit.coordinator.controller_kit import InstantController
from wirebroker.clock import SystemClock
from wirebroker.cluster.metadata_follower import MetadataFollower
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.controller.feature_control import feature_level
from wirebroker.membership.own_lifecycle import OwnLifecycle

if TYPE_CHECKING:
    from wirebroker.cluster.controller_channel import ControllerChannel


class SilentController:
    """A way to a controller that never answers; `asked` is what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[ApiKey, Any]] = []
        self.news = asyncio.Event()

    async def ask(self, key: ApiKey, body: Any) -> Any:
        self.asked.append((key, body))
        self.news.set()
        await asyncio.Event().wait()


def telling() -> list[asyncio.Task[Any]]:
    return [each for each in asyncio.all_tasks() if each.get_name() == "failed disks"]


async def test_what_the_controller_does_not_answer_ends_with_the_broker() -> None:
    rules = InstantController(feature_level("metadata.version", 30))
    rules.serve(1, 2)
    controller = SilentController()
    channel = cast("ControllerChannel", controller)
    lifecycle = OwnLifecycle(channel, MetadataFollower(SystemClock(), rules.image), node_id=1)
    disk: Any = SimpleNamespace(is_online=True, is_cordoned=False, directory_id=b"d" * 16)
    lifecycle.watch_disks([disk])
    lifecycle.disk_failed()
    assert not telling()  # none of them has
    disk.is_online = False
    async with asyncio.timeout(PATIENCE_S):
        lifecycle.disk_failed()
        await controller.news.wait()
        lifecycle.disk_failed()  # is being told
        [(key, body)] = controller.asked
        assert (key, body["offline_log_dirs"]) == (ApiKey.BROKER_HEARTBEAT, [b"d" * 16])
        await lifecycle.end()
    assert not telling()
