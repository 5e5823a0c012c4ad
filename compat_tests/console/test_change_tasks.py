"""What people change with the console: each task takes at most six clicks from the overview."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from compat_tests.console.cluster_content import IDLE_OFFSET, TRACE

if TYPE_CHECKING:
    from playwright.sync_api import Locator

    from compat_tests.console.conftest import OpenScreen
    from compat_tests.console.console_site import Screen
    from tests.support.brokers.brokers import Broker

_SEARCH_MS = 180_000
_MOST_CLICKS = 6


class Clicks:
    """Clicks on a screen, counted."""

    def __init__(self, screen: Screen) -> None:
        self.count = 0
        self._page = screen.page

    def link(self, name: str, *, within: str = "body") -> None:
        self._click(self._page.locator(within).get_by_role("link", name=name, exact=True))

    def button(self, name: str) -> None:
        self._click(self._page.get_by_role("button", name=name, exact=True))

    def on(self, selector: str) -> None:
        self._click(self._page.locator(selector))

    def _click(self, element: Locator) -> None:
        element.click()
        self.count += 1
        assert self.count <= _MOST_CLICKS


def test_a_message_is_found_by_its_header_and_sent_again(open_screen: OpenScreen):
    screen = open_screen()
    page, clicks = screen.page, Clicks(screen)
    clicks.link("Topics")
    clicks.link("messages", within="tr:has(a:text-is('orders'))")
    page.get_by_label("Header name").fill("trace-id")
    page.get_by_label("Header value").fill(TRACE)
    page.keyboard.press("Enter")
    page.locator("#progress").get_by_text("Finished").wait_for(timeout=_SEARCH_MS)
    clicks.on(".record summary")
    clicks.link("Edit and resend")
    value = page.locator("#field-value")
    assert json.loads(value.input_value())["id"] == 1234
    assert f"trace-id={TRACE}" in page.locator("#field-headers").input_value()
    assert screen.accessibility_faults() == []
    screen.shoot("resend-form")
    clicks.button("Show what it does")
    page.get_by_text("wirebroker produce").wait_for()
    assert screen.accessibility_faults() == []
    screen.shoot("resend-plan")
    clicks.button("Edit and resend a record")
    page.get_by_text("Stored in orders-").wait_for()


def test_the_retention_of_a_topic_is_raised(open_screen: OpenScreen):
    screen = open_screen()
    page, clicks = screen.page, Clicks(screen)
    clicks.link("Topics")
    clicks.link("orders")
    clicks.link("Configs")
    clicks.link("Change retention.ms")
    field = page.locator("#field-set")
    assert field.input_value() == "retention.ms=86400000"
    field.fill("retention.ms=172800000")
    clicks.button("Show what it does")
    page.get_by_text("retention.ms: 86400000 = 1 d → 172800000 = 2 d").wait_for()
    screen.shoot("configs-plan")
    clicks.button("Change configs of a topic")
    page.get_by_text("1 config of topic orders changed.").wait_for()
    screen.open("/c/dev/topic/configs?name=orders")
    page.get_by_text("172800000").wait_for()


def test_a_group_is_seen_to_lag_and_its_offsets_are_moved(
    open_screen: OpenScreen, furnished_broker: Broker
):
    lag = _records_of_orders(furnished_broker.bootstrap) - 6 * IDLE_OFFSET
    waiting = f"It has no members, and {lag} records wait."
    screen = open_screen()
    page, clicks = screen.page, Clicks(screen)
    clicks.link("Groups")
    clicks.link("billing")
    page.get_by_text(waiting).wait_for()
    clicks.link("Reset offsets")
    page.get_by_label("Move to").select_option("end")
    clicks.button("Show what it does")
    page.get_by_text("Move 6 offsets of group billing to the end.").wait_for()
    assert screen.accessibility_faults() == []
    screen.shoot("reset-plan")
    clicks.link("Cancel")
    page.get_by_text(waiting).wait_for()


def _records_of_orders(bootstrap: str) -> int:
    """Return the records of topic orders; other tasks of this file write some."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "counts"})
    try:
        partitions = (TopicPartition("orders", number) for number in range(6))
        return sum(consumer.get_watermark_offsets(partition, 30)[1] for partition in partitions)
    finally:
        consumer.close()


# --- every form ---

FORMS = (
    ("create-topic", ""),
    ("add-partitions", "topic=orders"),
    ("empty-topic", "topic=orders"),
    ("trim-topic", "topic=orders"),
    ("delete-topic", "topic=orders"),
    ("delete-topics", "topics=orders&topics=payments"),
    ("alter-broker-loggers", "broker=1"),
    ("alter-topic-configs", "topic=orders"),
    ("alter-broker-configs", "broker=all"),
    ("alter-group-configs", "group=billing"),
    ("alter-client-metrics", ""),
    ("produce-record", "topic=orders"),
    (
        "resend-record",
        "source_topic=orders&source_partition=0&source_offset=1&topic=orders",
    ),
    ("copy-records", "source=orders"),
    ("reset-offsets", "group=billing"),
    ("delete-group", "group=billing"),
    ("delete-offsets", "group=billing"),
    ("remove-members", "group=warehouse"),
)
_EACH_DAY = {"create-topic", "resend-record"}


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        pytest.param(*form, id=form[0], marks=() if form[0] in _EACH_DAY else pytest.mark.nightly)
        for form in FORMS
    ],
)
def test_a_form_is_accessible_and_fits_narrow_screens(
    open_screen: OpenScreen, kind: str, query: str
):
    screen = open_screen(f"/c/dev/change/{kind}?{query}")
    page = screen.page
    page.get_by_role("button", name="Show what it does").wait_for()
    assert screen.accessibility_faults() == []
    screen.shoot(f"form-{kind}-light")
    page.emulate_media(color_scheme="dark")
    assert screen.accessibility_faults(["color-contrast"]) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert screen.overflow() == 0
    screen.shoot(f"form-{kind}-360")
