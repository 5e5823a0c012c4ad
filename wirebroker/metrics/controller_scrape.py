"""The route /metrics of a process that is only a controller."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol

from wirebroker.base.clock import Slices
from wirebroker.base.threads import Work, in_thread
from wirebroker.base.version import version_text
from wirebroker.http.message import HttpAnswer
from wirebroker.metrics.broker_rows import BUILD_ROWS
from wirebroker.metrics.cluster_page import add_cluster
from wirebroker.metrics.page import CONTENT_TYPE, Page, label_texts
from wirebroker.metrics.process_facts import PROCESS_ROWS, read_process_facts
from wirebroker.metrics.raft_rows import add_raft

if TYPE_CHECKING:
    from wirebroker.base.clock import Clock
    from wirebroker.config import Config
    from wirebroker.http.message import HttpRequest
    from wirebroker.http.routes import Routes
    from wirebroker.quorum.controller.quorum_controller import QuorumController

_NO_LABELS: Final = label_texts(())


class ScrapedController(Protocol):
    """The parts of the server that a scrape needs."""

    config: Config
    clock: Clock

    @property
    def controller(self) -> QuorumController | None:
        """The controller, once it is open."""
        ...


def add_controller_metrics(routes: Routes, server: ScrapedController) -> None:
    """Add the route. One scrape runs at a time."""
    lock = asyncio.Lock()

    async def metrics(_request: HttpRequest) -> HttpAnswer:
        async with lock:
            return HttpAnswer(await _page(server), content_type=CONTENT_TYPE)

    routes.add("GET", "/metrics", metrics)


async def _page(server: ScrapedController) -> bytes:
    page = Page(server.config.list("wirebroker.metrics.dialects"))
    slices = Slices(server.clock)
    build = label_texts((("version", version_text()),))
    await slices.run(page.add(BUILD_ROWS, [(build, None)]))
    process = await in_thread(Work.UPKEEP, read_process_facts)
    if process is not None:
        await slices.run(page.add(PROCESS_ROWS, [(_NO_LABELS, process)]))
    controller = server.controller
    if controller is not None:
        image = controller.follower.image
        await add_cluster(page, image, slices, is_controller=controller.is_active)
        await add_raft(page, controller.figures(), slices)
    return page.text()
