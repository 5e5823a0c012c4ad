"""The HTTP addresses of workers, from their ready lines."""

from __future__ import annotations

from wirebroker.broker.workers.running import http_urls_of
from wirebroker.net.listeners.ready_lines import BoundListener, ready_lines


def lines_of(node_id: int, *http: tuple[str, int]) -> list[str]:
    return ready_lines(
        [BoundListener("PLAINTEXT", "127.0.0.1", 9092, None)],
        node_id=node_id,
        cluster_id="MkU3OEVBNTcwNTJENDM2Qk",
        directories=["/data"],
        machine="box",
        http=http,
    )


def test_each_worker_has_its_own_address():
    lines = [
        lines_of(1, ("127.0.0.1", 9404), ("10.0.0.1", 9404)),
        lines_of(2, ("::", 9405)),
        lines_of(3),
    ]
    assert http_urls_of(lines) == {
        1: "http://127.0.0.1:9404",
        2: "http://[::1]:9405",
    }
