"""The delivery service beside a broker, for `wirebroker serve --delivery` (docs/delivery.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.broker.companion_process import CompanionCommand, CompanionProcess

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from wirebroker.broker.companions import LocalBroker

_OWN: Final = "wirebroker.delivery."
# It finishes a transaction, and leaves its group.
_STOP_TIMEOUT_S: Final = 20.0


def delivery_child(file: Path | None, settings: Mapping[str, str]) -> CompanionProcess:
    """Return an instance as a process, with the broker's file and the settings that are its own."""
    own = [] if file is None else ["--config", str(file)]
    for name, value in settings.items():
        if name.startswith(_OWN):
            own += ["--set", f"{name}={value}"]

    def arguments(broker: LocalBroker) -> list[str]:
        return ["delivery", "run", "--until-input-ends", "--bootstrap", broker.address, *own]

    return CompanionProcess(CompanionCommand("delivery service", arguments, _STOP_TIMEOUT_S))
