"""A factory of brokers for one test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.testing.base.arguments import checked
from wirebroker.testing.broker.broker import Broker

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from wirebroker.testing.clients.protection import SaslName
    from wirebroker.testing.data.snapshots import Snapshot
    from wirebroker.testing.settings.settings import Setting


class BrokerFactory:
    """A factory that starts brokers and ends them together.

    Attributes:
        brokers: The started brokers, in order.
    """

    def __init__(self) -> None:
        self.brokers: list[Broker] = []

    @checked
    def __call__(
        self,
        *,
        config: Mapping[str, Setting] | None = None,
        directory: str | Path | None = None,
        port: int = 0,
        own_process: bool = False,
        snapshot: Snapshot | str | Path | None = None,
        tls: bool = False,
        sasl: SaslName | None = None,
    ) -> Broker:
        """Start a broker; the arguments are those of `Broker`."""
        broker = Broker(
            config=config,
            directory=directory,
            port=port,
            own_process=own_process,
            snapshot=snapshot,
            tls=tls,
            sasl=sasl,
        )
        self.brokers.append(broker)
        broker.start()
        return broker

    def close(self) -> None:
        """End all brokers."""
        for broker in reversed(self.brokers):
            broker.close()
