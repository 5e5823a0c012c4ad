"""DescribeClientQuotas and AlterClientQuotas (KIP-546).

Rules: coordinator/controller/configs/quota_control.py.

Source: Kafka's ClientQuotasImage.describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import DESCRIBE_CLUSTER_CONFIGS
from wirebroker.coordinator.quotas.quota_entity import CLIENT_ID, IP, USER
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.quotas.quota_entity import QuotaEntity
    from wirebroker.request.request import Request

_EXACT, _DEFAULT, _ANY = 0, 1, 2
_Filter = dict[str, tuple[int, str | None]]
_MATCHES: Final = {_EXACT: "EXACT", _DEFAULT: "DEFAULT", _ANY: "SPECIFIED"}


@handles(ApiKey.DESCRIBE_CLIENT_QUOTAS, permissions=(DESCRIBE_CLUSTER_CONFIGS,), cost=Cost.READS)
async def describe_client_quotas(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe the quotas of entities that match a filter."""
    del request
    try:
        quota_filter = _filter(body.components)
    except KafkaError as error:
        return {"error_code": error.code, "error_message": error.message, "entries": None}
    slices = Slices(broker.clock)
    matches: list[tuple[QuotaEntity, Mapping[str, float]]] = []
    for entity, quotas in broker.metadata.image.client_quotas.items():
        if _matches(dict(entity), quota_filter, is_strict=body.strict):
            matches.append((entity, quotas))
        await slices.turn()
    return {
        "error_code": ErrorCode.NONE,
        "error_message": "",  # as in Kafka; null is for denied clients
        "entries": [
            {
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
                "values": [{"key": key, "value": value} for key, value in values.items()],
            }
            for entity, values in matches
        ],
    }


def _filter(components: Any) -> _Filter:
    quota_filter: _Filter = {}
    for component in components:
        kind = component.entity_type
        if kind not in {USER, CLIENT_ID, IP}:
            code = ErrorCode.UNSUPPORTED_VERSION if kind else ErrorCode.INVALID_REQUEST
            raise KafkaError(
                code,
                f"Custom entity type {kind} not supported"
                if kind
                else ("Invalid empty entity type."),
            )
        if kind in quota_filter:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if component.match_type not in _MATCHES:
            raise _invalid(f"Unknown match type {component.match_type}")
        if (component.match is None) is (component.match_type == _EXACT):
            name = _MATCHES[component.match_type]
            raise _invalid(f"MATCH_TYPE_{name} is not valid with the match {component.match}")
        quota_filter[kind] = (component.match_type, component.match)
    if IP in quota_filter and len(quota_filter) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return quota_filter


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _matches(entity: Mapping[str, str | None], quota_filter: _Filter, *, is_strict: bool) -> bool:
    if is_strict and len(entity) != len(quota_filter):
        return False
    return all(
        kind in entity and (match_type == _ANY or entity[kind] == name)
        for kind, (match_type, name) in quota_filter.items()
    )
