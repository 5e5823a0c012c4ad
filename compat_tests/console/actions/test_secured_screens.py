"""Every screen over SASL_SSL, with the least rights in Kafka of a reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compat_tests.console.cluster_content import furnished
from compat_tests.console.console_site import SCREENSHOTS, Screen
from compat_tests.console.test_screens import SCREENS
from tests.support.tools.waiting import eventually
from wirebroker.console.changes.change import ConsoleRole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat_tests.console.actions.action_cluster import ActionCluster
    from compat_tests.console.actions.action_sites import ActionSites, ClusterVisit

sync_api = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.nightly

_DEV = "/c/dev/"
# The other pages are not about this cluster; a reader sees no form that changes it.
_FORM = "topics-selected"
_SCREENS = [screen for screen in SCREENS if screen[1].startswith(_DEV) and screen[0] != _FORM]
# A search goes on after the page was opened.
_WAIT_MS = 3_000


@pytest.fixture(scope="module")
def visit(cluster: ActionCluster, sites: ActionSites) -> Iterator[ClusterVisit]:
    with furnished(cluster.bootstrap):
        yield sites.secured_visit(ConsoleRole.READER, "reader")


@pytest.mark.parametrize(("name", "path", "text"), _SCREENS, ids=[screen[0] for screen in _SCREENS])
def test_a_screen_shows_its_content_to_a_reader(
    visit: ClusterVisit, broker_kind: str, name: str, path: str, text: str
):
    page = visit.context.new_page()
    screen = Screen(page, visit.address, SCREENSHOTS / broker_kind)
    address = path.replace(_DEV, f"/c/{visit.cluster}/")

    def is_shown() -> bool:
        screen.open(address)
        try:
            page.locator("main").get_by_text(text).first.wait_for(timeout=_WAIT_MS)
        except sync_api.TimeoutError:
            return False
        return True

    eventually(is_shown)
    shown = page.locator("main").inner_text()
    assert "AUTHORIZATION_FAILED" not in shown
    assert page.locator("a.change").filter(has_not_text="May a user do").count() == 0
    screen.shoot(f"{name}-reader")
    # Chromium logs the 404 of resources that are missing or not read yet.
    assert [error for error in screen.errors if "404" not in error] == []
    page.close()


def test_a_reader_sees_topics_without_a_form_to_delete_them(visit: ClusterVisit, broker_kind: str):
    page = visit.context.new_page()
    screen = Screen(page, visit.address, SCREENSHOTS / broker_kind)
    screen.open(f"/c/{visit.cluster}/topics?select=1")
    page.get_by_role("link", name="orders").wait_for()
    assert page.get_by_text("Delete the selected topics").count() == 0
    assert page.locator("main td input, main th input").count() == 0
    page.close()
