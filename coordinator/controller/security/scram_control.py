"""AlterUserScramCredentials: add, change and remove SCRAM users (KIP-554).

Source: Kafka's ScramControlManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import Steps, collected
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.codecs.permissions import ALTER_CLUSTER
from wirebroker.codecs.scram import (
    LEAST_ITERATIONS,
    MOST_ITERATIONS,
    SCRAM_MECHANISMS,
    ScramKeys,
    keys_of,
)
from wirebroker.coordinator.controller.requests.operations import declare
from wirebroker.coordinator.operation import ControllerResult, RecordsOfRequest

if TYPE_CHECKING:
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.coordinator.operation import Operation

# Users between two yields: 1 ms.
_STEP = 64


def alter_scram_users(request: Any, image: ClusterImage) -> Operation[dict[str, Any]]:
    """Change SCRAM users.

    Raises:
        KafkaError: POLICY_VIOLATION: the request is too large.
    """
    changes: dict[str, MetadataRecord | KafkaError] = {}
    for count, alteration in enumerate((*request.deletions, *request.upsertions), 1):
        is_deletion = count <= len(request.deletions)
        before = changes.get(alteration.name)
        if before is None:
            changes[alteration.name] = _change(alteration, image, is_deletion=is_deletion)
        elif not isinstance(before, KafkaError):
            changes[alteration.name] = KafkaError(
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            )
        if count % _STEP == 0:
            yield
    records = RecordsOfRequest()
    for change in changes.values():
        if not isinstance(change, KafkaError):
            records.add(change)
    results = yield from collected(_result(user, change) for user, change in changes.items())
    return ControllerResult({"results": results}, records.records)


def _refused(request: ControllerRequest, error: KafkaError) -> Steps[dict[str, Any]]:
    users = dict.fromkeys(
        alteration.name for alteration in (*request.body.deletions, *request.body.upsertions)
    )
    return {"results": (yield from collected(_result(user, error) for user in users))}


def scram_user_record(name: str, mechanism: int, keys: ScramKeys) -> MetadataRecord:
    """Return the record that adds or replaces a user."""
    return metadata_record(
        RecordType.USER_SCRAM_CREDENTIAL, name=name, mechanism=mechanism, **keys._asdict()
    )


def _result(user: str, change: MetadataRecord | KafkaError) -> dict[str, Any]:
    if isinstance(change, KafkaError):
        message = change.message or change.code.name
        return {"user": user, "error_code": change.code, "error_message": message}
    return {"user": user, "error_code": ErrorCode.NONE, "error_message": None}


def _change(
    alteration: Any, image: ClusterImage, *, is_deletion: bool
) -> MetadataRecord | KafkaError:
    name, mechanism = alteration.name, alteration.mechanism
    if not name:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in SCRAM_MECHANISMS:
        return KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if is_deletion:
        return _removal(name, mechanism, image)
    if not LEAST_ITERATIONS <= alteration.iterations <= MOST_ITERATIONS:
        quantity = "few" if alteration.iterations < LEAST_ITERATIONS else "many"
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"Too {quantity} iterations")
    keys = keys_of(
        mechanism,
        alteration.salted_password,
        salt=alteration.salt,
        iterations=alteration.iterations,
    )
    return scram_user_record(name, mechanism, keys)


def _removal(name: str, mechanism: int, image: ClusterImage) -> MetadataRecord | KafkaError:
    if image.scram_user(name, mechanism) is None:
        return KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
        )
    return metadata_record(RecordType.REMOVE_USER_SCRAM_CREDENTIAL, name=name, mechanism=mechanism)


declare(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    lambda case: alter_scram_users(case.body, case.image),
    permissions=(ALTER_CLUSTER,),
    refuse=_refused,
)
