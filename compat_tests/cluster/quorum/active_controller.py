"""The active controller as a victim of faults, whichever voter that is."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from compat_tests.cluster.quorum.mixed_quorum import MixedQuorum
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

_WAIT_S = 60


class ActiveController:
    """The voter that leads when a fault begins; a victim of Misfortunes.

    Attributes:
        victims: The voters that had a fault, in order.
    """

    def __init__(self, quorum: MixedQuorum) -> None:
        self._quorum = quorum
        self._victim: Broker | None = None
        self.victims: list[int] = []

    def kill9(self) -> None:
        """See Broker; likewise the next ones."""
        self._choose().kill9()

    def freeze(self) -> None:
        self._choose().freeze()

    def stop(self) -> None:
        self._choose().stop()

    def thaw(self) -> None:
        self._former().thaw()

    def start(self) -> None:
        self._former().start()

    def _choose(self) -> Broker:
        assert self._victim is None, "one fault at a time"
        leaders: list[int] = []

        def is_led() -> bool:
            leader = self._quorum.leader()
            if leader is not None:
                leaders.append(leader)
            return leader is not None

        eventually(is_led, timeout_s=_WAIT_S)
        self.victims.append(leaders[-1])
        self._victim = self._quorum.voter_nodes[leaders[-1]]
        return self._victim

    def _former(self) -> Broker:
        victim, self._victim = self._victim, None
        assert victim is not None, "no fault has begun"
        return victim


@contextlib.contextmanager
def three_voters(
    folder: Path, settings: Mapping[str, str], *, java_broker: int | None = None
) -> Iterator[MixedQuorum]:
    """Start three wirebroker voters and the brokers 1 to 3, one of which may be Apache Kafka's."""
    quorum = MixedQuorum(folder, ["wirebroker"] * 3, settings, has_proxies=False)
    try:
        quorum.start()
        for node_id in (1, 2, 3):
            if node_id == java_broker:
                quorum.java_broker(node_id)
            else:
                quorum.wirebroker(node_id)
        yield quorum
    finally:
        quorum.end()
