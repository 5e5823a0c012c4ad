"""Repeatedly refused clients do not fill the disk with log lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.hostile.hosted_broker import HostedBroker, receive_answer

if TYPE_CHECKING:
    from pathlib import Path

REFUSALS = 200


def test_flood_of_refused_connections_logs_few_lines_and_a_count(tmp_path: Path) -> None:
    broker = HostedBroker(tmp_path, log_level="info")
    for _ in range(REFUSALS):
        with broker.connect() as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert receive_answer(sock) is None
    broker.stop()
    lines = broker.lines_about("HTTP client is talking")
    # A minute may end in between; then there are two of its line quotas.
    assert len(lines) <= 2 * 62
    counts = [line for line in broker.lines_about("suppressed") if "127.0.0.1 on PLAINTEXT" in line]
    assert len(counts) in {1, 2}
