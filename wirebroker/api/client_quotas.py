"""DescribeClientQuotas: the quotas that the cluster's metadata have (KIP-546).

v0, v1 flexible. None of them is in force yet: a directory that has some is refused unless somebody
says that it may be open (config/protection.py), and none can be added.

Source: Kafka's ClientQuotasImage.describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.registry import handles
from wirebroker.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType
from wirebroker.handlers import Cost
from wirebroker.needs import DESCRIBE_CLUSTER_CONFIGS

if TYPE_CHECKING:
    from wirebroker.broker import Broker
    from wirebroker.request import Request

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"
_EXACT, _DEFAULT, _ANY = 0, 1, 2
_Filter = dict[str, tuple[int, str | None]]
_Entity = dict[str, str | None]
_MATCHES: Final = {_EXACT: "EXACT", _DEFAULT: "DEFAULT", _ANY: "SPECIFIED"}


@handles(ApiKey.DESCRIBE_CLIENT_QUOTAS, needs=(DESCRIBE_CLUSTER_CONFIGS,), cost=Cost.SLICES)
async def describe_client_quotas(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe the quotas of the entities that a filter lets through."""
    del request
    try:
        wanted = _filter(body.components)
    except KafkaError as error:
        return {"error_code": error.code, "error_message": error.message, "entries": None}
    slices = Slices(broker.clock)
    found: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
    for record in broker.metadata.image.others.values():
        if record.type is RecordType.CLIENT_QUOTA:
            quota = record.body
            entity: _Entity = {each.entity_type: each.entity_name for each in quota.entity}
            if _is_wanted(entity, wanted, is_strict=body.strict):
                found.setdefault(tuple(entity.items()), {})[quota.key] = quota.value
        await slices.turn()
    return {
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "entries": [
            {
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
                "values": [{"key": key, "value": value} for key, value in values.items()],
            }
            for entity, values in found.items()
        ],
    }


def _filter(components: Any) -> _Filter:
    """Return by kind how an entity's name is matched, and with what.

    Raises:
        KafkaError: INVALID_REQUEST, UNSUPPORTED_VERSION for a kind that nobody knows.
    """
    wanted: _Filter = {}
    for each in components:
        kind = each.entity_type
        if kind not in {_USER, _CLIENT_ID, _IP}:
            code = ErrorCode.UNSUPPORTED_VERSION if kind else ErrorCode.INVALID_REQUEST
            raise KafkaError(
                code,
                f"Custom entity type {kind} not supported"
                if kind
                else ("Invalid empty entity type."),
            )
        if kind in wanted:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if each.match_type not in _MATCHES:
            raise _invalid(f"Unknown match type {each.match_type}")
        if (each.match is None) is (each.match_type == _EXACT):
            name = _MATCHES[each.match_type]
            raise _invalid(f"MATCH_TYPE_{name} does not go with the match {each.match}")
        wanted[kind] = (each.match_type, each.match)
    if _IP in wanted and len(wanted) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return wanted


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _is_wanted(entity: _Entity, wanted: _Filter, *, is_strict: bool) -> bool:
    if is_strict and len(entity) != len(wanted):
        return False
    return all(
        kind in entity and (match_type == _ANY or entity[kind] == name)
        for kind, (match_type, name) in wanted.items()
    )
