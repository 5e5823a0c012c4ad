"""Config requests of which this node and the controller each decide a part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import collected
from wirebroker.coordinator.controller.configs.config_control import merged_results

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from wirebroker.base.clock import Slices
    from wirebroker.codecs.errors import KafkaError


async def alter_remaining_resources(
    body: Any,
    outcomes: Mapping[int, KafkaError | None],
    alter: Callable[[], Awaitable[list[Any]]],
    slices: Slices,
) -> dict[str, Any]:
    """Alter the undecided resources and return the response to the request.

    Args:
        body: The request; decided resources are removed from it.
        outcomes: Errors, or None, by the positions of decided resources.
        alter: Alters the remaining resources; returns their results in order.
        slices: For the response.
    """
    resources = list(body.resources)
    body.resources = [resource for index, resource in enumerate(resources) if index not in outcomes]
    results = await alter() if body.resources else []
    responses = collected(merged_results(resources, outcomes, iter(results)))
    return {"responses": await slices.run(responses)}
