"""What people do with the console, by mouse and by keyboard, from the overview on."""

from __future__ import annotations

import csv
import io
import json
import time
from typing import TYPE_CHECKING

import pytest

from compat_tests.console.cluster_content import EVIL, ORDERS, TRACE
from tests.support.tools.waiting import PATIENCE_S, eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page, Route

    from compat_tests.console.conftest import OpenScreen
    from compat_tests.console.console_site import Screen

# A search by JSONPath reads 12,000 to 60,000 records a second on a busy machine.
_SEARCH_MS = 180_000
SSE = "text/event-stream"


def finished(screen: Screen) -> str:
    """Wait for the end of a search, and return its line of progress."""
    progress = screen.page.locator("#progress").get_by_text("Finished")
    progress.wait_for(timeout=_SEARCH_MS)
    return progress.inner_text()


def downloaded(screen: Screen, link: str) -> str:
    with screen.page.expect_download() as download:
        screen.page.get_by_role("link", name=link).click()
    return download.value.path().read_text(encoding="utf-8")


def stop_at_first_record(page: Page, producer, *texts: str) -> int:
    """Write records until a live tail shows one, and stop it; return how many were written."""
    written = 0

    def is_shown() -> bool:
        nonlocal written
        for text in texts:
            producer.produce("tailed", text)
        producer.flush(10)
        written += len(texts)
        return page.locator(".record").count() > 0

    eventually(is_shown, poll_s=0.3)
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped.").wait_for()
    return written


def eventually_on(page: Page, condition: Callable[[], bool]) -> None:
    """Wait until the condition is true, and receive the page's events meanwhile.

    In contrast to `page.wait_for_function`, whose repeated evaluations the pages' policy blocks.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not true after {PATIENCE_S:.0f} s"
        page.wait_for_timeout(50)


def test_three_clicks_show_why_a_group_lags(open_screen: OpenScreen):
    screen = open_screen()
    page = screen.page
    page.get_by_role("link", name="Groups").click()
    page.get_by_role("link", name="Lag", exact=True).click()
    page.get_by_role("link", name="billing").click()
    page.get_by_text("It has no members, and 2940 records wait.").wait_for()
    assert "Start its consumers" in page.locator(".banner").inner_text()


def test_one_message_is_found_by_its_header(open_screen: OpenScreen):
    screen = open_screen()
    page = screen.page
    page.get_by_role("link", name="Topics").click()
    page.get_by_role("link", name="orders").click()
    page.get_by_role("link", name="Messages").click()
    page.get_by_label("Header name").fill("trace-id")
    page.get_by_label("Header value").fill(TRACE)
    page.get_by_role("button", name="Show").click()
    assert finished(screen).startswith(f"Finished: 1 hit in {ORDERS:,} of {ORDERS:,} records")
    page.locator(".record summary").click()
    page.locator(".record-body").get_by_text(TRACE).wait_for()
    assert '"id": 1234' in page.get_by_label("Value as JSON").inner_text()


def test_newest_records_until_a_time_are_shown(open_screen: OpenScreen):
    screen = open_screen("/c/dev/topic/messages?name=orders")
    page = screen.page
    page.get_by_text("More filters").click()
    page.get_by_label("Until (UTC)").fill("2001-01-01T00:00")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("There are no records here.").wait_for()
    page.get_by_label("Until (UTC)").fill("2100-01-01T00:00")
    page.get_by_role("button", name="Show").click()
    page.locator(".record").first.wait_for()
    page.get_by_label("Until (UTC)").fill("noon")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("'noon' is not a time").wait_for()
    assert screen.errors == []


def test_a_tail_shows_only_matching_records(open_screen: OpenScreen, producer):
    screen = open_screen("/c/dev/topic/messages?name=tailed")
    page = screen.page
    page.get_by_label("Contains").fill("wanted")
    page.get_by_role("button", name="Live tail").click()
    page.get_by_text("Waiting for new records that match.").wait_for()
    stop_at_first_record(page, producer, "other record", "wanted record", "another record")
    values = page.locator(".record .value").all_inner_texts()
    assert set(values) == {"wanted record"}


def test_topics_are_selected_by_keyboard_to_be_deleted(open_screen: OpenScreen):
    screen = open_screen("/c/dev/topics")
    page = screen.page
    page.get_by_role("link", name="Select topics to delete").press("Enter")
    for name in ("tailed", "payments"):
        page.get_by_role("checkbox", name=f"Select {name}", exact=True).press("Space")
    assert screen.accessibility_faults() == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert screen.overflow() == 0
    page.get_by_role("button", name="Delete the selected topics").press("Enter")
    assert page.get_by_label("Topics", exact=True).input_value() == "payments\ntailed"
    page.get_by_label("Number of topics").fill("2")
    page.keyboard.press("Enter")
    page.get_by_text("topic delete").wait_for()
    assert "payments: delete 1 partition with all its records" in page.locator("main").inner_text()
    assert screen.errors == []


@pytest.mark.nightly
def test_hits_of_a_search_by_json_are_downloaded(open_screen: OpenScreen):
    screen = open_screen("/c/dev/topic/messages?name=orders&jsonpath=$.order.total+>+390")
    finished(screen)
    hits = screen.page.locator(".record").count()
    lines = [json.loads(line) for line in downloaded(screen, "JSON lines").splitlines()]
    assert len(lines) == hits > 0
    rows = list(csv.reader(io.StringIO(downloaded(screen, "CSV"))))
    assert len(rows) == hits + 1


def test_stop_button_disappears_when_a_search_ends(open_screen: OpenScreen):
    screen = open_screen("/c/dev/topic/messages?name=orders&text=customer-1&limit=20")
    finished(screen)
    screen.page.get_by_role("button", name="Stop").wait_for(state="detached")
    assert screen.errors == []


def test_a_search_begins_if_a_script_arrives_late(open_screen: OpenScreen):
    screen = open_screen()
    page = screen.page
    late: list[Route] = []

    def hold(route: Route) -> None:
        late.append(route)

    page.route("**/static/hx-sse.min.js?**", hold)
    address = screen.address + "/c/dev/topic/messages?name=orders&text=customer-1"
    page.goto(address, wait_until="commit")
    eventually_on(page, lambda: page.evaluate("window.htmx !== undefined"))
    # A deferred htmx would have started by now, without its extension.
    page.wait_for_timeout(200)
    eventually_on(page, lambda: bool(late))
    (route,) = late
    route.continue_()
    finished(screen)
    assert screen.errors == []


def test_a_tail_that_loses_its_connection_says_so(open_screen: OpenScreen, producer):
    screen = open_screen()
    page = screen.page
    # A response of server-sent events that ends without the event "done".
    page.route("**/topic/tail?**", lambda route: route.fulfill(body=": lost\n\n", content_type=SSE))
    screen.open("/c/dev/topic/messages?name=tailed&live=1")
    page.get_by_text("The connection ended. Reload the page to go on.").wait_for()
    assert page.get_by_role("button", name="Stop").count() == 0
    assert screen.errors == []


def test_a_search_that_is_refused_says_why(open_screen: OpenScreen):
    screen = open_screen()
    page = screen.page
    refused = {"status": 503, "body": "8 searches are running.", "content_type": "text/plain"}
    page.route("**/topic/search?**", lambda route: route.fulfill(**refused))
    screen.open("/c/dev/topic/messages?name=orders&text=none")
    page.get_by_text("8 searches are running.").wait_for()
    assert page.get_by_role("button", name="Stop").count() == 0
    # Chromium logs the status.
    assert all("503" in error for error in screen.errors)
    screen.errors.clear()


@pytest.mark.nightly
def test_a_tail_shows_new_records_until_it_is_stopped(open_screen: OpenScreen, producer):
    screen = open_screen("/c/dev/topic/messages?name=tailed")
    page = screen.page
    page.get_by_role("button", name="Live tail").click()
    page.get_by_text("Waiting for new records.").wait_for()
    written = stop_at_first_record(page, producer, "new")
    shown = page.locator(".record").count()
    producer.produce("tailed", "after")
    producer.flush(10)
    page.reload()
    page.get_by_role("button", name="Stop").wait_for()
    assert shown <= written


@pytest.mark.nightly
def test_pages_of_records_lead_to_older_ones(open_screen: OpenScreen):
    screen = open_screen("/c/dev/topic/messages?name=orders&partition=0&limit=20")
    page = screen.page
    seen: list[str] = []
    for _ in range(3):
        seen += page.locator(".record .place").all_inner_texts()
        page.get_by_role("link", name="Older records").click()
    offsets = [int(text.rpartition("offset")[2]) for text in seen]
    assert offsets == list(range(offsets[0], offsets[0] - 60, -1))


@pytest.mark.nightly
def test_a_list_is_filtered_while_typing(open_screen: OpenScreen):
    screen = open_screen("/c/dev/topics")
    page = screen.page
    field = page.get_by_label("Part of a topic's name")
    field.press_sequentially("inven")
    page.get_by_text("1 to 1 of 1 topics").wait_for()
    assert field.input_value() == "inven"
    assert "q=inven" in page.url


def test_the_console_can_be_used_by_keyboard_alone(open_screen: OpenScreen):
    screen = open_screen()
    page = screen.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.goto(f"{screen.address}/c/dev/topic/messages?name=orders&limit=20")
    first = page.locator(".record summary").first
    for _ in range(60):
        page.keyboard.press("Tab")
        if first.evaluate("element => element === document.activeElement"):
            break
    page.keyboard.press("Enter")
    page.locator(".record-body").first.get_by_text("trace-id").wait_for()


@pytest.mark.nightly
def test_a_page_refreshes_itself_and_keeps_the_focus(open_screen: OpenScreen):
    screen = open_screen("/c/dev/topics?sort=-rate")
    page = screen.page
    page.evaluate("window.isSameDocument = true")
    page.get_by_role("link", name="orders").focus()
    with page.expect_response(lambda response: "/c/dev/topics?sort=-rate" in response.url):
        pass
    eventually_on(page, lambda: page.evaluate("!document.querySelector('.htmx-request')"))
    assert page.evaluate("window.isSameDocument")
    assert page.evaluate("document.activeElement.textContent") == "orders"


@pytest.mark.nightly
def test_the_theme_is_kept(open_screen: OpenScreen):
    screen = open_screen()
    page = screen.page
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Switch between light and dark").click()
    after = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert after != before
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == after


@pytest.mark.nightly
def test_times_are_in_the_viewers_time_zone(open_screen: OpenScreen):
    screen = open_screen("/c/dev/topic/record?name=orders&partition=0&offset=0")
    moment = screen.page.locator("time[data-exact]")
    hour = int((moment.get_attribute("title") or "").partition("T")[2][:2])
    shown = int(moment.inner_text().partition(" ")[2][:2])
    assert (shown - hour) % 24 in {1, 2}  # Berlin


def test_hostile_content_is_text(open_screen: OpenScreen):
    screen = open_screen("/c/dev/topic/messages?name=hostile")
    page = screen.page
    page.locator(".record summary").click()
    page.locator(".record-body .content").first.wait_for()
    assert EVIL in page.locator(".record-body .content").first.inner_text()
    screen.open("/c/dev/groups")
    page.get_by_role("link", name=EVIL).click()
    page.get_by_text("hostile").first.wait_for()
    assert screen.heading() == EVIL
    assert page.locator("img[src=x]").count() == 0


def test_a_lost_cluster_does_not_affect_the_other(open_screen: OpenScreen):
    screen = open_screen("/c/lost/")
    page = screen.page
    page.get_by_text("No broker responds at 127.0.0.1:1").wait_for()
    page.get_by_text("What to do:").wait_for()
    page.get_by_role("link", name="dev").click()
    page.get_by_text("Records written per second").wait_for()
