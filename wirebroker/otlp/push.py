"""The broker's side of OTLP: the page of metrics, at intervals, to a process that sends it on.

    loop: page of /metrics  ──►  process (sending.py): OpenTelemetry's library, HTTP  ──►  collector
                            ◄──  a line for each: sent, or why not

The library makes objects and protobuf of every number, and waits for the collector: in a thread of
the broker that would take the interpreter's lock from the loop. One page is on its way at a time;
what can't be sent is warned of once, and sent anew with the next page, since counts are totals.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from importlib import metadata
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from wirebroker.base.clock import pause
from wirebroker.base.python_child import start_module
from wirebroker.config import ConfigError, StartError
from wirebroker.metrics.scrape import Scrape
from wirebroker.otlp.frames import SENT, encode_page

if TYPE_CHECKING:
    from wirebroker.metrics.scrape import Scraped

logger = logging.getLogger("wirebroker.otlp")

ENDPOINT: Final = "wirebroker.otlp.endpoint"
_INTERVAL: Final = "wirebroker.otlp.interval.ms"
_LIBRARY: Final = "opentelemetry-exporter-otlp-proto-http"
_PATH: Final = "/v1/metrics"
# The library gives up before, as OTEL_EXPORTER_OTLP_TIMEOUT says.
_LONGEST_SILENCE_S: Final = 120.0
_END_S: Final = 2.0


def endpoint_of(text: str) -> str:
    """Return where metrics are posted: a collector's address has the usual path put behind it.

    Raises:
        ConfigError: It is no address.
    """
    path = ""
    try:
        parts = urlsplit(text)
        path = parts.path
        is_address = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # a port beyond 65535, a bracket without its other
        is_address = False
    if not is_address:
        raise ConfigError(f"{ENDPOINT}={text} cannot be used: write http://HOST:4318")
    return text if path.strip("/") else f"{text.rstrip('/')}{_PATH}"


class MetricsPush:
    """Sends one broker's metrics from `start` to `close`."""

    __slots__ = (
        "_endpoint",
        "_interval_s",
        "_is_failing",
        "_process",
        "_scrape",
        "_server",
        "_task",
    )

    def __init__(self, server: Scraped) -> None:
        """Take the broker, whose configuration has an endpoint.

        Raises:
            ConfigError: That is no address.
            StartError: The library is not there.
        """
        self._endpoint = endpoint_of(server.config.str(ENDPOINT))
        self._interval_s = server.config.int(_INTERVAL) / 1000
        try:
            metadata.version(_LIBRARY)
        except metadata.PackageNotFoundError:
            what = f"{ENDPOINT} needs OpenTelemetry's library, which is not installed"
            raise StartError(what, "pip install 'wirebroker[otlp]'") from None
        self._server = server
        self._scrape = Scrape(server)
        self._is_failing = False
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; the first page is sent as soon as clients are served."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """End it, and the process."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._end_process()

    async def _run(self) -> None:
        """Send page after page; the root of a task."""
        while True:
            if self._server.broker is not None:
                try:
                    await self._push()
                except Exception:  # the root of a task: the next page is tried
                    logger.exception("a page of metrics could not be made or sent")
                await pause(self._interval_s)
            else:
                await pause(min(1.0, self._interval_s))

    async def _push(self) -> None:
        """Send one page, and tell once that it fails, or goes well again."""
        try:
            said = await self._sent(await self._scrape.page())
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            said = f"the process that sends them has failed: {error or type(error).__name__}"
            await self._end_process()
        if said == SENT:
            if self._is_failing:
                logger.info("metrics are sent to %s again", self._endpoint)
        elif not self._is_failing:
            logger.warning("metrics cannot be sent to %s: %s", self._endpoint, said)
        self._is_failing = said != SENT

    async def _sent(self, page: bytes) -> str:
        """Hand a page to the process; return SENT, or why it could not be sent.

        Raises:
            OSError: There is no process to be had, or it has ended.
            EOFError: It has ended meanwhile.
            TimeoutError: It does not answer.
            ValueError: It answers with no line.
        """
        if self._process is None:
            broker = self._server.broker
            assert broker is not None, "it is served"
            now_ms = self._server.clock.now_ms()
            self._process = await start_module(
                "wirebroker.otlp.sending", self._endpoint, str(broker.node_id), str(now_ms)
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        async with asyncio.timeout(_LONGEST_SILENCE_S):
            process.stdin.write(encode_page(page))
            await process.stdin.drain()
            line = await process.stdout.readline()
        if not line:
            raise EOFError(f"it ended with status {await process.wait()}")
        return line.decode(errors="replace").strip()

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_END_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
