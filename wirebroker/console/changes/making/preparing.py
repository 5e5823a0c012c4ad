"""Finds kinds of changes and prepares changes, for pages and for the HTTP interface."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from wirebroker.client.errors import ClientError, did_you_mean
from wirebroker.console.changes.change import ChangeError
from wirebroker.console.changes.kinds.table import CHANGES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.console.changes.change import ChangeKind, PreparedChange
    from wirebroker.console.model.collector import Collector

_Result = TypeVar("_Result")

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


async def prefilled_values(
    kind: ChangeKind, collector: Collector, values: Mapping[str, str]
) -> dict[str, str]:
    """Return the values of a form that is opened with some of them; see `ChangeKind.prefill`.

    Raises:
        ChangeError: What the form is about does not exist.
        ClientError: The cluster refuses or does not respond.
    """
    is_started = all(values[field.name] for field in kind.fields if field.is_required)
    if kind.prefill is None or not is_started:
        return dict(values)
    return {**values, **await _within_patience(kind.prefill(collector, values))}


async def prepared_change(
    kind: ChangeKind,
    collector: Collector,
    values: Mapping[str, str],
    others: Mapping[str, Collector],
) -> PreparedChange:
    """Return what a change with checked values would do; takes at most 20 s.

    `others` are the other clusters in which the user may make the change.

    Raises:
        ChangeError: It cannot be made.
        ClientError: The cluster refuses or does not respond.
    """
    if kind.prepare_between is None:
        return await _within_patience(kind.prepare(collector, values))
    name = values[kind.other_cluster]
    other = others.get(name)
    if other is None:
        raise ChangeError(
            f"cluster {name[:64]!r} does not exist, or you may not make this change in it",
            kind.other_cluster,
        )
    work = kind.prepare_between(collector, other, values)
    return await _within_patience(work, f"cluster {collector.settings.name} or {name}")


async def _within_patience(work: Awaitable[_Result], clusters: str = "the cluster") -> _Result:
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await work
    except TimeoutError:
        raise ClientError(
            f"{clusters} did not respond within {_PATIENCE_S:g} s; nothing was changed"
        ) from None
