"""The registration of a controller: once for each process, until it is in the metadata."""

from __future__ import annotations

from typing import Any

from tests.support.tools.waiting import PATIENCE_S
from wirebroker.base.clock import SystemClock, pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import response_message
from wirebroker.coordinator.controller.brokers.broker_registration import (
    controller_record,
    controller_registration,
)
from wirebroker.coordinator.controller.features.feature_control import feature_level
from wirebroker.coordinator.controller.image.cluster_image import Endpoint
from wirebroker.quorum.image.metadata_follower import MetadataFollower
from wirebroker.quorum.membership.controller_registration import ControllerRegistration

REGISTRATION = controller_registration(7, bytes([1] * 16), [Endpoint("CONTROLLER", "c7", 9093, 0)])


class Channel:
    """A channel that fails `failures` times, then accepts."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.requests: list[Any] = []

    async def ask(self, key: ApiKey, body: Any) -> Any:
        assert key is ApiKey.CONTROLLER_REGISTRATION
        self.requests.append(body)
        if self.failures:
            self.failures -= 1
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller leads")
        return response_message(key).struct_class()

    async def close(self) -> None:
        """Nothing is open."""


async def _until_asked(channel: Channel, count: int) -> None:
    for _ in range(int(PATIENCE_S / 0.01)):
        if len(channel.requests) >= count:
            return
        await pause(0.01)
    raise AssertionError(f"{len(channel.requests)} requests instead of {count}")


async def test_a_controller_registers_until_its_registration_is_applied() -> None:
    follower = MetadataFollower(SystemClock())
    channel = Channel(failures=1)
    registration = ControllerRegistration(channel, follower, REGISTRATION)  # type: ignore[arg-type]
    registration.start()
    assert channel.requests == []  # the cluster's level is unknown
    await follower.follow([feature_level("metadata.version", 30)], offset=1, epoch=1)
    await _until_asked(channel, 2)
    # Accepted, but not applied yet: another change does not repeat it.
    await follower.follow([], offset=2, epoch=1)
    await follower.follow([controller_record(REGISTRATION)], offset=3, epoch=1)
    assert len(channel.requests) == 2
    # Another process has registered with this id.
    other = controller_record({**REGISTRATION, "incarnation_id": bytes([2] * 16)})
    await follower.follow([other], offset=4, epoch=1)
    await _until_asked(channel, 3)
    await registration.stop()


async def test_an_old_cluster_registers_no_controllers() -> None:
    follower = MetadataFollower(SystemClock())
    channel = Channel()
    registration = ControllerRegistration(channel, follower, REGISTRATION)  # type: ignore[arg-type]
    registration.start()
    await follower.follow([feature_level("metadata.version", 14)], offset=1, epoch=1)
    await pause(0.02)
    assert channel.requests == []
    await registration.stop()
