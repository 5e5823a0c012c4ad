"""Arguments, events and commands of a member program; see ../README.md."""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# Begins the names of assignors that the broker has, for the consumer protocol (KIP-848).
OF_THE_BROKER: Final = "broker-"


@dataclass(slots=True, frozen=True)
class Settings:
    name: str
    bootstrap: str
    topic: str
    group: str
    assignors: list[str]
    instance_id: str | None
    session_ms: int
    heartbeat_ms: int


def settings_of(arguments: list[str] | None = None) -> Settings:
    parser = argparse.ArgumentParser(description="A member of a group; see ../README.md.")
    for name in ("name", "bootstrap", "topic", "group"):
        parser.add_argument(name)
    parser.add_argument("assignors", type=lambda text: text.split(","))
    parser.add_argument("instance_id", type=lambda text: None if text == "-" else text)
    parser.add_argument("session_ms", type=int)
    options = parser.parse_args(arguments)
    return Settings(**vars(options), heartbeat_ms=options.session_ms // 10)


def protocol_configs(assignors: list[str], session_ms: int) -> dict[str, Any]:
    """Return librdkafka's configs for assignors of the client, or for one of the broker."""
    if assignors[0].startswith(OF_THE_BROKER):
        remote_assignor = assignors[0].removeprefix(OF_THE_BROKER)
        return {"group.protocol": "consumer", "group.remote.assignor": remote_assignor}
    return {
        "partition.assignment.strategy": ",".join(assignors),
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": session_ms // 10,
    }


class Speaker:
    """Prints the member's events, one per line.

    Each line is written in one call, because several members share a pipe.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def assigned(self, partitions: Iterable[int]) -> None:
        self._say(event="assigned", partitions=sorted(partitions))

    def revoked(self, partitions: Iterable[int]) -> None:
        self._say(event="revoked", partitions=sorted(partitions))

    def record(self, partition: int, offset: int) -> None:
        self._say(event="record", partition=partition, offset=offset)

    def committed(self, offsets: dict[int, int]) -> None:
        for partition, offset in offsets.items():
            self._say(event="committed", partition=partition, offset=offset)

    def error(self, error: object) -> None:
        self._say(event="error", error=f"{type(error).__name__}: {error}")

    def left(self) -> None:
        self._say(event="left")

    def _say(self, **event: object) -> None:
        line = json.dumps({"member": self._name, **event}) + "\n"
        os.write(sys.stdout.fileno(), line.encode())


def leave_command() -> threading.Event:
    """Return an event that the command `leave` or the end of standard input sets."""
    is_leaving = threading.Event()

    def listen() -> None:
        sys.stdin.readline()
        is_leaving.set()

    threading.Thread(target=listen, daemon=True).start()
    return is_leaving
