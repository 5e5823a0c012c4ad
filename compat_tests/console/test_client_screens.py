"""The pages of client connections and used quotas, in a browser, on both brokers."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from compat_tests.console.console_site import SCREENSHOTS, Screen, running_console
from compat_tests.support.kafka_with_exporter import KafkaWithExporter
from tests.support.brokers.brokers import Wirebroker
from tests.support.tools.ports import HOST, free_port
from wirebroker.base.clock import SystemClock
from wirebroker.client.configs.quotas import alter_quotas
from wirebroker.console.model.settings import cluster_of_flag, open_client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

_TIMEOUT_MS = 60_000


@contextlib.contextmanager
def metered_broker(kind: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Run a broker; yield its address and its metrics page."""
    if kind == "apache":
        with KafkaWithExporter(folder) as kafka:
            yield kafka.bootstrap, kafka.metrics_url
        return
    address = f"{HOST}:{free_port()}"
    with Wirebroker(folder, {"wirebroker.http.listeners": address}) as broker:
        yield broker.bootstrap, f"http://{address}/metrics"


async def set_quotas(bootstrap: str) -> None:
    async with open_client(cluster_of_flag(f"c={bootstrap}"), SystemClock()) as client:
        await alter_quotas(client, {"user": "ANONYMOUS"}, {"producer_byte_rate": 2_000_000.0})
        await alter_quotas(client, {"client-id": "idle"}, {"consumer_byte_rate": 1_000_000.0})


@contextlib.contextmanager
def producing(bootstrap: str) -> Iterator[None]:
    """Write records while the context lasts."""
    has_ended = threading.Event()

    def produce() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "client.id": "shop"})
        while not has_ended.wait(0.1):
            producer.produce("orders", b"x" * 20_000)
            producer.flush(10)

    with ThreadPoolExecutor(1) as thread:
        written = thread.submit(produce)
        try:
            yield
        finally:
            has_ended.set()
            written.result(30)


@pytest.fixture(scope="module")
def metered_site(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the console of a broker with traffic, quotas and a metrics page."""
    folder = tmp_path_factory.mktemp("metered")
    with metered_broker(broker_kind, folder / "broker") as (bootstrap, metrics_url):
        # In a thread: this one may run the event loop of a browser's driver.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, set_quotas(bootstrap)).result()
        file = folder / "clusters"
        file.write_text(
            f"[dev]\nbootstrap.servers={bootstrap}\nwirebroker.metrics.urls=1={metrics_url}\n"
            f"[lost]\nbootstrap.servers={bootstrap}\nwirebroker.metrics.urls=1=http://{HOST}:1\n"
            f"[plain]\nbootstrap.servers={bootstrap}\n"
        )
        with (
            producing(bootstrap),
            running_console(folder / "console", "--config", str(file)) as address,
        ):
            yield address


def opened(browser: Browser, site: str, kind: str, path: str) -> Screen:
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme="light", reduced_motion="reduce"
    )
    context.set_default_timeout(_TIMEOUT_MS)
    screen = Screen(context.new_page(), site, SCREENSHOTS / kind)
    screen.open(path)
    return screen


def wait_for(page: Page, text: str) -> None:
    """Wait for a text; pages that do not refresh themselves are loaded again."""
    for _ in range(30):
        if page.get_by_text(text).count():
            return
        page.wait_for_timeout(1000)
        page.reload()
    page.get_by_text(text).first.wait_for()


SCREENS = {
    "clients": ("/c/dev/clients", "confluent-kafka-python"),
    "quotas-in-use": ("/c/dev/quotas", "in use,"),
    "clients-lost": ("/c/lost/clients", "does not respond"),
}


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_shows_its_content_and_is_accessible(browser, metered_site, broker_kind, name):
    path, text = SCREENS[name]
    screen = opened(browser, metered_site, broker_kind, path)
    page = screen.page
    wait_for(page, text)
    assert screen.accessibility_faults() == []
    screen.shoot(f"{name}-light")
    page.emulate_media(color_scheme="dark")
    assert screen.accessibility_faults(["color-contrast"]) == []
    screen.shoot(f"{name}-dark")
    page.set_viewport_size({"width": 360, "height": 740})
    assert screen.overflow() == 0
    assert screen.accessibility_faults() == []
    screen.shoot(f"{name}-360")
    page.context.close()
    assert screen.errors == []


def test_the_client_list_is_reached_and_sorted_by_keyboard(browser, metered_site, broker_kind):
    screen = opened(browser, metered_site, broker_kind, "/c/dev/")
    page = screen.page
    page.get_by_role("link", name="Clients").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/clients")
    wait_for(page, "confluent-kafka-python")
    header = page.get_by_role("columnheader", name="Client software")
    header.get_by_role("link").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**sort=software*")
    assert header.get_attribute("aria-sort") == "ascending"
    page.get_by_role("searchbox").focus()
    page.keyboard.type("no such client")
    page.get_by_text("No kinds of clients with").wait_for()
    page.context.close()
    assert screen.errors == []


def test_a_cluster_without_addresses_has_no_client_list(browser, metered_site, broker_kind):
    screen = opened(browser, metered_site, broker_kind, "/c/plain/quotas")
    page = screen.page
    wait_for(page, "wirebroker.metrics.urls")
    assert page.get_by_role("link", name="Clients").count() == 0
    assert page.get_by_text("in use").count() == 0
    page.context.close()
    assert screen.errors == []
