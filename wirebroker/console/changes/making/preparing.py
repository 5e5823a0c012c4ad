"""Finds kinds of changes and prepares changes, for pages and for the HTTP interface."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from wirebroker.client.errors import ClientError, did_you_mean
from wirebroker.console.changes.change import ChangeError
from wirebroker.console.changes.kinds.table import CHANGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.console.changes.change import ChangeKind, PreparedChange
    from wirebroker.console.model.collector import Collector

_PATIENCE_S: Final = 20.0


def kind_named(name: str) -> ChangeKind:
    """Return a kind of change.

    Raises:
        ChangeError: There is none with this name.
    """
    kind = CHANGES.get(name)
    if kind is None:
        hint = did_you_mean(name, CHANGES)
        raise ChangeError(f"there is no change {name[:64]!r}{hint}")
    return kind


async def prepared_change(
    kind: ChangeKind, collector: Collector, values: Mapping[str, str]
) -> PreparedChange:
    """Return what a change with checked values would do; takes at most 20 s.

    Raises:
        ChangeError: It cannot be made.
        ClientError: The cluster refuses or does not respond.
    """
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await kind.prepare(collector, values)
    except TimeoutError:
        raise ClientError(
            f"the cluster did not respond within {_PATIENCE_S:g} s; nothing was changed"
        ) from None
