"""Debian's Prometheus: it scrapes a broker every second and is queried over HTTP."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.support.tools import tools
from tests.support.tools.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

START_S = 60.0
_PACKAGES = ("prometheus",)


@cache
def program(name: str) -> str:
    on_path = shutil.which(name)
    return on_path or str(tools.debian_packages("prometheus", _PACKAGES) / "usr" / "bin" / name)


class Prometheus:
    """One process, with a broker as its only target.

    Args:
        directory: A folder for its data.
        target: HOST:PORT of the broker's /metrics.
        labels: Labels that the scrape configuration adds for a dashboard.
        rules: A file of alert rules.
    """

    def __init__(
        self, directory: Path, target: str, labels: Mapping[str, str], rules: Path | None = None
    ) -> None:
        self._directory = directory
        self._target = target
        self._labels = labels
        self._rules = rules
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Prometheus:
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(self._rules)] if self._rules else [],
            "scrape_configs": [
                {
                    "job_name": "wirebroker",
                    "static_configs": [{"targets": [self._target], "labels": dict(self._labels)}],
                }
            ],
        }
        self._directory.mkdir(parents=True, exist_ok=True)
        file = self._directory / "prometheus.yml"
        file.write_text(json.dumps(config))  # JSON is YAML
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    program("prometheus"),
                    f"--config.file={file}",
                    f"--storage.tsdb.path={self._directory / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                ],
                stdout=log,
                stderr=log,
                env={**os.environ, "GOMAXPROCS": "1"},
            )
        deadline = time.monotonic() + START_S
        while not self._is_ready():
            assert self._process.poll() is None, (self._directory / "log").read_text()
            assert time.monotonic() < deadline, "Prometheus is not ready"
            time.sleep(0.1)  # a starting server is probed
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(START_S)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the current samples of an expression.

        Raises:
            AssertionError: The expression is invalid.
        """
        return self._ask("query", query=expression)["result"]

    def now(self) -> float:
        return float(self.query("vector(time())")[0]["value"][1])

    def query_range(self, expression: str, start: float, end: float) -> list[dict[str, Any]]:
        """Return the series of an expression between two Unix times, with a point each second.

        Raises:
            AssertionError: The expression is invalid.
        """
        parameters = {"start": str(start), "end": str(end), "step": "1"}
        return self._ask("query_range", query=expression, **parameters)["result"]

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]

    def _ask(self, path: str, **fields: str) -> Any:
        url = f"http://127.0.0.1:{self._port}/api/v1/{path}?{urllib.parse.urlencode(fields)}"
        try:
            with urllib.request.urlopen(url, timeout=START_S) as reply:
                return json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{fields}: {error.read().decode()}") from None

    def _is_ready(self) -> bool:
        try:
            url = f"http://127.0.0.1:{self._port}/-/ready"
            with urllib.request.urlopen(url, timeout=START_S) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False
