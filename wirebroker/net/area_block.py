"""The memory of a receive area, a type of its own (and a module: it cannot be compiled)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.net.receive_area import ReceiveArea


class AreaBlock(bytearray):
    """Memory of an area; its type tells a view into it from a view that owns its bytes.

    Attributes:
        area: Whose it is.
    """

    __slots__ = ("area",)

    area: ReceiveArea
