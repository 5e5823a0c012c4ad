"""Notifications that the broker is ready: to systemd, and in Kafka's words.

    NOTIFY_SOCKET                   systemd's, for units with Type=notify: READY=1, STOPPING=1
    WIREBROKER_READY_WORDS=kafka    lines that Apache Kafka prints when it has started

The container image sets the second, because test libraries wait for one of the lines.

Source: systemd's sd_notify(3); testcontainers for Python, Java and Go.
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


def notify_supervisor(state: str, environment: Mapping[str, str]) -> None:
    """Send READY or STOPPING to the supervising process, if it has set NOTIFY_SOCKET."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):  # abstract names of Linux begin with a zero byte
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
            notified.setblocking(False)
            notified.sendto(state.encode(), address)
    except OSError as error:
        logger.warning("NOTIFY_SOCKET: cannot send %s: %s", state, error.strerror or error)


def readiness_lines(node_id: int, environment: Mapping[str, str]) -> list[str]:
    """Return Kafka's ready lines for standard output, if they are configured."""
    if environment.get("WIREBROKER_READY_WORDS") != "kafka":
        return []
    return [
        f"[KafkaServer id={node_id}] started",
        f"[KafkaRaftServer nodeId={node_id}] Kafka Server started",
        "Transitioning from RECOVERY to RUNNING",
    ]
