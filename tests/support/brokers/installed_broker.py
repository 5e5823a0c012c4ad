"""A broker that is started by a given command in a given folder, as a user starts it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from typing import TYPE_CHECKING

from tests.support.protocol.raw_client import BlockingClient
from tests.support.tools.waiting import PATIENCE_S
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

READY = "wirebroker ready on "


@contextlib.contextmanager
def serving(command: Sequence[str | Path], folder: Path) -> Iterator[tuple[str, int]]:
    port_file = folder / "port"
    arguments: list[str | Path] = [
        "serve",
        "--port",
        "0",
        "--data-dir",
        "data",
        "--port-file",
        port_file,
    ]
    with subprocess.Popen(
        [*command, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as broker:
        try:
            assert broker.stdout is not None
            lines: list[str] = []
            while not (lines and lines[-1].startswith(READY)):
                lines.append(broker.stdout.readline())
                assert lines[-1], f"the broker has ended: {lines}"
            yield ("127.0.0.1", int(port_file.read_text(encoding="ascii")))
        finally:
            broker.send_signal(signal.SIGTERM)
    assert broker.returncode == 0


def assert_it_answers(address: tuple[str, int]) -> None:
    """Check the responses to requests that only the generic codec handles."""
    client = BlockingClient(address, timeout_s=PATIENCE_S)
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    request = {"topics": [topic], "timeout_ms": int(PATIENCE_S * 1000)}
    response = client.ask(ApiKey.CREATE_TOPICS, 7, request)
    assert [(result.name, result.error_code) for result in response.topics] == [("t", 0)]
    assert client.ask(ApiKey.LIST_GROUPS, 5, {}).error_code == 0
    client.close()
