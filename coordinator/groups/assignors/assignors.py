"""The assignors by name, as a group's members and `group.consumer.assignors` name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.coordinator.groups.assignors.range import assign_ranges
from wirebroker.coordinator.groups.assignors.uniform import assign_uniformly

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.coordinator.groups.assignors.assignor import Assignor

ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}
