"""Requests to alter configs of which this node decides a part and the controller the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.clock import collected
from wirebroker.coordinator.controller.config_control import merged_results

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from wirebroker.clock import Slices
    from wirebroker.codecs.errors import KafkaError


async def alter_others(
    body: Any,
    outcomes: Mapping[int, KafkaError | None],
    alter: Callable[[], Awaitable[list[Any]]],
    slices: Slices,
) -> dict[str, Any]:
    """Alter the resources that are not decided yet, and return the answer to the whole request.

    Args:
        body: The request; afterwards it names only the others.
        outcomes: By the places of decided resources: why one is refused, or None.
        alter: Alters what the request still names; returns the results in its order.
        slices: What the answer is built in.
    """
    wanted = list(body.resources)
    body.resources = [each for place, each in enumerate(wanted) if place not in outcomes]
    answered = await alter() if body.resources else []
    responses = collected(merged_results(wanted, outcomes, iter(answered)))
    return {"responses": await slices.run(responses)}
