"""A node's start, after a clean stop: until Metadata from other nodes shows it as unfenced."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.cluster.admin import Admin, until
from benchmarks.cluster.figures import Figure
from benchmarks.cluster.nodes import FIRST, OURS, SHORT_SESSIONS, THEIRS, Trio, trio
from benchmarks.measurement.machine import cpu_seconds

if TYPE_CHECKING:
    from pathlib import Path

_NODE = 3
_SESSION_S = int(SHORT_SESSIONS["broker.session.timeout.ms"]) / 1000


class Start(NamedTuple):
    ms: float
    cpu_ms: float


def measure(checkout: Path | None, pairs: int) -> list[Figure]:
    results: dict[str, list[Start]] = {OURS: [], THEIRS: []}
    with (
        trio(OURS, checkout, SHORT_SESSIONS) as wirebroker,
        trio(THEIRS, None, SHORT_SESSIONS) as kafka,
    ):
        for _ in range(pairs):
            for kind, nodes in ((OURS, wirebroker), (THEIRS, kafka)):
                results[kind].append(_start(nodes))
                print(f"  {kind}: {results[kind][-1]}", flush=True)
    wirebroker_starts, kafka_starts = results[OURS], results[THEIRS]
    return [
        Figure(
            "start to unfenced",
            "ms",
            [a.ms for a in wirebroker_starts],
            [b.ms for b in kafka_starts],
        ),
        Figure(
            "start to unfenced: CPU",
            "ms",
            [a.cpu_ms for a in wirebroker_starts],
            [b.cpu_ms for b in kafka_starts],
        ),
    ]


def _start(nodes: Trio) -> Start:
    node, admin = nodes.nodes[_NODE], Admin(nodes.nodes[FIRST])
    node.stop()
    until(lambda: _NODE not in admin.brokers())
    # Before, controllers of both kinds reject the next incarnation as a duplicate.
    time.sleep(1.5 * _SESSION_S)  # see above
    starter = threading.Thread(target=node.start)
    began = time.monotonic()
    starter.start()
    until(lambda: _NODE in admin.brokers(), poll_s=0.003)
    took_ms = (time.monotonic() - began) * 1000
    cpu_ms = cpu_seconds(node.process_id) * 1000
    starter.join()
    admin.close()
    return Start(took_ms, cpu_ms)
