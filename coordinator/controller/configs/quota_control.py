"""AlterClientQuotas: set and remove quotas of users, clients and addresses (KIP-546).

Addresses must be numeric, because the controller resolves no names.

Source: Kafka's ClientQuotaControlManager and QuotaConfig.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import Steps, collected
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, without_frames
from wirebroker.codecs.permissions import ALTER_CLUSTER_CONFIGS
from wirebroker.coordinator.controller.image.cluster_image import quota_record
from wirebroker.coordinator.controller.requests.operations import declare
from wirebroker.coordinator.operation import ControllerResult, RecordsOfRequest
from wirebroker.coordinator.quotas.addresses import normal_address
from wirebroker.coordinator.quotas.quota_entity import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    QuotaEntity,
    entity_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.coordinator.operation import Operation

# Parts of an entity; there are three kinds, and the last of a kind counts.
_MOST_PARTS: Final = 16
# Entities between two yields: 1 ms.
_STEP: Final = 64

# Maximum of each quota; None: any number, also with a fraction.
_CLIENT_QUOTAS: Final[Mapping[str, int | None]] = {
    PRODUCER_BYTE_RATE: 2**63 - 1,
    CONSUMER_BYTE_RATE: 2**63 - 1,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_IP_QUOTAS: Final[Mapping[str, int | None]] = {CONNECTION_CREATION_RATE: 2**31 - 1}
# Kafka's text, with its missing space.
_NO_COMBINATION: Final = (
    "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
)
# Tolerance for whole numbers.
_FRACTION: Final = 1e-6


def alter_client_quotas(request: Any, image: ClusterImage) -> Operation[dict[str, Any]]:
    """Change quotas.

    Raises:
        KafkaError: POLICY_VIOLATION: the request is too large.
    """
    results: dict[QuotaEntity, KafkaError | None] = {}
    records = RecordsOfRequest()
    for count, entry in enumerate(request.entries, 1):
        if count % _STEP == 0:
            yield
        entity = _entity(entry)
        keys = [op.key for op in entry.ops]
        if entity in results or len(set(keys)) < len(keys):
            results[entity] = _invalid(f"{_shown(entity)}, or a quota of it, is given twice")
            continue
        try:
            changes = _changes(entity, entry.ops, image)
        except KafkaError as error:
            results[entity] = without_frames(error)
        else:
            records.extend(changes)
            results[entity] = None
    entries: list[dict[str, Any]] = []
    for count, (entity, refusal) in enumerate(results.items()):
        if count % _STEP == 0:
            yield
        entries.append(_result(entity, refusal))
    return ControllerResult({"entries": entries}, [] if request.validate_only else records.records)


def _refused(request: ControllerRequest, error: KafkaError) -> Steps[dict[str, Any]]:
    named = yield from collected(_entity(entry) for entry in request.body.entries)
    refused = (_result(entity, error) for entity in dict.fromkeys(named))
    return {"entries": (yield from collected(refused))}


def _entity(entry: Any) -> QuotaEntity:
    parts = entry.entity[-_MOST_PARTS:]
    return entity_of((part.entity_type, part.entity_name) for part in parts)


def _parts(entity: QuotaEntity) -> list[dict[str, str | None]]:
    return [{"entity_type": kind, "entity_name": name} for kind, name in entity]


def _shown(entity: QuotaEntity) -> str:
    return ", ".join(f"{kind} {'<default>' if name is None else name}" for kind, name in entity)


def _result(entity: QuotaEntity, error: KafkaError | None) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.NONE if error is None else error.code,
        "error_message": None if error is None else error.message or error.code.name,
        "entity": _parts(entity),
    }


def _changes(entity: QuotaEntity, ops: Any, image: ClusterImage) -> list[MetadataRecord]:
    limits = _limits_of(entity)
    current_quotas = image.client_quotas.get(entity, {})
    records: list[MetadataRecord] = []
    for op in ops:
        before = current_quotas.get(op.key)
        if op.remove:
            if before is not None:
                records.append(quota_record(entity, op.key, None))
            continue
        _check(op.key, op.value, limits)
        if before != op.value:
            records.append(quota_record(entity, op.key, op.value))
    return records


def _limits_of(entity: QuotaEntity) -> Mapping[str, int | None]:
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in {USER, CLIENT_ID, IP}:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    names = dict(entity)
    if IP not in names:
        return _CLIENT_QUOTAS
    if len(names) > 1:
        raise _invalid(_NO_COMBINATION)
    address = names[IP]
    if address is not None and normal_address(address) is None:
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return _IP_QUOTAS


def _check(key: str, value: float, limits: Mapping[str, int | None]) -> None:
    if key not in limits:
        raise _invalid(f"Invalid configuration key {key}")
    if not value > 0:  # also refuses NaN
        raise _invalid(f"Quota {key} must be greater than 0")
    maximum = limits[key]
    if maximum is None:
        return
    if value > maximum:
        kind = "an INT" if maximum < 1 << 31 else "a LONG"
        raise _invalid(f"Proposed value for {key} is too large for {kind}.")
    if abs(value % 1.0) > _FRACTION:
        raise _invalid(f"{key} cannot be a fractional value.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


declare(
    ApiKey.ALTER_CLIENT_QUOTAS,
    lambda case: alter_client_quotas(case.body, case.image),
    permissions=(ALTER_CLUSTER_CONFIGS,),
    refuse=_refused,
)
