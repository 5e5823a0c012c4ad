"""The page with the number of records written in a range of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from wirebroker.client.errors import ClientError
from wirebroker.console.pages import topics
from wirebroker.console.records.written import WrittenRange, WrittenRanges
from wirebroker.console.view.formats import parsed_time

if TYPE_CHECKING:
    from tests.unit.wirebroker.console.pages.conftest import Site

URL = "/c/dev/topic/written?name=orders"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Replace the request to the cluster; return its topics and times."""
    found: list[Any] = []

    async def written_between(_client: Any, topic: str, from_ms: int, until_ms: int | None) -> Any:
        found.append((topic, from_ms, until_ms))
        return WrittenRanges([WrittenRange(0, 5, 1005), WrittenRange(1, 7, 7)], [])

    monkeypatch.setattr(topics, "written_between", written_between)
    return found


async def test_records_are_counted_by_partition_and_in_total(site: Site, asked: list[Any]):
    page = await site.page(f"{URL}&from=2026-11-22&until=2026-11-23T12:00&sort=-count")
    assert asked == [("orders", parsed_time("2026-11-22"), parsed_time("2026-11-23T12:00"))]
    assert "about 1,000" in page
    assert "1 to 2 of 2 partitions" in page
    assert "start=offset&amp;offset=5" in page
    assert "their markers have offsets" in page


@pytest.mark.parametrize(("title", "hours"), [("Last hour", 1), ("Last 7 days", 168)])
async def test_usual_ranges_are_links(site: Site, asked: list[Any], title: str, hours: int):
    page = await site.page(URL)
    link = page.partition(f">{title}</a>")[0].rpartition('href="')[2].partition('"')[0]
    await site.page(link.replace("&amp;", "&"))
    (_, first, _), (_, second, until) = asked
    assert until is None
    assert abs((first - second) - (hours - 1) * 3_600_000) < 60_000


@pytest.mark.parametrize(
    ("parameters", "fault"),
    [
        ("from=noon", "is not a time"),
        ("from=1h&until=soon", "is not a time"),
        ("until=2026-11-22", "“From” is missing: write a time such as"),
        ("from=2026-11-23&until=2026-11-22", "The range ends before it begins."),
    ],
)
async def test_a_fault_in_the_form_is_named(
    site: Site, asked: list[Any], parameters: str, fault: str
):
    page = await site.page(f"{URL}&{parameters}")
    assert fault in page
    assert asked == []
    assert "about" not in page.partition("<main")[2]


@pytest.mark.parametrize(
    ("leaderless", "sentence"),
    [
        ([2], "Partition 2 has no leader and is not counted."),
        ([2, 3], "Partitions 2, 3 have no leader and are not counted."),
    ],
)
async def test_partitions_without_a_leader_are_named(
    site: Site, answers, leaderless: list[int], sentence: str
):
    answers(topics, "written_between", WrittenRanges([WrittenRange(0, 5, 1005)], leaderless))
    page = await site.page(URL)
    assert sentence in page
    assert "about 1,000" in page


async def test_a_topic_that_cannot_be_read_has_a_cause(site: Site, answers):
    answers(topics, "written_between", ClientError("this user may not read topic orders"))
    assert "This user may not read topic orders." in await site.page(URL)
