"""Fixtures: a browser, and the console of a cluster with content, one of each for a module."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from compat_tests.console.cluster_content import furnished
from compat_tests.console.console_site import SCREENSHOTS, Screen, running_console
from compat_tests.support.tools_browser import browser_command
from tests.support.brokers.brokers import AUTHORIZED, broker_under_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    from tests.support.brokers.brokers import Broker

    OpenScreen = Callable[..., Screen]

_TIMEOUT_MS = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium; the driver's event loop would disturb other modules' tests."""
    command = browser_command()
    if command is None:
        pytest.skip("needs a Chromium (Debian: apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        # Chromium's sandbox cannot be used by root.
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        running = playwright.chromium.launch(executable_path=command, args=flags)
        yield running
        running.close()


@pytest.fixture(scope="module")
def furnished_broker(
    broker_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """Run a broker with an authorizer, or use the running one that COMPAT_BROKER names."""
    with broker_under_test(broker_kind, tmp_path_factory.mktemp("broker"), AUTHORIZED) as broker:
        yield broker


@pytest.fixture(scope="module")
def site(furnished_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the console of a furnished broker, next to a cluster that does not respond."""
    folder = tmp_path_factory.mktemp("console")
    with (
        furnished(furnished_broker.bootstrap),
        running_console(
            folder,
            *("--cluster", f"dev={furnished_broker.bootstrap}"),
            *("--cluster", "lost=127.0.0.1:1"),
        ) as address,
    ):
        yield address


@pytest.fixture
def producer(furnished_broker: Broker) -> Producer:
    """Return a producer."""
    return Producer({"bootstrap.servers": furnished_broker.bootstrap})


@pytest.fixture
def open_screen(browser: Browser, site: str, broker_kind: str) -> Iterator[OpenScreen]:
    """Open pages of a given width and theme; a test fails if one of them logs an error."""
    screens: list[Screen] = []

    def open_page(path: str = "/c/dev/", *, width: int = 1280, theme: Any = "light") -> Screen:
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme=theme,
            timezone_id="Europe/Berlin",
            reduced_motion="reduce",
        )
        context.set_default_timeout(_TIMEOUT_MS)
        screen = Screen(context.new_page(), site, SCREENSHOTS / broker_kind)
        screens.append(screen)
        screen.open(path)
        return screen

    yield open_page
    for screen in screens:
        screen.page.context.close()
    assert [error for screen in screens for error in screen.errors] == []
