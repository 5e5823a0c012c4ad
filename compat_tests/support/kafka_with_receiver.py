"""Apache Kafka with a plug-in that receives client metrics (KIP-714).

Without one it does not advertise the telemetry keys.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support.brokers.brokers import ApacheKafka
from tests.support.tools import java_programs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SETTINGS: Final = {"metric.reporters": "Receiver"}


class KafkaWithReceiver(ApacheKafka):
    """A broker with the plug-in of receiver/Receiver.java."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        java_options: Sequence[str] = (),
    ) -> None:
        super().__init__(directory, {**_SETTINGS, **(settings or {})}, java_options=java_options)

    def _command(self) -> list[str]:
        command = super()._command()
        classes = java_programs.compiled("receiver", Path(__file__).with_name("receiver"))
        command[command.index("-cp") + 1] += f":{classes}"
        return command
