"""CreateAcls and DeleteAcls (KIP-140, KIP-290, KIP-801).

Source: Kafka's AclApis and AclControlManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import Steps, collected
from wirebroker.codecs.acls import (
    ALLOW,
    ANY,
    CLUSTER_NAME,
    DENY,
    LITERAL,
    PATTERN_TYPES,
    PERMISSIONS,
    PREFIXED,
    AclEntry,
    Resource,
    creation_of,
    filter_of,
    has_unknown,
)
from wirebroker.codecs.address_ranges import is_range, parse_range
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.codecs.permissions import ALTER_CLUSTER
from wirebroker.coordinator.controller.features.feature_control import has_address_ranges
from wirebroker.coordinator.controller.image.cluster_image import acl_record
from wirebroker.coordinator.controller.requests.operations import declare, failure
from wirebroker.coordinator.operation import (
    MAX_RECORDS,
    ControllerResult,
    RecordsOfRequest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.requests.request import ControllerRequest
    from wirebroker.coordinator.operation import Operation

AUTHORIZER: Final = "authorizer.class.name"
NO_AUTHORIZER: Final = "No Authorizer is configured."

# Rules between two yields: 1 ms.
_STEP: Final = 256


def create_acls(
    request: Any, image: ClusterImage, config: Config, *, new_uuid: Callable[[], bytes]
) -> Operation[dict[str, Any]]:
    """Add rules that do not exist.

    Raises:
        KafkaError: SECURITY_DISABLED without an authorizer; POLICY_VIOLATION: the request is too
            large.
    """
    _check_authorizer(config)
    records = RecordsOfRequest()
    results: list[dict[str, Any]] = []
    added: set[AclEntry] = set()
    for count, creation in enumerate(request.creations, 1):
        entry = creation_of(creation)
        try:
            _check(entry, image.features)
        except KafkaError as error:
            results.append(failure(error))
        else:
            if entry not in image.acl_ids and entry not in added:
                added.add(entry)
                records.add(acl_record(new_uuid(), entry))
            results.append({})
        if count % _STEP == 0:
            yield
    yield
    return ControllerResult({"results": results}, records.records)


def _refused_creations(request: ControllerRequest, error: KafkaError) -> Steps[dict[str, Any]]:
    return {"results": (yield from collected(failure(error) for _ in request.body.creations))}


def delete_acls(request: Any, image: ClusterImage, config: Config) -> Operation[dict[str, Any]]:
    """Remove the rules that match filters.

    Raises:
        KafkaError: SECURITY_DISABLED without an authorizer; INVALID_REQUEST: too many rules
            match.
    """
    _check_authorizer(config)
    deleted_ids: set[bytes] = set()
    matches = 0
    results: list[dict[str, Any]] = []
    for requested in request.filters:
        acl_filter = filter_of(requested)
        matching: list[dict[str, Any]] = []
        for count, (acl_id, entry) in enumerate(image.acls.items(), 1):
            if acl_filter.fits(entry):
                matching.append({**entry._asdict(), "error_message": None})
                deleted_ids.add(acl_id)
                matches += 1  # several filters may match one rule
                if matches > MAX_RECORDS:
                    raise _invalid(
                        f"The request would delete more than {MAX_RECORDS} ACLs; split it."
                    )
            if count % _STEP == 0:
                yield
        results.append({"error_message": None, "matching_acls": matching})
        yield
    records = [
        metadata_record(RecordType.REMOVE_ACCESS_CONTROL_ENTRY, id=acl_id) for acl_id in deleted_ids
    ]
    return ControllerResult({"filter_results": results}, records)


def _refused_deletions(request: ControllerRequest, error: KafkaError) -> Steps[dict[str, Any]]:
    refused = (failure(error) | {"matching_acls": []} for _ in request.body.filters)
    return {"filter_results": (yield from collected(refused))}


def _check_authorizer(config: Config) -> None:
    if not config.optional_str(AUTHORIZER):
        raise KafkaError(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


def _check(entry: AclEntry, features: Mapping[str, int]) -> None:
    if entry.resource_type == Resource.CLUSTER and entry.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not entry.resource_name:
        raise _invalid("Invalid empty resource name")
    if entry.resource_type == ANY:
        raise _invalid("Invalid resourceType ANY")
    if has_unknown(entry):  # at a controller listener, where no broker has checked it
        raise _invalid("An ACL has an unknown enum value")
    if entry.pattern_type not in {LITERAL, PREFIXED}:
        raise _invalid(f"Invalid patternType {PATTERN_TYPES[entry.pattern_type]}")
    if entry.operation == ANY:
        raise _invalid("Invalid operation ANY")
    if entry.permission_type not in {ALLOW, DENY}:
        raise _invalid(f"Invalid permissionType {PERMISSIONS[entry.permission_type]}")
    if ":" not in entry.principal:
        raise _invalid(
            f"Could not parse principal from `{entry.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )
    _check_host(entry.host, features)


def _check_host(host: str, features: Mapping[str, int]) -> None:
    if not host:
        raise _invalid("Host pattern cannot be null or empty")
    if not is_range(host):
        return
    if not has_address_ranges(features):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher.",
        )
    try:
        parse_range(host)
    except ValueError as error:
        raise _invalid(f"Invalid CIDR notation '{host}': {error}") from None


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


declare(
    ApiKey.CREATE_ACLS,
    lambda case: create_acls(case.body, case.image, case.config, new_uuid=case.rules.new_uuid),
    permissions=(ALTER_CLUSTER,),
    refuse=_refused_creations,
)
declare(
    ApiKey.DELETE_ACLS,
    lambda case: delete_acls(case.body, case.image, case.config),
    permissions=(ALTER_CLUSTER,),
    refuse=_refused_deletions,
)
