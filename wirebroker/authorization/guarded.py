"""Handlers behind their rules: what a dispatcher is given where there is an authorizer.

Without one the handlers themselves are called, and nothing of this costs anybody anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from wirebroker.authorization.access import asking_of
from wirebroker.authorization.broker_rules import ASKING_THEMSELVES, BROKER_RULES
from wirebroker.authorization.controller_rules import DECIDED_BY_CONTROLLER, LISTENER_RULES
from wirebroker.authorization.ruling import AskedRequest
from wirebroker.codecs.messages import decode_request, encode_response
from wirebroker.handlers import Registry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from wirebroker.authorization.access import Authorization
    from wirebroker.authorization.ruling import Rule, Ruling
    from wirebroker.coordinator.controller.cluster_image import ClusterImage
    from wirebroker.handlers import Handler
    from wirebroker.request import Reply, Request


class _Metadata(Protocol):
    @property
    def image(self) -> ClusterImage: ...


class _Node(Protocol):
    """What handlers are given: a broker, or a controller."""

    @property
    def metadata(self) -> _Metadata: ...


def guarded(registry: Registry, authorization: Authorization) -> Registry:
    """Return a broker's handlers, each behind its rule."""
    behind = Registry()
    for handler in registry.handlers():
        if not handler.needs or handler.is_forwarded or handler.key in ASKING_THEMSELVES:
            behind.add(handler)
        else:  # one without a rule would be open to everybody
            behind.add(_behind(handler, BROKER_RULES[handler.key], authorization))
    return behind


def guarded_controller(registry: Registry, authorization: Authorization) -> Registry:
    """Return the handlers of a controller listener, each behind its rule."""
    behind = Registry()
    for handler in registry.handlers():
        if not handler.needs or handler.key in DECIDED_BY_CONTROLLER:
            behind.add(handler)
        else:
            behind.add(_behind(handler, LISTENER_RULES[handler.key], authorization))
    return behind


def _behind(handler: Handler, rule: Rule, authorization: Authorization) -> Handler:
    if handler.is_raw:
        return handler._replace(function=_raw(handler, rule, authorization), is_coroutine=True)
    return handler._replace(function=_decoded(handler, rule, authorization), is_coroutine=False)


def _decoded(handler: Handler, rule: Rule, authorization: Authorization) -> Callable[..., Any]:
    function = handler.function

    def serve(broker: _Node, request: Request, body: Any) -> Any:
        ruling = rule(_asked(authorization, broker, request, body))
        if ruling.refusal is not None:
            return ruling.refusal
        answer = function(broker, request, body)
        if ruling.merge is None:
            return answer
        return _merged(answer, ruling) if hasattr(answer, "__await__") else ruling.merge(answer)

    return serve


async def _merged(answer: Awaitable[Any], ruling: Ruling) -> Mapping[str, Any]:
    assert ruling.merge is not None
    return ruling.merge(await answer)


def _raw(handler: Handler, rule: Rule, authorization: Authorization) -> Callable[..., Any]:
    """Put a rule before a handler that encodes its answer itself: all of it is allowed, or none."""
    function = handler.function

    async def serve(broker: _Node, request: Request) -> Reply:
        key, version = request.key, request.version
        body = decode_request(key, version, request.frame, request.position)
        ruling = rule(_asked(authorization, broker, request, body))
        if ruling.refusal is not None:
            return [encode_response(key, version, ruling.refusal)]
        assert ruling.merge is None, f"{key.name} encodes its answer itself"
        reply: Reply = await function(broker, request)
        return reply

    return serve


def _asked(authorization: Authorization, node: _Node, request: Request, body: Any) -> AskedRequest:
    asking = asking_of(authorization, request)
    return AskedRequest(asking, node.metadata.image, request.version, body)
