"""Large decoded messages are freed in slices.

A request may have 500,000 elements, and an answer as many: freeing them at once would hold the loop
for a tenth of a second. What is used elsewhere as well is left alone: it lives on. That is seen by
the number of its references, so this module must not be compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from wirebroker.base.clock import Slices, SystemClock
from wirebroker.codecs.values import Struct

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps

# Elements that are freed between two steps: 0.2 ms.
_ELEMENTS: Final = 256
# References to what only a local variable has: the variable's, and that of the call that asks.
_OF_A_VARIABLE: Final = 2
# Likewise to what only a list, a struct or a mapping has.
_OF_A_PART: Final = 3


async def let_go(messages: list[Any]) -> None:
    """Free messages that only this list has.

    Args:
        messages: Structs and mappings; the list is empty afterwards.
    """
    slices = Slices(SystemClock())
    while messages:
        message = messages.pop()
        if sys.getrefcount(message) <= _OF_A_VARIABLE:
            await slices.run(_emptied(message))


def _emptied(message: Any) -> Steps[None]:
    """Empty the long lists of a message, which is of no use afterwards."""
    is_struct = isinstance(message, Struct)
    if is_struct:
        names = message.FIELD_NAMES
    else:
        is_mapping = isinstance(message, Mapping)
        names = tuple(cast("Mapping[str, Any]", message)) if is_mapping else ()
    for name in names:
        value = getattr(message, name) if is_struct else message[name]
        if value.__class__ is not list or sys.getrefcount(value) > _OF_A_PART:
            continue
        for element in value if len(value) <= _ELEMENTS else ():
            if sys.getrefcount(element) <= _OF_A_PART:
                yield from _emptied(element)
        while value:
            del value[-_ELEMENTS:]
            yield
