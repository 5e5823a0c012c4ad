"""Registration, fencing and removal of brokers and controllers.

Source: Kafka's ClusterControlManager, and ReplicationControlManager (handleBrokerShutdown,
handleBrokerFenced, handleBrokerUnregistered).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import MetadataRecord, RecordType, metadata_record
from wirebroker.codecs.permissions import ALTER_CLUSTER
from wirebroker.coordinator.controller.features.feature_control import (
    SUPPORTED_FEATURES,
    has_eligible_leader_replicas,
    has_registered_controllers,
    has_unregistered_controllers,
)
from wirebroker.coordinator.controller.image.cluster_image import (
    BrokerImage,
    ClusterImage,
    broker_record,
    endpoints_of,
    feature_ranges,
    ranges_of,
)
from wirebroker.coordinator.controller.partitions.leader_election import leave
from wirebroker.coordinator.controller.requests.operations import (
    declare,
    declare_of_brokers,
    refused_with_message,
)
from wirebroker.coordinator.operation import ControllerResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import Endpoint
    from wirebroker.coordinator.controller.requests.request import Case
    from wirebroker.coordinator.operation import Operation

# BrokerRegistrationChange.fenced
FENCE = 1
UNFENCE = -1

# Lower ids are reserved: unassigned, lost, migrating (DirectoryId).
_FIRST_DIRECTORY_ID = 100


def register_broker(
    request: Any, image: ClusterImage, config: Config, *, cluster_id: str, has_session: bool
) -> Operation[dict[str, Any]]:
    """Register a broker, fenced.

    `has_session`: the registered incarnation has sent a heartbeat recently.

    Raises:
        KafkaError: INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION, INVALID_REGISTRATION,
            UNSUPPORTED_VERSION (a feature level of the cluster).
    """
    if request.cluster_id != cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"This is cluster {cluster_id}, not {request.cluster_id}.",
        )
    before = image.brokers.get(request.broker_id)
    is_same = before is not None and before.incarnation_id == request.incarnation_id
    if before is not None and has_session and not is_same and not before.in_controlled_shutdown:
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"Broker {request.broker_id} is registered and alive. If it was just restarted,"
            " it can register when its previous session expires.",
        )
    _check_directories(request, image)
    _check_features(request, image)
    records: list[MetadataRecord] = []
    epoch = image.offset
    if before is not None and is_same:
        epoch = before.epoch
    elif before is not None:
        is_clean = request.previous_broker_epoch == before.epoch
        has_elr = has_eligible_leader_replicas(image.features)
        records += yield from leave(
            image, config, request.broker_id, is_unclean=has_elr and not is_clean
        )
    else:
        yield
    records.append(broker_record(_registered(request, epoch)))
    return ControllerResult({"broker_epoch": epoch}, records)


def _registered(request: Any, epoch: int) -> BrokerImage:
    return BrokerImage(
        node_id=request.broker_id,
        epoch=epoch,
        incarnation_id=request.incarnation_id,
        endpoints=endpoints_of(request.listeners),
        features=ranges_of(request.features),
        rack=request.rack,
        fenced=True,
        in_controlled_shutdown=False,
        log_directories=tuple(request.log_dirs),
    )


def _check_directories(request: Any, image: ClusterImage) -> None:
    directories = request.log_dirs
    if not directories:
        raise _invalid("No log directories are given.")
    if len(set(directories)) < len(directories):
        raise _invalid("A log directory is given twice.")
    if any(int.from_bytes(directory_id) < _FIRST_DIRECTORY_ID for directory_id in directories):
        raise _invalid("A log directory has a reserved id.")
    for other in image.brokers.values():
        shared = set(directories).intersection(other.log_directories)
        if other.node_id != request.broker_id and shared:
            raise _invalid(f"Broker {other.node_id} has already registered the log directory.")


def _check_features(request: Any, image: ClusterImage) -> None:
    supported = {
        feature.name: (feature.min_supported_version, feature.max_supported_version)
        for feature in request.features
    }
    for name, level in image.features.items():
        lowest, highest = supported.get(name, (0, 0))
        if not lowest <= level <= highest:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The cluster has finalized {name} at level {level}; the broker supports"
                f" {lowest} to {highest}.",
            )


def fence_broker(image: ClusterImage, config: Config, broker_id: int) -> Operation[dict[str, Any]]:
    """Fence a broker; other replicas become leaders where possible."""
    broker = image.brokers[broker_id]
    records = yield from leave(image, config, broker_id)
    return ControllerResult({}, [*records, broker_change(broker, fenced=FENCE)])


def unregister_broker(
    request: Any, image: ClusterImage, config: Config
) -> Operation[dict[str, Any]]:
    """Remove a broker.

    Raises:
        KafkaError: BROKER_ID_NOT_REGISTERED.
    """
    broker = image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {request.broker_id} is not registered."
        )
    records = yield from leave(image, config, broker.node_id)
    records.append(
        metadata_record(
            RecordType.UNREGISTER_BROKER, broker_id=broker.node_id, broker_epoch=broker.epoch
        )
    )
    return ControllerResult({}, records)


def unregister_controller(
    request: Any, image: ClusterImage, *, active_id: int
) -> Operation[dict[str, Any]]:
    """Remove a controller.

    Raises:
        KafkaError: INVALID_REQUEST, UNSUPPORTED_VERSION, CONTROLLER_ID_NOT_REGISTERED.
    """
    yield
    if request.controller_id == active_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active."
        )
    if not has_unregistered_controllers(image.features):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller unregistration.",
        )
    node_id = request.controller_id
    if node_id not in image.controllers:
        raise KafkaError(
            ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
            f"Controller ID {node_id} is not currently registered.",
        )
    record = metadata_record(RecordType.UNREGISTER_CONTROLLER, controller_id=node_id)
    return ControllerResult({}, [record])


def check_broker_epoch(image: ClusterImage, broker_id: int, broker_epoch: int) -> BrokerImage:
    """Return a broker if the epoch is current.

    Raises:
        KafkaError: STALE_BROKER_EPOCH: it is not registered, or another incarnation is.
    """
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} is not registered.")
    if broker.epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Broker {broker_id} has the epoch {broker.epoch}, not {broker_epoch}.",
        )
    return broker


def broker_change(broker: BrokerImage, **fields: Any) -> MetadataRecord:
    """Return the record of a broker's change."""
    return metadata_record(
        RecordType.BROKER_REGISTRATION_CHANGE,
        broker_id=broker.node_id,
        broker_epoch=broker.epoch,
        **fields,
    )


def controller_registration(
    node_id: int, incarnation_id: bytes, endpoints: Iterable[Endpoint]
) -> dict[str, Any]:
    """Return the fields of the request by which a controller registers."""
    return {
        "controller_id": node_id,
        "incarnation_id": incarnation_id,
        "zk_migration_ready": False,
        "listeners": [endpoint._asdict() for endpoint in endpoints],
        "features": feature_ranges(SUPPORTED_FEATURES),
    }


def controller_record(registration: Mapping[str, Any]) -> MetadataRecord:
    """Return the record of a registered controller."""
    fields = dict(registration)
    end_points = fields.pop("listeners")
    return metadata_record(RecordType.REGISTER_CONTROLLER, end_points=end_points, **fields)


def register_controller(request: Any, image: ClusterImage) -> Operation[dict[str, Any]]:
    """Register a controller, or another life of one.

    Raises:
        KafkaError: UNSUPPORTED_VERSION.
    """
    yield
    if not has_registered_controllers(image.features):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    return ControllerResult({}, [controller_record(request.as_dict())])


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGISTRATION, message)


def _register(case: Case) -> Operation[dict[str, Any]]:
    body, sessions, now_ms = case.body, case.rules.sessions, case.now.monotonic_ms
    before = case.image.brokers.get(body.broker_id)
    result = yield from register_broker(
        body,
        case.image,
        case.config,
        cluster_id=case.rules.cluster_id,
        has_session=before is not None and sessions.is_valid(before.node_id, before.epoch, now_ms),
    )
    sessions.touch(body.broker_id, result.response["broker_epoch"], now_ms)
    return result


declare_of_brokers(ApiKey.BROKER_REGISTRATION, _register)
declare_of_brokers(
    ApiKey.CONTROLLER_REGISTRATION,
    lambda case: register_controller(case.body, case.image),
    refuse=refused_with_message,
)
# The session ends by itself, because whether the records will be written is unknown here.
declare(
    ApiKey.UNREGISTER_BROKER,
    lambda case: unregister_broker(case.body, case.image, case.config),
    permissions=(ALTER_CLUSTER,),
    refuse=refused_with_message,
)
declare(
    ApiKey.UNREGISTER_CONTROLLER,
    lambda case: unregister_controller(case.body, case.image, active_id=case.rules.node_id),
    permissions=(ALTER_CLUSTER,),
    refuse=refused_with_message,
)
