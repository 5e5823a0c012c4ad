"""A service gets an ACL, and a partition is moved: at most six clicks from the overview."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.console.console_site import SCREENSHOTS, Screen, running_console
from compat_tests.console.test_change_tasks import Clicks
from tests.support.tools.waiting import eventually
from wirebroker.base.clock import SystemClock
from wirebroker.client.replicas.reassignments import replicas_of
from wirebroker.client.security.acls import AccessRule, RuleFilter, list_acls
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.topics.topics import create_topics
from wirebroker.console.model.settings import cluster_of_flag, open_client
from wirebroker.testing import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from playwright.sync_api import Browser

    from compat_tests.console.conftest import OpenScreen
    from tests.support.brokers.brokers import Broker
    from wirebroker.client.kafka_client import KafkaClient

_TIMEOUT_MS = 60_000


def asked(bootstrap: str, question: Callable[[KafkaClient], Coroutine[Any, Any, Any]]) -> Any:
    """Ask a cluster in a thread: this one may run the event loop of a browser's driver."""

    async def ask() -> Any:
        async with open_client(cluster_of_flag(f"c={bootstrap}"), SystemClock()) as client:
            return await question(client)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, ask()).result()


def test_a_service_gets_an_acl(open_screen: OpenScreen, furnished_broker: Broker):
    screen = open_screen()
    page, clicks = screen.page, Clicks(screen)
    clicks.link("ACLs")
    clicks.link("Let a service consume")
    for field, value in (("principal", "User:reports"), ("topic", "orders"), ("group", "reports")):
        page.locator(f"#field-{field}").fill(value)
    clicks.button("Show what it does")
    page.get_by_text("User:reports gains read, describe on topic orders").wait_for()
    assert screen.accessibility_faults() == []
    screen.shoot("change-acl", is_whole=True)
    clicks.button("Let a service consume")
    page.get_by_text("3 ACLs added").wait_for()
    rules = asked(
        furnished_broker.bootstrap,
        lambda client: list_acls(client, RuleFilter(principal="User:reports")),
    )
    read = AccessRule("topic", "orders", "literal", "User:reports", "*", "read", "allow")
    assert read in rules
    screen.open("/c/dev/acls/check")
    page.get_by_label("May", exact=True).fill("User:reports")
    page.get_by_label("with the name").fill("orders")
    page.get_by_role("button", name="Check").click()
    page.get_by_role("heading", name="Yes").wait_for()
    page.get_by_text("allow User:reports to read on topic orders").wait_for()
    assert screen.accessibility_faults() == []
    screen.shoot("acl-check")


@pytest.fixture(scope="module")
def three_brokers() -> Iterator[str]:
    """Run three brokers with a topic on two of them."""
    with Cluster() as cluster:
        bootstrap = cluster.bootstrap_servers
        assignment = [(0, 1), (1, 0)]
        asked(
            bootstrap,
            lambda client: create_topics(client, {"orders": -1}, configs={}, assignment=assignment),
        )
        yield bootstrap


def test_a_partition_is_moved(
    browser: Browser, three_brokers: str, tmp_path_factory: pytest.TempPathFactory
):
    folder = tmp_path_factory.mktemp("console")
    with running_console(folder, "--cluster", f"dev={three_brokers}") as address:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(_TIMEOUT_MS)
        screen = Screen(context.new_page(), address, SCREENSHOTS / "wirebroker")
        page, clicks = screen.page, Clicks(screen)
        screen.open("/c/dev/")
        clicks.link("Topics")
        clicks.link("orders")
        clicks.link("Move partition 1")
        page.locator("#field-replicas").fill("2,0")
        clicks.button("Show what it does")
        page.get_by_text("orders-1: brokers 1, 0 → 2, 0").wait_for()
        screen.shoot("change-move", is_whole=True)
        clicks.button("Move a partition")
        page.get_by_text("1 move started").wait_for()
        assert screen.errors == []
        context.close()
    moved = TopicPartition("orders", 1)
    eventually(
        lambda: (
            asked(three_brokers, lambda client: replicas_of(client, ["orders"]))[moved] == [2, 0]
        )
    )
