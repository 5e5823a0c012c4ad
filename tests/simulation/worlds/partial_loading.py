"""A planted fault for simulations: coordinators load only a part of their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest import mock

from wirebroker.codecs.records.coordinator_batches import KeyValueWalk
from wirebroker.coordination import coordinator_loading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


def loading(choose: Callable[[list[Any]], list[Any]]) -> AbstractContextManager[Any]:
    """Load only the chosen part of each read."""

    class Partial(KeyValueWalk):
        def __iter__(self) -> Iterator[Any]:
            yield from choose(list(super().__iter__()))

    return mock.patch.object(coordinator_loading, "KeyValueWalk", Partial)
