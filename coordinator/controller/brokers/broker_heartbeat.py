"""BrokerHeartbeat: the state that a broker requests, and its new state.

    is           requests                       becomes
    fenced       to stop                        may stop immediately
    fenced       to serve, has caught up        unfenced: may lead partitions again
    serving      to be fenced                   fenced; may stop if it requests that as well
    serving      to stop, leads something       in controlled shutdown: others take over
    serving      to stop, leads nothing         fenced, may stop
    stopping     -                              fenced, may stop, once it leads nothing and the
                                                others know it

Source: Kafka's BrokerHeartbeatManager.calculateNextBrokerState and
ReplicationControlManager.processBrokerHeartbeat.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.controller.brokers.broker_registration import (
    FENCE,
    UNFENCE,
    broker_change,
    check_broker_epoch,
)
from wirebroker.coordinator.controller.brokers.directory_control import (
    directories_failed,
    newly_failed,
)
from wirebroker.coordinator.controller.features.feature_control import has_cordoned_directories
from wirebroker.coordinator.controller.partitions.leader_election import join, leave
from wirebroker.coordinator.controller.requests.operations import declare_of_brokers
from wirebroker.coordinator.operation import ControllerResult

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import BrokerImage, ClusterImage
    from wirebroker.coordinator.controller.requests.request import Case
    from wirebroker.coordinator.operation import Operation

_BEGIN_SHUTDOWN = 1
# Partitions between two yields.
_SLICE = 512


class BrokerState(Enum):
    """The controller's view of a broker."""

    FENCED = 0
    SERVING = 1
    STOPPING = 2
    STOPPED = 3  # fenced, and informed of it


def heartbeat(
    request: Any, image: ClusterImage, config: Config, *, may_stop: bool
) -> Operation[dict[str, Any]]:
    """Handle a heartbeat.

    `may_stop`: the other brokers know of its controlled shutdown, if it is in one.

    Raises:
        KafkaError: STALE_BROKER_EPOCH.
    """
    broker = check_broker_epoch(image, request.broker_id, request.broker_epoch)
    before = _state(broker)
    is_caught_up = request.current_metadata_offset >= broker.epoch
    failed = newly_failed(broker, request.offline_log_dirs)
    if failed:
        losses = yield from directories_failed(image, config, broker, failed)
        if losses:
            return ControllerResult(_answer(before, is_caught_up=is_caught_up), losses)
    leads = False
    if before is BrokerState.STOPPING or (
        before is BrokerState.SERVING and request.want_shut_down and not request.want_fence
    ):
        leads = yield from _leads_anything(image, broker.node_id)
    after = _next(
        before, request, is_caught_up=is_caught_up, leads_anything=leads, may_stop=may_stop
    )
    records: list[MetadataRecord] = []
    updated_broker, cordoned = _cordoned(broker, request, image)
    # A stopping broker may have become leader again.
    if after is not before or (leads and after is BrokerState.STOPPING):
        records = yield from _transitions[after](image, config, updated_broker)
    if cordoned is not None and not (before is BrokerState.FENCED and after is BrokerState.SERVING):
        records.append(broker_change(broker, cordoned_log_dirs=cordoned))
    return ControllerResult(_answer(after, is_caught_up=is_caught_up), records)


def _cordoned(
    broker: BrokerImage, request: Any, image: ClusterImage
) -> tuple[BrokerImage, list[bytes] | None]:
    """Return the broker with its cordoned directories, and these if they are new (KIP-1066)."""
    reported = request.cordoned_log_dirs
    if reported is None or not has_cordoned_directories(image.features):
        return broker, None
    is_new = set(reported) != set(broker.cordoned_log_directories or ())
    updated_broker = broker._replace(cordoned_log_directories=tuple(reported))
    return updated_broker, list(reported) if is_new else None


def _answer(state: BrokerState, *, is_caught_up: bool) -> dict[str, Any]:
    return {
        "is_caught_up": is_caught_up,
        "is_fenced": state in {BrokerState.FENCED, BrokerState.STOPPED},
        "should_shut_down": state is BrokerState.STOPPED,
    }


def _state(broker: BrokerImage) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.STOPPING if broker.in_controlled_shutdown else BrokerState.SERVING


def _next(
    state: BrokerState, request: Any, *, is_caught_up: bool, leads_anything: bool, may_stop: bool
) -> BrokerState:
    match state:
        case BrokerState.FENCED:
            if request.want_shut_down:
                return BrokerState.STOPPED
            return BrokerState.SERVING if is_caught_up and not request.want_fence else state
        case BrokerState.SERVING:
            if request.want_fence:
                return BrokerState.STOPPED if request.want_shut_down else BrokerState.FENCED
            if request.want_shut_down:
                return BrokerState.STOPPING if leads_anything else BrokerState.STOPPED
            return state
        case _:
            return state if leads_anything or not may_stop else BrokerState.STOPPED


def _leads_anything(image: ClusterImage, node_id: int) -> Generator[None, None, bool]:
    looked_at = 0
    for topic in image.topics.values():
        for partition in topic.partitions.values():
            if partition.leader == node_id:
                return True
            looked_at += 1
            if looked_at % _SLICE == 0:
                yield
    return False


def _unfence(
    image: ClusterImage, config: Config, broker: BrokerImage
) -> Generator[None, None, list[MetadataRecord]]:
    elections = yield from join(image, config, broker.node_id)
    cordoned = list(broker.cordoned_log_directories or ())
    return [broker_change(broker, fenced=UNFENCE, cordoned_log_dirs=cordoned), *elections]


def _begin_shutdown(
    image: ClusterImage, config: Config, broker: BrokerImage
) -> Generator[None, None, list[MetadataRecord]]:
    moves = yield from leave(image, config, broker.node_id)
    if broker.in_controlled_shutdown:
        return moves
    return [broker_change(broker, in_controlled_shutdown=_BEGIN_SHUTDOWN), *moves]


def _fence(
    image: ClusterImage, config: Config, broker: BrokerImage
) -> Generator[None, None, list[MetadataRecord]]:
    if broker.fenced:
        yield
        return []
    moves = yield from leave(image, config, broker.node_id)
    return [*moves, broker_change(broker, fenced=FENCE)]


_transitions: dict[
    BrokerState,
    Callable[[ClusterImage, Config, BrokerImage], Generator[None, None, list[MetadataRecord]]],
] = {
    BrokerState.SERVING: _unfence,
    BrokerState.STOPPING: _begin_shutdown,
    BrokerState.FENCED: _fence,
    BrokerState.STOPPED: _fence,
}


def _heartbeat(case: Case) -> Operation[dict[str, Any]]:
    body, sessions, image = case.body, case.rules.sessions, case.image
    may_stop = sessions.may_stop(body.broker_id, image)
    result = yield from heartbeat(body, image, case.config, may_stop=may_stop)
    offset = body.current_metadata_offset
    now_ms = case.now.monotonic_ms
    sessions.touch(body.broker_id, body.broker_epoch, now_ms, metadata_offset=offset)
    if body.want_shut_down and result.records:
        sessions.stopping(body.broker_id, image.offset + len(result.records) - 1)
    return result


declare_of_brokers(ApiKey.BROKER_HEARTBEAT, _heartbeat)
