"""Every screen: it has its content, logs no error, fits a phone, and axe finds no fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from compat_tests.console.conftest import OpenScreen

# Name, address, and a text that it must show.
SCREENS = [
    ("clusters", "/", "lost"),
    ("overview", "/c/dev/", "Records written per second"),
    ("brokers", "/c/dev/brokers", "running"),
    ("broker", "/c/dev/broker?id=1&all=1", "log.retention.hours"),
    ("loggers", "/c/dev/broker/loggers?id=1", "root"),
    ("quorum", "/c/dev/quorum", "leader"),
    ("topics", "/c/dev/topics?internal=1", "__consumer_offsets"),
    ("topics-selected", "/c/dev/topics?select=1", "Delete the selected topics"),
    ("topic", "/c/dev/topic?name=orders", "warehouse"),
    ("written", "/c/dev/topic/written?name=orders&from=7d", "about 3,0"),
    ("configs", "/c/dev/topic/configs?name=orders", "retention.ms"),
    ("messages", "/c/dev/topic/messages?name=orders", "customer-"),
    ("messages-binary", "/c/dev/topic/messages?name=inventory", "deleted"),
    ("record", "/c/dev/topic/record?name=orders&partition=0&offset=1", "trace-id"),
    ("search", "/c/dev/topic/messages?name=orders&jsonpath=$.order.total+>+390", "Finished"),
    ("groups", "/c/dev/groups", "billing"),
    ("group", "/c/dev/group?name=warehouse", "warehouse-1"),
    ("group-idle", "/c/dev/group?name=billing", "no members"),
    ("transactions", "/c/dev/transactions", "payments-writer-1"),
    ("reassignments", "/c/dev/reassignments", "No replicas are being moved."),
    ("acls", "/c/dev/acls", "User:anna"),
    ("users", "/c/dev/users", "SCRAM-SHA-512"),
    ("quotas", "/c/dev/quotas", "producer_byte_rate"),
    ("failed", "/c/lost/", "The cluster does not respond"),
    ("missing", "/c/dev/topic?name=none", "There is no topic"),
]
# The others look the same to a browser; the nightly run has them.
_EACH_DAY = {
    "overview",
    "topics",
    "messages",
    "record",
    "group",
    "failed",
    "written",
    "topics-selected",
    "quotas",
}
_CASES = [
    pytest.param(*screen, id=screen[0], marks=() if screen[0] in _EACH_DAY else pytest.mark.nightly)
    for screen in SCREENS
]


@pytest.fixture(scope="module", autouse=True)
def _values_are_there(browser, site) -> None:
    """Wait until the console has read the cluster, and tried the lost one."""
    page = browser.new_page()
    for address, text in (
        ("/c/dev/group?name=warehouse", "warehouse-1"),
        ("/c/lost/", "no broker"),
    ):
        page.goto(site + address)
        page.get_by_text(text).first.wait_for(timeout=60_000)
    page.close()


@pytest.mark.parametrize(("name", "path", "text"), _CASES)
def test_a_screen_shows_its_content_and_is_accessible(
    open_screen: OpenScreen, name: str, path: str, text: str
):
    screen = open_screen(path)
    page = screen.page
    page.get_by_text(text).first.wait_for()
    assert screen.accessibility_faults() == []
    screen.shoot(f"{name}-light")
    page.emulate_media(color_scheme="dark")
    assert screen.accessibility_faults(["color-contrast"]) == []
    screen.shoot(f"{name}-dark")
    page.set_viewport_size({"width": 360, "height": 740})
    assert screen.overflow() == 0
    screen.shoot(f"{name}-360")
    if name == "missing":
        screen.errors.clear()  # Chromium logs the status 404
