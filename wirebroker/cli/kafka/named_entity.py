"""An entity of kafka-configs, by type and name."""

from __future__ import annotations

from typing import Final, NamedTuple

# Name of the default of brokers, users, clients or ips.
DEFAULT: Final = ""
BROKERS: Final = "brokers"


class NamedEntity(NamedTuple):
    """An entity; a name of None means all of its type."""

    kind: str
    name: str | None

    @property
    def is_default(self) -> bool:
        """Whether it is the default of all brokers."""
        return self.kind == BROKERS and self.name == DEFAULT

    @property
    def resource_name(self) -> str:
        """Its name in the protocol."""
        return self.name or ""
