"""What the examples' tests share: services as processes, told by KAFKA_SERVERS where Kafka is."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

STOP_S = 20


class Service:
    """A service that runs, its log in a file."""

    def __init__(self, script: Path, environment: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(script)],
                env={**os.environ, **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def stop(self) -> None:
        """Stop it as an operator does."""
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        self.process.wait(STOP_S)

    def kill(self) -> None:
        """Kill it, as by a lack of memory."""
        self.process.kill()
        self.process.wait(STOP_S)


@pytest.fixture
def start_service(request, tmp_path):
    """Start scripts that stand beside the test; those that run in the end are killed."""
    services: list[Service] = []

    def start(script: str, servers: str, **environment: str) -> Service:
        log = tmp_path / f"{len(services)}-{script}.log"
        path = request.path.parent / script
        services.append(Service(path, {"KAFKA_SERVERS": servers, **environment}, log))
        return services[-1]

    yield start
    for service in services:
        if service.process.poll() is None:
            service.kill()
        sys.stdout.write(f"--- {service.log.name}\n{service.log.read_text()}")
