"""Deallocation of large decoded messages in slices.

Freeing 500,000 elements at a time would hold the loop for a tenth of a second. Reference counts
show which objects are used elsewhere, so this module must not be compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from wirebroker.base.clock import Slices, SystemClock
from wirebroker.codecs.values import Struct

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps

# Elements that are freed per step: 0.2 ms.
_ELEMENTS: Final = 256
# Reference count of an object that only a variable has, including getrefcount's own.
_OF_A_VARIABLE: Final = 2
# The same for an object in a list, struct or mapping.
_OF_A_PART: Final = 3


async def free_gradually(messages: list[Any]) -> None:
    """Free structs and mappings that only this list refers to, and empty the list."""
    slices = Slices(SystemClock())
    while messages:
        message = messages.pop()
        if sys.getrefcount(message) <= _OF_A_VARIABLE:
            await slices.run(_emptied(message))


def _emptied(message: Any) -> Steps[None]:
    """Empty the long lists of a message."""
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
