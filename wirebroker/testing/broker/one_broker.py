"""`OneBroker`, the common base of `Broker` and of the nodes of a `Cluster`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.testing.base.arguments import checked
from wirebroker.testing.broker.broker_clock import BrokerClock
from wirebroker.testing.broker.broker_faults import BrokerFaults
from wirebroker.testing.requests.request_journal import requests_of

if TYPE_CHECKING:
    from enum import Enum
    from pathlib import Path

    from wirebroker.testing.broker.life import BrokerLife
    from wirebroker.testing.requests.recorded_request import RecordedRequest


class OneBroker:
    """One broker, alone or in a cluster.

    Attributes:
        clock: Its time.
        faults: Faults for its clients.
    """

    def __init__(self, life: BrokerLife) -> None:
        self._life = life
        self.clock = BrokerClock(life)
        self.faults = BrokerFaults(life)

    @checked
    def start(self) -> None:
        """Start the broker if it is not running, with the same data and port.

        In a cluster, wait until the node serves clients: after a kill, its old session has to time
        out first.

        >>> broker.stop()
        >>> broker.start()

        Raises:
            wirebroker.config.ConfigError: A config is invalid.
            wirebroker.config.StartError: The broker does not start.
            RuntimeError: The broker was closed.
        """
        self._life.start()

    @checked
    def stop(self) -> None:
        """Stop the broker cleanly, as SIGTERM does.

        It responds to pending requests and hands over its leaderships.

        >>> _ = broker.produce("orders", "one")
        >>> broker.stop()
        >>> broker.start()
        >>> len(broker.records("orders"))
        1
        """
        self._life.stop()

    @checked
    def kill(self) -> None:
        """Stop the broker immediately, as kill -9 does; acknowledged records survive.

        In a cluster, it is fenced after `broker.session.timeout.ms` (3 s).

        >>> _ = broker.produce("orders", "one")
        >>> broker.kill()
        >>> broker.start()
        >>> len(broker.records("orders"))
        1
        """
        self._life.kill()

    @property
    def bootstrap_servers(self) -> str:
        """The address, `host:port`.

        >>> broker.bootstrap_servers.startswith("127.0.0.1:")
        True

        Raises:
            RuntimeError: The broker was never started.
        """
        if self._life.address is None:
            raise RuntimeError("the broker was not started: use it in a with block")
        return str(self._life.address)

    @property
    def directory(self) -> Path:
        """The data directory, for `wirebroker dump` and `verify`.

        >>> _ = broker.produce("orders", "one")
        >>> (broker.directory / "orders-0").is_dir()
        True
        """
        return self._life.directory

    @property
    def test_url(self) -> str | None:
        """The HTTP address for `wirebroker console --test-url`; None for a broker in this process.

        >>> broker.test_url is None
        True
        """
        return self._life.host.test_url

    @checked
    def log_lines(self, most: int = 50) -> list[str]:
        """Return the last log lines since the start; of all brokers in this process.

        >>> _ = broker.produce("orders", "one")
        >>> broker.log_lines(most=0)
        []
        """
        return self._life.host.log_lines(most)

    # -- recorded requests -------------------------------------------------------------------

    @checked
    def requests(
        self,
        api: str | Enum | None = None,
        *,
        client_id: str | None = None,
        most: int | None = None,
    ) -> list[RecordedRequest]:
        """Return the last requests of clients, oldest first.

        At most 10,000 requests and 16 MiB are kept; a body over 4 MiB is omitted.

        >>> broker.requests(api="PRODUCE")
        []

        Args:
            api: Kafka's name of an API, such as "FETCH"; None for all.
            client_id: Only requests with this id.
            most: Maximum number.

        Raises:
            ValueError: The API is unknown.
            ConnectionError: The broker's separate process is not running.
        """
        return requests_of(self._life, api, client_id=client_id, most=most)

    @checked
    def forget_requests(self) -> None:
        """Forget the recorded requests.

        >>> broker.forget_requests()
        >>> broker.requests()
        []
        """
        self._life.instruct("forget-requests", {})
