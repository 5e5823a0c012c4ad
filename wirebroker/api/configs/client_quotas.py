"""DescribeClientQuotas and AlterClientQuotas (KIP-546).

Both v0, v1 flexible. Rules: coordinator/controller/configs/quota_control.py.

Source: Kafka's ClientQuotasImage.describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwarded, handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.quotas.quota_entity import CLIENT_ID, IP, USER
from wirebroker.request.handlers import Cost
from wirebroker.request.needs import ALTER_CLUSTER_CONFIGS, DESCRIBE_CLUSTER_CONFIGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.quotas.quota_entity import QuotaEntity
    from wirebroker.request.request import Request

_EXACT, _DEFAULT, _ANY = 0, 1, 2
_Filter = dict[str, tuple[int, str | None]]
_MATCHES: Final = {_EXACT: "EXACT", _DEFAULT: "DEFAULT", _ANY: "SPECIFIED"}


@forwarded
@handles(ApiKey.ALTER_CLIENT_QUOTAS, needs=(ALTER_CLUSTER_CONFIGS,), cost=Cost.CONTROLLER)
async def alter_client_quotas(broker: Broker, request: Request, body: Any) -> Any:
    """Change client quotas."""
    return await forward(broker, request, body)


@handles(ApiKey.DESCRIBE_CLIENT_QUOTAS, needs=(DESCRIBE_CLUSTER_CONFIGS,), cost=Cost.READS)
async def describe_client_quotas(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe the quotas of entities that match a filter."""
    del request
    try:
        wanted = _filter(body.components)
    except KafkaError as error:
        return {"error_code": error.code, "error_message": error.message, "entries": None}
    slices = Slices(broker.clock)
    found: list[tuple[QuotaEntity, Mapping[str, float]]] = []
    for entity, quotas in broker.metadata.image.client_quotas.items():
        if _is_wanted(dict(entity), wanted, is_strict=body.strict):
            found.append((entity, quotas))
        await slices.turn()
    return {
        "error_code": ErrorCode.NONE,
        "error_message": "",  # as in Kafka; null is for denied clients
        "entries": [
            {
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
                "values": [{"key": key, "value": value} for key, value in values.items()],
            }
            for entity, values in found
        ],
    }


def _filter(components: Any) -> _Filter:
    """Return the match type and name by entity type."""
    wanted: _Filter = {}
    for each in components:
        kind = each.entity_type
        if kind not in {USER, CLIENT_ID, IP}:
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
    if IP in wanted and len(wanted) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return wanted


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _is_wanted(entity: Mapping[str, str | None], wanted: _Filter, *, is_strict: bool) -> bool:
    if is_strict and len(entity) != len(wanted):
        return False
    return all(
        kind in entity and (match_type == _ANY or entity[kind] == name)
        for kind, (match_type, name) in wanted.items()
    )
