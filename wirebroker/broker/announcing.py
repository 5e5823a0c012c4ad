"""Who is told that a broker serves, besides people: supervisors, and who waits for Kafka's words.

    NOTIFY_SOCKET                   systemd's, where a unit has Type=notify: READY=1, STOPPING=1
    WIREBROKER_READY_WORDS=kafka    lines by which others know that Apache Kafka has started

The container image sets the second: what starts Kafka in containers for tests reads its log until
one of the lines comes.

A leaf.  Source: systemd's sd_notify(3); the wait strategies of testcontainers for Python, Java, Go.
"""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger("wirebroker")

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


def tell_supervisor(state: str, environment: Mapping[str, str]) -> None:
    """Tell the process that supervises this one, if it has said where.

    What cannot be told is logged: the broker serves all the same.

    Args:
        state: READY or STOPPING.
        environment: The process environment.
    """
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):  # Linux's abstract names begin with a zero
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
            notified.setblocking(False)
            notified.sendto(state.encode(), address)
    except OSError as error:
        logger.warning("NOTIFY_SOCKET: %s could not be told: %s", state, error.strerror or error)


def waited_for(node_id: int, environment: Mapping[str, str]) -> list[str]:
    """Return the lines for standard output that others wait for, if they are wanted.

    Args:
        node_id: Of this broker.
        environment: The process environment.
    """
    if environment.get("WIREBROKER_READY_WORDS") != "kafka":
        return []
    return [
        f"[KafkaServer id={node_id}] started",
        f"[KafkaRaftServer nodeId={node_id}] Kafka Server started",
        "Transitioning from RECOVERY to RUNNING",
    ]
