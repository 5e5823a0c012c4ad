"""Handlers wrapped with their rules.

Long rules continue in slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from wirebroker.authorization.broker_rules import BROKER_RULES, CHECKED_BY_HANDLER
from wirebroker.authorization.controller_rules import LISTENER_RULES
from wirebroker.authorization.ruling import CheckedRequest, Ruling
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.messages import encode_response
from wirebroker.coordinator.controller.controller import DECLARED_OPERATIONS
from wirebroker.request.body_decoding import decoded
from wirebroker.request.handlers import Registry
from wirebroker.request.request import LargeResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from wirebroker.authorization.access import Authorization
    from wirebroker.authorization.ruling import Rule
    from wirebroker.base.clock import Clock, Steps
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.request.handlers import Handler
    from wirebroker.request.request import Reply, Request


_Result = TypeVar("_Result")

# Steps of a rule (ruling.STEP) before the rest runs in slices.
_STEPS_AT_ONCE: Final = 4


class _Metadata(Protocol):
    @property
    def image(self) -> ClusterImage: ...


class _Node(Protocol):
    """A broker or a controller."""

    clock: Clock

    @property
    def metadata(self) -> _Metadata: ...


def guarded(registry: Registry, authorization: Authorization) -> Registry:
    """Return a broker's handlers, wrapped with their rules."""

    def guard(key: ApiKey) -> Handler:
        handler = registry.handler(key)
        if not handler.permissions or handler.is_forwarded or handler.key in CHECKED_BY_HANDLER:
            return handler
        # KeyError without a rule: any client could send it
        return _wrapped(handler, BROKER_RULES[handler.key], authorization)

    return registry.derived(registry.registered_keys(), guard)


def guarded_controller(registry: Registry, authorization: Authorization) -> Registry:
    """Return the handlers of a controller listener, wrapped with their rules."""
    wrapped = Registry()
    for handler in registry.handlers():
        asks_itself = handler.key is ApiKey.DESCRIBE_CONFIGS
        if not handler.permissions or handler.key in DECLARED_OPERATIONS or asks_itself:
            wrapped.add(handler)
        else:
            wrapped.add(_wrapped(handler, LISTENER_RULES[handler.key], authorization))
    return wrapped


def _wrapped(handler: Handler, rule: Rule, authorization: Authorization) -> Handler:
    if handler.is_raw:
        return handler._replace(function=_raw(handler, rule, authorization), is_coroutine=True)
    # A rule needs the decoded request.
    return handler._replace(
        function=_decoded(handler, rule, authorization), is_coroutine=False, repeat=None
    )


def _decoded(handler: Handler, rule: Rule, authorization: Authorization) -> Callable[..., Any]:
    function = handler.function

    def serve(broker: _Node, request: Request, body: Any) -> Any:
        ruling = rule(_client_request(authorization, broker, request, body))
        if not isinstance(ruling, Ruling):
            steps, immediate = ruling, _immediate_result(ruling)
            if immediate is None:
                return serve_later(broker, request, body, steps)
            ruling = immediate
        return answered(broker, request, body, ruling)

    def answered(broker: _Node, request: Request, body: Any, ruling: Ruling) -> Any:
        if ruling.refusal is not None:
            return ruling.refusal
        answer = function(broker, request, body)
        if ruling.merge is None:
            return answer
        if hasattr(answer, "__await__"):
            return _merged_later(broker, answer, ruling)
        steps = ruling.merged(answer)
        immediate = _immediate_result(steps)
        return _remaining_result(broker, steps) if immediate is None else immediate

    async def serve_later(
        broker: _Node, request: Request, body: Any, steps: Steps[Ruling]
    ) -> Mapping[str, Any]:
        ruling = await Slices(broker.clock).run(steps)
        answer = answered(broker, request, body, ruling)
        return LargeResponse(await answer if hasattr(answer, "__await__") else answer)

    return serve


def _immediate_result(steps: Steps[_Result]) -> _Result | None:
    for _ in range(_STEPS_AT_ONCE):
        try:
            next(steps)
        except StopIteration as end:
            return cast("_Result", end.value)
    return None


async def _merged_later(node: _Node, answer: Awaitable[Any], ruling: Ruling) -> Mapping[str, Any]:
    steps = ruling.merged(await answer)
    immediate = _immediate_result(steps)
    return await _remaining_result(node, steps) if immediate is None else immediate


async def _remaining_result(node: _Node, steps: Steps[Mapping[str, Any]]) -> Mapping[str, Any]:
    return LargeResponse(await Slices(node.clock).run(steps))


def _raw(handler: Handler, rule: Rule, authorization: Authorization) -> Callable[..., Any]:
    """Wrap a handler that encodes its response; its rule serves or refuses the whole request."""
    function = handler.function

    async def serve(broker: _Node, request: Request) -> Reply:
        key, version = request.key, request.version
        body = await decoded(request)
        ruling = rule(_client_request(authorization, broker, request, body))
        if not isinstance(ruling, Ruling):
            ruling = await Slices(broker.clock).run(ruling)
        if ruling.refusal is not None:
            return [encode_response(key, version, ruling.refusal, request.errors)]
        assert ruling.merge is None, f"{key.name} encodes its response itself"
        reply: Reply = await function(broker, request)
        return reply

    return serve


def _client_request(
    authorization: Authorization, node: _Node, request: Request, body: Any
) -> CheckedRequest:
    access = authorization.access_of(request)
    return CheckedRequest(access, node.metadata.image, request.version, body)
