"""A broker with its controller in the same process: its pending requests end with it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from tests.support.coordinators.controller_kit import CLUSTER_ID, InstantController
from tests.support.tools.waiting import PATIENCE_S
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.features.feature_control import feature_level
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.quorum.image.metadata_follower import MetadataFollower
from wirebroker.quorum.membership.own_lifecycle import OwnLifecycle

if TYPE_CHECKING:
    from wirebroker.quorum.channel.controller_channel import ControllerChannel


class SilentController:
    """A controller channel that never responds; `asked` records the requests."""

    def __init__(self) -> None:
        self.asked: list[tuple[ApiKey, Any]] = []
        self.news = asyncio.Event()

    async def ask(self, key: ApiKey, body: Any) -> Any:
        self.asked.append((key, body))
        self.news.set()
        await asyncio.Event().wait()


def telling() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == "failed disks"]


async def test_unanswered_controller_request_ends_with_the_broker() -> None:
    rules = InstantController(feature_level("metadata.version", 30))
    rules.serve(1, 2)
    controller = SilentController()
    channel = cast("ControllerChannel", controller)
    lifecycle = OwnLifecycle(channel, MetadataFollower(SystemClock(), rules.image), node_id=1)
    disk: Any = SimpleNamespace(is_online=True, is_cordoned=False, directory_id=b"d" * 16)
    lifecycle.watch_disks([disk])
    lifecycle.disk_failed()
    assert not telling()
    disk.is_online = False
    async with asyncio.timeout(PATIENCE_S):
        lifecycle.disk_failed()
        await controller.news.wait()
        lifecycle.disk_failed()  # the report is pending
        [(key, body)] = controller.asked
        assert (key, body["offline_log_dirs"]) == (ApiKey.BROKER_HEARTBEAT, [b"d" * 16])
        await lifecycle.end()
    assert not telling()


class RecordingController:
    """A controller channel that responds immediately; `asked` records the requests."""

    def __init__(self, rules: InstantController, metadata: MetadataFollower) -> None:
        self.asked: list[dict[str, Any]] = []
        self._rules = rules
        self._metadata = metadata

    async def ask(self, key: ApiKey, body: Any) -> Any:
        self.asked.append(body)
        answer = self._rules.ask(key, **body)
        self._metadata.image = self._rules.image
        return SimpleNamespace(**{"error_code": 0, "is_fenced": False, **answer})


async def test_directory_failed_before_unfencing_is_reported_with_it() -> None:
    rules = InstantController(feature_level("metadata.version", 30))
    online, failed = (bytes([1]) * 15 + bytes([9 + number]) for number in range(2))
    rules.register(1, log_dirs=[online, failed])
    rules.serve(2)
    metadata = MetadataFollower(SystemClock(), rules.image)
    controller = RecordingController(rules, metadata)
    lifecycle = OwnLifecycle(cast("ControllerChannel", controller), metadata, node_id=1)
    lifecycle.broker_epoch = rules.image.brokers[1].epoch
    disks: list[Any] = [
        SimpleNamespace(is_online=directory == online, is_cordoned=False, directory_id=directory)
        for directory in (online, failed)
    ]
    lifecycle.watch_disks(disks)
    lifecycle.disk_failed()
    assert not telling()
    async with asyncio.timeout(PATIENCE_S):
        await lifecycle.unfence()
        assert controller.asked[0]["offline_log_dirs"] == [failed]
        assert rules.image.brokers[1].log_directories == (online,)
        assert rules.image.brokers[1].is_active
        await lifecycle.end()


class UnregisteringController(RecordingController):
    """Unregisters broker 1 right before this many of its heartbeats."""

    times = 0

    async def ask(self, key: ApiKey, body: Any) -> Any:
        if key is ApiKey.BROKER_HEARTBEAT and self.times:
            self.times -= 1
            self._rules.ask(ApiKey.UNREGISTER_BROKER, broker_id=1)
        answer = await super().ask(key, body)
        if code := answer.error_code:
            raise KafkaError(ErrorCode(code), "as the controller says")
        return answer


async def test_broker_unregistered_while_re_registering_retries() -> None:
    rules = InstantController(feature_level("metadata.version", 30))
    metadata = MetadataFollower(SystemClock(), rules.image)
    controller = UnregisteringController(rules, metadata)
    lifecycle = OwnLifecycle(cast("ControllerChannel", controller), metadata, node_id=1)
    async with asyncio.timeout(PATIENCE_S):
        await lifecycle.register(cluster_id=CLUSTER_ID, endpoints=(), log_directories=[b"d" * 16])
        await lifecycle.unfence()
        rules.ask(ApiKey.UNREGISTER_BROKER, broker_id=1)
        controller.times = 2
        await metadata.publish(ImageBuilder(rules.image).build(offset=9, epoch=1)[1], rules.image)
        [returning] = [task for task in asyncio.all_tasks() if task.get_name() == "register again"]
        await returning
        assert not controller.times
        assert rules.image.brokers[1].is_active
        await lifecycle.end()
