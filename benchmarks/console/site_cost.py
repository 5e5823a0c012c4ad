"""Measure the cost of a console with users, for a broker with many partitions and groups.

    python -m benchmarks.console.site_cost [--partitions 10000] [--groups 1000] [--seconds 60]
        [--ours .venv/compiled]

The console is a process with users and tokens, and reads the broker's metrics. Each viewer logs
in, and then does what a browser does: it waits for new snapshots and requests its page again.
Meanwhile a program changes a topic's config every ten seconds through the HTTP interface. The
benchmark measures, first with one viewer and then with ten, the CPU use of the broker and of the
console in percent of a core, and the console's memory; then the console's CPU time for each page.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode

from benchmarks.console.broker import fill, read_arguments, serving
from benchmarks.measurement.machine import cpu_seconds, resident_mb
from wirebroker.base.clock import SystemClock
from wirebroker.console.login.access_tokens import access_token_hash
from wirebroker.console.login.credential_file import Credential, write_credentials
from wirebroker.console.login.grants import grants_of
from wirebroker.console.login.password_hashes import hash_of
from wirebroker.console.model.settings import cluster_of_flag, open_client

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

_PASSWORD: Final = "a password of the benchmark"
_TOKEN: Final = "wbc_" + "benchmark" * 5
_CHANGE_EVERY_S: Final = 10.0
_PAGES: Final = ("", "topics", "groups", "clients", "quotas")
_VIEWED: Final = ("", "topics", "groups")
_REPEATS: Final = 15
_TIMEOUT_S: Final = 60.0


class ConsoleSite(NamedTuple):
    """A running console."""

    port: int
    process_id: int

    def connect(self) -> http.client.HTTPConnection:
        """Return a new connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT_S)

    def log_in(self, name: str) -> str:
        """Return the cookie of a new session."""
        connection = self.connect()
        connection.request("GET", "/login")
        reply = connection.getresponse()
        cookie = (reply.getheader("Set-Cookie") or "").partition(";")[0]
        token = re.search(r'name="csrf-token" value="([^"]+)"', reply.read().decode())
        assert token is not None
        form = {"csrf-token": token[1], "next": "/c/scale/", "name": name, "password": _PASSWORD}
        headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        headers["Origin"] = f"http://127.0.0.1:{self.port}"
        connection.request("POST", "/login", urlencode(form), headers)
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 303, reply.status
        connection.close()
        return (reply.getheader("Set-Cookie") or cookie).partition(";")[0]


@contextlib.contextmanager
def running_site(broker: str, metrics_url: str) -> Iterator[ConsoleSite]:
    """Run a console with users, a token and the broker's metrics."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        hashed = hash_of(_PASSWORD)
        users = [
            Credential(f"viewer{number}", hashed, grants_of("operator")) for number in range(10)
        ]
        write_credentials(folder / "users", users)
        token = Credential("program", access_token_hash(_TOKEN), grants_of("operator"))
        write_credentials(folder / "tokens", [token])
        (folder / "clusters").write_text(
            f"[scale]\nbootstrap.servers={broker}\nwirebroker.metrics.urls=1={metrics_url}\n"
        )
        command = [sys.executable, "-m", "wirebroker", "console", "--port", "0"]
        for flag in ("users", "tokens"):
            command += [f"--{flag}", str(folder / flag)]
        command += ["--config", str(folder / "clusters"), "--audit-log", str(folder / "audit.log")]
        command += ["--port-file", str(folder / "port")]
        process = subprocess.Popen(command)
        try:
            while not (folder / "port").exists():
                assert process.poll() is None, "it did not start"
                time.sleep(0.01)  # for another process's file
            yield ConsoleSite(int((folder / "port").read_text()), process.pid)
        finally:
            process.terminate()
            process.wait()


class Viewer(threading.Thread):
    """A logged-in browser with one page open."""

    def __init__(self, site: ConsoleSite, number: int) -> None:
        super().__init__(daemon=True)
        self._site = site
        self._cookie = site.log_in(f"viewer{number}")
        self._page = _VIEWED[number % len(_VIEWED)]
        self._events: http.client.HTTPResponse | None = None
        self.is_ending = False
        self.refreshes = 0

    def run(self) -> None:
        """Request the page again for each event."""
        site, headers = self._site, {"Cookie": self._cookie}
        events, pages = site.connect(), site.connect()
        events.request("GET", "/c/scale/events", headers=headers)
        self._events = events.getresponse()
        assert self._events.status == 200, self._events.status
        while (line := self._events.readline()) and not self.is_ending:
            if line.startswith(b"event: snapshot"):
                path = f"/c/scale/{self._page}"
                pages.request("GET", path, headers={**headers, "HX-Request": "true"})
                reply = pages.getresponse()
                reply.read()
                assert reply.status == 200, reply.status
                self.refreshes += 1
        events.close()
        pages.close()


def _change(site: ConsoleSite, number: int) -> None:
    body = json.dumps({"topic": "topic-1", "set": f"retention.ms={86_400_000 + number}"})
    headers = {"Authorization": f"Bearer {_TOKEN}", "Content-Type": "application/json"}
    connection = site.connect()
    path = "/api/v1/clusters/scale/changes/alter-topic-configs"
    connection.request("POST", path, body, headers)
    reply = connection.getresponse()
    content = reply.read()
    assert reply.status == 200, content
    connection.close()


def _measure(label: str, broker_id: int, site: ConsoleSite, seconds: float, count: int) -> None:
    viewers = [Viewer(site, number) for number in range(count)]
    for viewer in viewers:
        viewer.start()
    before = cpu_seconds(broker_id), cpu_seconds(site.process_id), time.perf_counter()
    changes = 0
    while (elapsed_s := time.perf_counter() - before[2]) < seconds:
        if elapsed_s >= changes * _CHANGE_EVERY_S:
            changes += 1
            _change(site, 100 * count + changes)
        time.sleep(0.2)  # until the next change or the end
    broker = 100 * (cpu_seconds(broker_id) - before[0]) / elapsed_s
    own = 100 * (cpu_seconds(site.process_id) - before[1]) / elapsed_s
    refreshes = sum(viewer.refreshes for viewer in viewers)
    for viewer in viewers:
        viewer.is_ending = True
    for viewer in viewers:
        viewer.join(_TIMEOUT_S)
    print(
        f"{label:14} broker {broker:5.2f} %, console {own:5.2f} %,"
        f" {resident_mb(site.process_id):4.0f} MiB, {refreshes} pages, {changes} changes",
        flush=True,
    )


def _measure_pages(site: ConsoleSite) -> None:
    headers = {"Cookie": site.log_in("viewer0")}
    connection = site.connect()
    for page in _PAGES:
        costs: list[float] = []
        size = 0
        for _ in range(_REPEATS):
            before = cpu_seconds(site.process_id)
            connection.request("GET", f"/c/scale/{page}", headers=headers)
            reply = connection.getresponse()
            size = len(reply.read())
            assert reply.status == 200, reply.status
            costs.append(1000 * (cpu_seconds(site.process_id) - before))
        print(
            f"{page or 'overview':14} median {statistics.median(costs):4.0f} ms of CPU, largest"
            f" {max(costs):4.0f} ms, {size >> 10} KiB"
        )
    connection.close()


async def _fill(address: str, arguments: argparse.Namespace) -> None:
    async with open_client(cluster_of_flag(f"fill={address}"), SystemClock()) as client:
        await fill(client, arguments.partitions, arguments.groups)


def _idle(broker_id: int, seconds: float) -> float:
    before, began = cpu_seconds(broker_id), time.perf_counter()
    time.sleep(seconds)  # the period that is measured
    return 100 * (cpu_seconds(broker_id) - before) / (time.perf_counter() - began)


def main() -> None:
    arguments = read_arguments(__doc__)
    http_port = 19_404
    metrics = {"wirebroker.http.listeners": f"127.0.0.1:{http_port}"}
    with serving(arguments.ours, metrics) as (address, broker_id):
        asyncio.run(_fill(address, arguments))
        print(f"{arguments.partitions} partitions, {arguments.groups} groups")
        print(f"{'no console':14} broker {_idle(broker_id, arguments.seconds):5.2f} %", flush=True)
        url = f"http://127.0.0.1:{http_port}/metrics"
        with running_site(address, url) as site:
            _measure("first minute", broker_id, site, arguments.seconds, 2)
            for count in (1, 10):
                label = f"{count} viewer{'s' if count > 1 else ''}"
                _measure(label, broker_id, site, arguments.seconds, count)
            _measure_pages(site)
            print(f"memory {resident_mb(site.process_id):.0f} MiB")


if __name__ == "__main__":
    main()
