"""Requests to the controller, limited to the parts that the ACLs allow.

Source: Kafka's ControllerApis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.addresses import java_host
from wirebroker.base.clock import Slices

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.authorization.access import Authorization
    from wirebroker.base.clock import Clock
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.coordinator.controller.requests.request import ControllerRequest, Requester


async def carry_out_authorized(
    request: ControllerRequest,
    requester: Requester,
    authorization: Authorization,
    image: ClusterImage,
    *,
    clock: Clock,
    carry_out: Callable[[ControllerRequest], Awaitable[dict[str, Any]]],
) -> dict[str, Any]:
    """Carry out the allowed part of a request; return the response that the client may see.

    Raises:
        KafkaError: The whole request is refused.
    """
    from wirebroker.authorization.controller_rules import rule_on  # noqa: PLC0415 - if needed
    from wirebroker.authorization.ruling import CheckedRequest  # noqa: PLC0415 - likewise

    access = authorization.access_for(requester.principal, java_host(requester.host), request.key)
    client_request = CheckedRequest(access, image, request.version, request.body)
    ruling = await Slices(clock).run(rule_on(request, client_request))
    if ruling.refusal is not None:
        return dict(ruling.refusal)
    response = await carry_out(request)
    return dict(await Slices(clock).run(ruling.merged(response)))
