"""Create-, Renew- and ExpireDelegationToken: a token's life (KIP-48, KIP-373).

    created   expires after delegation.token.expiry.time.ms; at the latest, whatever is renewed,
              after delegation.token.max.lifetime.ms or what the request says, if that is sooner
    renewed   by its owner and its renewers: the same time again, from now
    expired   by the same: now, or after some time
    removed   by the controller, every delegation.token.expiry.check.interval.ms

What one principal may have made has a bound (wirebroker.delegation.tokens), which Kafka lacks.

Without delegation.token.secret.key, which every node of a cluster is given, there are no tokens.
A request shows the HMAC of the token that it means; those of all tokens are computed and compared
(10,000: 40 ms, in steps), so that no time tells how much of one was right. Who has proved who he
is by a token makes, renews and ends none.

Source: Kafka's DelegationTokenControlManager; ControllerApis for who is refused.
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
from wirebroker.config.rows.texts import LONGEST_STRING_BYTES
from wirebroker.coordinator.controller.image.cluster_image import METADATA_VERSION
from wirebroker.coordinator.operation import MAX_RECORDS, ControllerResult

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.operation import Operation
    from wirebroker.coordinator.outcome import Moment

SECRET_KEY: Final = "delegation.token.secret.key"  # noqa: S105 - the setting's name
_USER: Final = "User"
_TIMES: Final = ("issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms")
_NO_TIME: Final = -1  # who asks is refused; where there are no tokens it is 0
_OF_TOKENS: Final = (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, ErrorCode.UNSUPPORTED_VERSION)
# Before it there are no such records (3.6-IV2).
_FIRST_LEVEL: Final = 14
_LATEST_MS: Final = (1 << 63) - 1
# Of owner and renewers together: the record is in the memory of every node.
_MOST_NAME_BYTES: Final = 64 << 10
# Tokens between two places where the work may be interrupted: 0.3 ms.
_STEP: Final = 64


def owner_of(request: Any, asker: Principal) -> Principal:
    """Return the owner that a CreateDelegationToken request names, or its sender.

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR, as Kafka answers a name without a type.
    """
    name = request.owner_principal_name  # versions before 3 have no owner
    if not name:
        return asker
    if request.owner_principal_type is None:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Principal(request.owner_principal_type, name)


def create_token(
    request: Any,
    image: ClusterImage,
    config: Config,
    *,
    asker: Principal,
    now_ms: int,
    token_id: str,
) -> Operation[dict[str, Any]]:
    """Make a token; the result is a CreateDelegationTokenResponse, a refusal's too.

    Args:
        request: What is asked for.
        image: The newest.
        config: Whether there are tokens, and for how long.
        asker: Who asks; whether he may make one for its owner is known.
        now_ms: Wall time.
        token_id: Of the new one.
    """
    owner, requester = owner_of(request, asker), principal_text(asker)
    owner_text = principal_text(owner)
    try:
        _check_asker(asker)
        _check_renewers(request)
        renewers = tuple(f"{_USER}:{each.principal_name}" for each in request.renewers)
        secret = _secret(image, config)
        _check_size(owner_text, *renewers)
        yield from _check_count(requester, image, config)
    except KafkaError as error:
        refused = refused_token(owner, asker, error.code)
        if error.code in _OF_TOKENS:
            refused |= dict.fromkeys(_TIMES, 0)
        return ControllerResult(refused)
    longest_ms = config.int("delegation.token.max.lifetime.ms")
    if request.max_lifetime_ms > 0:
        longest_ms = min(longest_ms, request.max_lifetime_ms)
    max_ms = _after(now_ms, longest_ms)
    expiry_ms = min(max_ms, _after(now_ms, config.int("delegation.token.expiry.time.ms")))
    token = DelegationToken(token_id, owner_text, requester, renewers, now_ms, expiry_ms, max_ms)
    answer = {
        **refused_token(owner, asker, ErrorCode.NONE),
        "issue_timestamp_ms": now_ms,
        "expiry_timestamp_ms": expiry_ms,
        "max_timestamp_ms": max_ms,
        "token_id": token_id,
        "hmac": token_hmac(secret, token_id),
    }
    return ControllerResult(answer, [token_record(token)])


def renew_token(
    request: Any, image: ClusterImage, config: Config, *, asker: Principal, now_ms: int
) -> Operation[dict[str, Any]]:
    """Have a token expire later; the result is a RenewDelegationTokenResponse.

    Raises:
        KafkaError: It is refused.
    """
    token = yield from _token_of_asker(request, image, config, asker)
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    more_ms = config.int("delegation.token.expiry.time.ms")
    if request.renew_period_ms > 0:
        more_ms = min(more_ms, request.renew_period_ms)
    return _expiring(token, _after(now_ms, more_ms))


def expire_token(
    request: Any, image: ClusterImage, config: Config, *, asker: Principal, now_ms: int
) -> Operation[dict[str, Any]]:
    """End a token now, or have it expire sooner; the result is an ExpireDelegationTokenResponse.

    Raises:
        KafkaError: It is refused.
    """
    token = yield from _token_of_asker(request, image, config, asker)
    if request.expiry_time_period_ms < 0:
        answer = {"error_code": int(ErrorCode.NONE), "expiry_timestamp_ms": now_ms}
        return ControllerResult(answer, [_removal(token)])
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return _expiring(token, _after(now_ms, request.expiry_time_period_ms))


def remove_expired(image: ClusterImage, moment: Moment) -> Operation[list[DelegationToken]]:
    """Remove tokens that have expired; answers which, at most as many as one change may have."""
    gone: list[DelegationToken] = []
    for count, token in enumerate(image.delegation_tokens(), 1):
        if token.has_expired(moment.wall_ms) and len(gone) < MAX_RECORDS:
            gone.append(token)
        if count % _STEP == 0:
            yield
    yield
    return ControllerResult(gone, [_removal(each) for each in gone])


def refused_token(owner: Principal, requester: Principal, error: ErrorCode) -> dict[str, Any]:
    """Return the response that refuses a token; with no error, the beginning of another."""
    return {
        "error_code": int(error),
        **principal_fields(owner, ""),
        **principal_fields(requester, "token_requester_"),
        **dict.fromkeys(_TIMES, _NO_TIME),
    }


def not_allowed(key: ApiKey, request: Any, asker: Principal) -> dict[str, Any]:
    """Return the answer to who has not proved who he is, or by a token alone."""
    error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    if key is ApiKey.CREATE_DELEGATION_TOKEN:
        try:
            return denied_token(request, asker, error)
        except KafkaError as wrong_owner:
            return refused_token(asker, asker, ErrorCode(wrong_owner.code))
    return {"error_code": int(error), "expiry_timestamp_ms": _NO_TIME}


def denied_token(request: Any, asker: Principal, error: ErrorCode) -> dict[str, Any]:
    """Return the answer to who may make no token, or none for its owner.

    Raises:
        KafkaError: By `owner_of`.
    """
    return refused_token(owner_of(request, asker), asker, error)


def has_tokens(config: Config) -> bool:
    """Tell whether this node has the key by which tokens are made and checked."""
    return bool(config.optional_str(SECRET_KEY))


def _secret(image: ClusterImage, config: Config) -> str:
    """Return the key of all tokens.

    Raises:
        KafkaError: There are none.
    """
    secret = config.optional_str(SECRET_KEY)
    if secret is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    if image.features.get(METADATA_VERSION, 0) < _FIRST_LEVEL:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    return secret


def _check_asker(asker: Principal) -> None:
    if asker.is_by_token:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def _check_renewers(request: Any) -> None:
    # A request may name millions: a look at each would hold up everybody.
    if len(request.renewers) > _MOST_NAME_BYTES // len(f"{_USER}:"):
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    if any(each.principal_type != _USER for each in request.renewers):
        raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)


def _check_size(*principals: str) -> None:
    lengths = [len(each.encode()) for each in principals]
    # Even if the total is allowed, a type or a name may be too long for a record's string.
    if sum(lengths) > _MOST_NAME_BYTES or max(lengths) > LONGEST_STRING_BYTES:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)


def _check_count(requester: str, image: ClusterImage, config: Config) -> Steps[None]:
    left = config.int("wirebroker.delegation.tokens")
    for count, token in enumerate(image.delegation_tokens(), 1):
        left -= token.requester == requester
        if count % _STEP == 0:
            yield
    if left <= 0:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)


def _token_of_asker(
    request: Any, image: ClusterImage, config: Config, asker: Principal
) -> Steps[DelegationToken]:
    """Return the token whose HMAC a request shows, if who asks may change it.

    Raises:
        KafkaError: There is none, or he may not.
    """
    _check_asker(asker)
    secret = _secret(image, config)
    found: DelegationToken | None = None
    for count, token in enumerate(image.delegation_tokens(), 1):
        if are_same(token_hmac(secret, token.token_id), request.hmac):
            found = token
        if count % _STEP == 0:
            yield
    if found is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    if not found.may_be_renewed_by(principal_text(asker)):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    return found


def _expiring(token: DelegationToken, expiry_ms: int) -> ControllerResult[dict[str, Any]]:
    after = token._replace(expiry_ms=min(token.max_ms, expiry_ms))
    answer = {"error_code": int(ErrorCode.NONE), "expiry_timestamp_ms": after.expiry_ms}
    return ControllerResult(answer, [token_record(after)])


def _removal(token: DelegationToken) -> MetadataRecord:
    return metadata_record(RecordType.REMOVE_DELEGATION_TOKEN, token_id=token.token_id)


def _after(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, _LATEST_MS)
