"""Pages that show the newest snapshot: no request to the cluster is needed."""

from __future__ import annotations

import re

import pytest

from tests.support.console import fake_cluster as fake
from tests.unit.wirebroker.console.pages.conftest import Site
from wirebroker.console.model.snapshot import (
    ClusterProblem,
    ClusterSnapshot,
    ClusterStatus,
    Failure,
    ProblemLevel,
)


async def test_the_start_page_of_one_cluster_is_its_overview(site: Site):
    reply = await site.get("/")
    assert (reply.status, reply.headers["location"]) == (307, "/c/dev/")


async def test_the_start_page_of_several_clusters_lists_them():
    failure = Failure("no broker responds", "start one", fake.NOW_MS)
    lost = ClusterSnapshot("prod", status=ClusterStatus.FAILED, failure=failure)
    page = await Site(fake.snapshot(), lost).page("/")
    assert '<a href="/c/dev/">dev</a>' in page
    assert "The cluster does not respond." in page
    assert "No broker responds." in page


async def test_the_overview_of_a_healthy_cluster_says_so(site: Site):
    page = await site.page("/c/dev/")
    assert "Healthy: every partition has a leader" in page
    assert "1.23 k/s" in page
    assert site.collectors[0].touches


async def test_problems_have_a_next_step_and_links():
    problem = ClusterProblem(
        ProblemLevel.ERROR, "group", "group billing is stuck", "restart its member", ("billing",)
    )
    site = Site(fake.snapshot(groups=[fake.group("billing")], problems=(problem,)))
    page = await site.page("/c/dev/")
    assert "1 error." in page
    assert "Restart its member." in page
    assert '<a href="/c/dev/group?name=billing">billing</a>' in page


async def test_what_the_user_may_not_see_is_not_reported_as_healthy():
    page = await Site(fake.snapshot(hidden="This user may not describe groups.")).page("/c/dev/")
    assert "not everything could be checked" in page
    assert "This user may not describe groups." in page


async def test_a_failed_cluster_keeps_its_last_values_below_the_cause():
    failure = Failure("no broker responds at box:9092", "start a broker", fake.NOW_MS)
    snapshot = fake.snapshot(
        topics=[fake.topic("orders")], status=ClusterStatus.FAILED, failure=failure
    )
    page = await Site(snapshot).page("/c/dev/topics")
    assert page.index("No broker responds at box:9092.") < page.index(">orders</a>")
    assert "Start a broker." in page
    assert "The values below were read" in page


async def test_a_cluster_without_values_yet_has_all_pages():
    site = Site(ClusterSnapshot("dev"))
    for path in ("", "brokers", "quorum", "topics", "groups"):
        page = await site.page(f"/c/dev/{path}")
        assert "Connecting to the cluster." in page


async def test_brokers_show_state_disk_and_skew():
    fenced = fake.broker(2, is_fenced=True, log_dirs=(), size_bytes=None)
    page = await Site(fake.snapshot(brokers={1: fake.broker(1), 2: fenced})).page("/c/dev/brokers")
    assert "fenced" in page
    assert "70 %" in page
    assert "Partitions led by each broker: highest 5, mean 5" in page


async def test_the_quorum_shows_the_leader_and_who_is_behind(site: Site):
    page = await site.page("/c/dev/quorum")
    assert "leader" in page
    assert "1.5 s" in page
    assert "CONTROLLER://box:9093" in page


async def test_an_unknown_quorum_is_explained():
    page = await Site(fake.snapshot(quorum=None)).page("/c/dev/quorum")
    assert "The quorum of controllers is not known" in page


async def test_a_list_of_topics_has_pages_and_a_filter():
    topics = [fake.topic(f"topic-{number:03}") for number in range(120)]
    site = Site(fake.snapshot(topics=topics))
    first = await site.page("/c/dev/topics")
    assert "1 to 50 of 120 topics" in first
    assert "topic-050" not in first
    assert "topic-050" in await site.page("/c/dev/topics?page=2")
    found = await site.page("/c/dev/topics?q=119")
    assert "1 to 1 of 1 topics" in found
    assert "No topics with “none” in the name" in await site.page("/c/dev/topics?q=none")


async def test_internal_topics_are_shown_on_request():
    topics = [fake.topic("orders"), fake.topic("__consumer_offsets", is_internal=True)]
    site = Site(fake.snapshot(topics=topics))
    assert "__consumer_offsets" not in await site.page("/c/dev/topics")
    assert "__consumer_offsets" in await site.page("/c/dev/topics?internal=1")


async def test_topics_in_trouble_come_first_if_sorted_by_state():
    topics = [fake.topic("a"), fake.topic("b", isr=(1,)), fake.topic("c", leader=-1)]
    page = await Site(fake.snapshot(topics=topics)).page("/c/dev/topics?sort=-problems")
    order = [page.index(f">{name}</a>") for name in ("c", "b", "a")]
    assert order == sorted(order)
    assert "3 without leader" in page
    assert "3 under-replicated" in page


async def test_a_topic_shows_partitions_and_groups(site: Site):
    page = await site.page("/c/dev/topic?name=orders")
    assert "1 to 3 of 3 partitions" in page
    assert '<a href="/c/dev/group?name=billing">billing</a>' in page


async def test_a_replica_out_of_sync_is_marked_for_eyes_and_readers():
    page = await Site(fake.snapshot(topics=[fake.topic("orders", isr=(1,))])).page(
        "/c/dev/topic?name=orders"
    )
    assert '<span class="replica out" title="out of sync">2</span>' in page
    assert "in sync only 1" in page


async def test_groups_show_kind_lag_and_why_they_are_stuck():
    stuck = fake.group("mailer", stuck="A member does not respond.")
    site = Site(fake.snapshot(groups=[fake.group("billing", kind="share"), stuck]))
    page = await site.page("/c/dev/groups")
    assert "A member does not respond." in page
    assert "2.5 s" in page
    assert "mailer" not in await site.page("/c/dev/groups?kind=share")


async def test_groups_are_filtered_by_state_and_links_keep_the_choice():
    groups = [fake.group(f"g{number:02}", state="Empty") for number in range(60)]
    site = Site(fake.snapshot(groups=[*groups, fake.group("mailer", kind="share")]))
    assert "?state=Empty" in await site.page("/c/dev/groups")
    page = await site.page("/c/dev/groups?state=Empty&q=g&sort=-name")
    assert "1 to 50 of 60 groups" in page
    assert "?state=Empty&amp;q=g&amp;sort=-name&amp;page=2" in page
    assert '<input type="hidden" name="state" value="Empty">' in page
    assert "mailer" not in page
    page = await site.page("/c/dev/groups?state=%3Cb%3E")
    assert "No groups" in page
    assert 'aria-current="true">&lt;b&gt;</a>' in page


async def test_topics_are_selected_to_be_deleted():
    topics = [fake.topic("orders"), fake.topic("__offsets", is_internal=True)]
    site = Site(fake.snapshot(topics=topics))
    page = await site.page("/c/dev/topics?internal=1")
    assert 'href="?internal=1&amp;select=1">Select topics to delete' in page
    assert "checkbox" not in page
    page = await site.page("/c/dev/topics?internal=1&select=1")
    assert 'action="/c/dev/change/delete-topics"' in page
    box = '<input type="checkbox" form="selection" name="topics" value="orders"'
    assert f'{box} aria-label="Select orders">' in page
    assert page.count('type="checkbox"') == 1
    assert "Only topics selected on this page are deleted." in page
    assert "/c/dev/events" not in page
    form = await site.page("/c/dev/change/delete-topics?topics=orders&topics=other")
    assert re.search(r"<textarea[^>]* name=\"topics\"[^>]*>\norders\nother</textarea>", form)


@pytest.mark.parametrize(
    "path",
    ["/c/none/", "/c/dev/topic?name=none", "/c/dev/broker?id=9", "/c/dev/broker?id=x", "/none"],
)
async def test_missing_things_have_an_error_page(site: Site, path: str):
    reply = await site.get(path)
    assert reply.status == 404
    assert "This page cannot be shown" in reply.text


async def test_live_pages_refresh_on_events(site: Site):
    page = await site.page("/c/dev/topics?sort=-rate")
    assert 'hx-sse:connect="/c/dev/events"' in page
    assert 'hx-get="/c/dev/topics?sort=-rate"' in page
