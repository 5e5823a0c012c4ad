"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken (KIP-48, KIP-373).

    created   expires after delegation.token.expiry.time.ms; renewals extend it up to
              delegation.token.max.lifetime.ms or the request's limit
    renewed   by its owner and its renewers: the same time again, from now
    expired   by the same: now, or after some time
    removed   by the controller, every delegation.token.expiry.check.interval.ms

Unlike in Kafka, the number of tokens per principal is limited (wirebroker.delegation.tokens).

Source: Kafka's DelegationTokenControlManager; ControllerApis for refused clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.delegation_token import (
    DelegationToken,
    principal_fields,
    principal_text,
    token_hmac,
    token_record,
)
from wirebroker.codecs.envelope import Principal
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.hashes import are_same
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.codecs.permissions import CREATE_TOKENS_OF_USER
from wirebroker.codecs.primitives import uuid_text
from wirebroker.config.rows.texts import LONGEST_STRING_BYTES
from wirebroker.coordinator.controller.image.cluster_image import METADATA_VERSION
from wirebroker.coordinator.controller.requests.operations import declare
from wirebroker.coordinator.operation import MAX_RECORDS, ControllerResult

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.requests.request import Case, ControllerRequest
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.outcome import Moment

SECRET_KEY: Final = "delegation.token.secret.key"  # noqa: S105 - the setting's name
_USER: Final = "User"
_TIMES: Final = ("issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms")
_NO_TIME: Final = -1  # for refused clients; 0 where tokens are disabled
_TOKEN_ERRORS: Final = (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, ErrorCode.UNSUPPORTED_VERSION)
# First level with token records (3.6-IV2).
_FIRST_LEVEL: Final = 14
_LATEST_MS: Final = (1 << 63) - 1
# Of owner and renewers together, because every node keeps them in memory.
_MOST_NAME_BYTES: Final = 64 << 10
# Tokens between two yields: 0.3 ms.
_STEP: Final = 64


def owner_of(request: Any, requester: Principal) -> Principal:
    """Return the owner of the requested token, by default its sender.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR, as in Kafka, for a name without a type.
    """
    name = request.owner_principal_name  # versions before 3 have no owner
    if not name:
        return requester
    if request.owner_principal_type is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Principal(request.owner_principal_type, name)


def create_token(
    request: Any,
    image: ClusterImage,
    config: Config,
    *,
    requester: Principal,
    now_ms: int,
    token_id: str,
) -> Operation[dict[str, Any]]:
    """Create a token; errors are in the response.

    The caller has checked that `requester` may create one for the owner. `now_ms` is wall time.
    """
    owner, requester_name = owner_of(request, requester), principal_text(requester)
    owner_text = principal_text(owner)
    try:
        _check_requester(requester)
        _check_renewers(request)
        renewers = tuple(f"{_USER}:{renewer.principal_name}" for renewer in request.renewers)
        secret = _secret(image, config)
        _check_size(owner_text, *renewers)
        yield from _check_count(requester_name, image, config)
    except KafkaError as error:
        refused = refused_token(owner, requester, error.code)
        if error.code in _TOKEN_ERRORS:
            refused |= dict.fromkeys(_TIMES, 0)
        return ControllerResult(refused)
    longest_ms = config.int("delegation.token.max.lifetime.ms")
    if request.max_lifetime_ms > 0:
        longest_ms = min(longest_ms, request.max_lifetime_ms)
    max_ms = _after(now_ms, longest_ms)
    expiry_ms = min(max_ms, _after(now_ms, config.int("delegation.token.expiry.time.ms")))
    token = DelegationToken(
        token_id, owner_text, requester_name, renewers, now_ms, expiry_ms, max_ms
    )
    answer = {
        **refused_token(owner, requester, ErrorCode.NONE),
        "issue_timestamp_ms": now_ms,
        "expiry_timestamp_ms": expiry_ms,
        "max_timestamp_ms": max_ms,
        "token_id": token_id,
        "hmac": token_hmac(secret, token_id),
    }
    return ControllerResult(answer, [token_record(token)])


def renew_token(
    request: Any, image: ClusterImage, config: Config, *, requester: Principal, now_ms: int
) -> Operation[dict[str, Any]]:
    """Extend a token's life.

    Raises:
        KafkaError: The request is refused.
    """
    token = yield from _token_of_requester(request, image, config, requester)
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    more_ms = config.int("delegation.token.expiry.time.ms")
    if request.renew_period_ms > 0:
        more_ms = min(more_ms, request.renew_period_ms)
    return _expiring(token, _after(now_ms, more_ms))


def expire_token(
    request: Any, image: ClusterImage, config: Config, *, requester: Principal, now_ms: int
) -> Operation[dict[str, Any]]:
    """Expire a token now or sooner.

    Raises:
        KafkaError: The request is refused.
    """
    token = yield from _token_of_requester(request, image, config, requester)
    if request.expiry_time_period_ms < 0:
        answer = {"error_code": int(ErrorCode.NONE), "expiry_timestamp_ms": now_ms}
        return ControllerResult(answer, [_removal(token)])
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return _expiring(token, _after(now_ms, request.expiry_time_period_ms))


def remove_expired(image: ClusterImage, now: Moment) -> Operation[list[DelegationToken]]:
    """Remove expired tokens, at most MAX_RECORDS, and return them."""
    expired: list[DelegationToken] = []
    for count, token in enumerate(image.delegation_tokens(), 1):
        if token.has_expired(now.wall_ms) and len(expired) < MAX_RECORDS:
            expired.append(token)
        if count % _STEP == 0:
            yield
    yield
    return ControllerResult(expired, [_removal(token) for token in expired])


def refused_token(owner: Principal, requester: Principal, error: ErrorCode) -> dict[str, Any]:
    """Return a response without a token, also as the base of a successful one."""
    return {
        "error_code": int(error),
        **principal_fields(owner, ""),
        **principal_fields(requester, "token_requester_"),
        **dict.fromkeys(_TIMES, _NO_TIME),
    }


def not_allowed(key: ApiKey, request: Any, requester: Principal) -> dict[str, Any]:
    """Return the response to a client that is unauthenticated or used a token."""
    error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if key is ApiKey.CREATE_DELEGATION_TOKEN:
        try:
            return denied_token(request, requester, error)
        except KafkaError as wrong_owner:
            return refused_token(requester, requester, ErrorCode(wrong_owner.code))
    return {"error_code": int(error), "expiry_timestamp_ms": _NO_TIME}


def denied_token(request: Any, requester: Principal, error: ErrorCode) -> dict[str, Any]:
    """Return the response to a client that may not create a token for this owner.

    Raises:
        KafkaError: From `owner_of`.
    """
    return refused_token(owner_of(request, requester), requester, error)


def has_tokens(config: Config) -> bool:
    """Return whether this node has a key for tokens."""
    return bool(config.optional_str(SECRET_KEY))


def _secret(image: ClusterImage, config: Config) -> str:
    """Return the key for tokens.

    Raises:
        KafkaError: Tokens are disabled or unsupported.
    """
    secret = config.optional_str(SECRET_KEY)
    if secret is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if image.features.get(METADATA_VERSION, 0) < _FIRST_LEVEL:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return secret


def _check_requester(requester: Principal) -> None:
    if requester.is_by_token:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def _check_renewers(request: Any) -> None:
    # Millions are too many to check without a yield.
    if len(request.renewers) > _MOST_NAME_BYTES // len(f"{_USER}:"):
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    if any(renewer.principal_type != _USER for renewer in request.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)


def _check_size(*principals: str) -> None:
    lengths = [len(principal.encode()) for principal in principals]
    # A single name may be too long for a record.
    if sum(lengths) > _MOST_NAME_BYTES or max(lengths) > LONGEST_STRING_BYTES:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)


def _check_count(requester: str, image: ClusterImage, config: Config) -> Steps[None]:
    remaining = config.int("wirebroker.delegation.tokens")
    for count, token in enumerate(image.delegation_tokens(), 1):
        remaining -= token.requester == requester
        if count % _STEP == 0:
            yield
    if remaining <= 0:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)


def _token_of_requester(
    request: Any, image: ClusterImage, config: Config, requester: Principal
) -> Steps[DelegationToken]:
    """Return the token of the request's HMAC.

    Raises:
        KafkaError: The client may not change it, or there is no such token.
    """
    _check_requester(requester)
    secret = _secret(image, config)
    requested: DelegationToken | None = None
    for count, token in enumerate(image.delegation_tokens(), 1):
        if are_same(token_hmac(secret, token.token_id), request.hmac):
            requested = token
        if count % _STEP == 0:
            yield
    if requested is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    if not requested.may_be_renewed_by(principal_text(requester)):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    return requested


def _expiring(token: DelegationToken, expiry_ms: int) -> ControllerResult[dict[str, Any]]:
    after = token._replace(expiry_ms=min(token.max_ms, expiry_ms))
    answer = {"error_code": int(ErrorCode.NONE), "expiry_timestamp_ms": after.expiry_ms}
    return ControllerResult(answer, [token_record(after)])


def _removal(token: DelegationToken) -> MetadataRecord:
    return metadata_record(RecordType.REMOVE_DELEGATION_TOKEN, token_id=token.token_id)


def _after(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, _LATEST_MS)


def _create(case: Case) -> Operation[dict[str, Any]]:
    return create_token(
        case.body,
        case.image,
        case.config,
        requester=case.principal,
        now_ms=case.now.wall_ms,
        token_id=uuid_text(case.rules.new_uuid()),
    )


def _change(case: Case) -> Operation[dict[str, Any]]:
    is_renewal = case.request.key is ApiKey.RENEW_DELEGATION_TOKEN
    change = renew_token if is_renewal else expire_token
    now_ms = case.now.wall_ms
    return change(case.body, case.image, case.config, requester=case.principal, now_ms=now_ms)


def _refused(request: ControllerRequest, error: KafkaError) -> Steps[dict[str, Any]]:
    del request
    yield
    return refused_token(Principal(), Principal(), ErrorCode(error.code))


declare(
    ApiKey.CREATE_DELEGATION_TOKEN,
    _create,
    permissions=(CREATE_TOKENS_OF_USER,),
    refuse=_refused,
)
# The token's owner and renewers decide.
for _key in (ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN):
    declare(_key, _change, permissions=())
