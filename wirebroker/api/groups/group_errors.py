"""Helpers of the group handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from wirebroker.base.addresses import host_of
from wirebroker.coordinator.controller.features.feature_control import (
    SHARE_VERSION,
    STREAMS_VERSION,
)
from wirebroker.coordinator.groups.group import GroupType
from wirebroker.coordinator.groups.share.error_texts import error_text

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.api.broker import Broker
    from wirebroker.authorization.access import RequestAccess
    from wirebroker.codecs.errors import ErrorCode
    from wirebroker.request.request import Request

_Result = TypeVar("_Result")

# Kafka's bits: READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
_GROUP_OPERATIONS = (3, 6, 8, 10, 11)
ALL_ON_GROUP = sum(1 << operation for operation in _GROUP_OPERATIONS)


def error_only(error: ErrorCode) -> dict[str, Any]:
    """Return a response with only an error."""
    return {"error_code": error}


def failed_with_text(error: ErrorCode) -> dict[str, Any]:
    """Return a response with an error and its sentence."""
    return {"error_code": error, "error_message": error_text(error)}


async def response_of(
    result: Mapping[str, Any] | Awaitable[Mapping[str, Any]],
) -> Mapping[str, Any]:
    """Return the response of a handler or of `GroupCoordinator.submit`."""
    return result if isinstance(result, Mapping) else await result


def cancelled_with_connection(request: Request, result: _Result) -> _Result:
    """Drop the response if the client disconnects; its membership does not change."""
    future: Any = result
    if isinstance(future, asyncio.Future):
        request.session.when_ended(future.cancel)  # pyright: ignore[reportUnknownMemberType]
    return result


def access_of(broker: Broker, request: Request) -> RequestAccess | None:
    """Return the client's access rights; None without an authorizer."""
    authorization = broker.authorization
    return None if authorization is None else authorization.access_of(request)


def client_host(request: Request) -> str:
    """Return the client's address in Java's form: with a slash, IPv6 in full."""
    return "/" + host_of(request.session.peer)


def serves_consumer_groups(broker: Broker) -> bool:
    """Return whether the cluster's features and this broker's settings allow consumer groups."""
    is_finalized = broker.metadata.image.features.get("group.version", 0) >= 1
    return is_finalized and GroupType.CONSUMER in broker.groups.settings.rebalance_protocols


def serves_share_groups(broker: Broker) -> bool:
    """Return whether the cluster's features allow share groups."""
    return broker.metadata.image.features.get(SHARE_VERSION, 0) >= 1


def serves_streams_groups(broker: Broker) -> bool:
    """Return whether the cluster's features and this broker's settings allow streams groups."""
    is_finalized = broker.metadata.image.features.get(STREAMS_VERSION, 0) >= 1
    return is_finalized and GroupType.STREAMS in broker.groups.settings.rebalance_protocols
