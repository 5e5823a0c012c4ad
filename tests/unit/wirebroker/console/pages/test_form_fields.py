"""Each field of the messages page has an effect in each mode, or the page says that it has none."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.console.found_records import chunks_of
from wirebroker.console.model import details
from wirebroker.console.pages import messages, streams
from wirebroker.console.records.queries import RecordPage

if TYPE_CHECKING:
    from tests.unit.wirebroker.console.pages.conftest import Site

URL = "/c/dev/topic/messages?name=orders"
DOWNLOAD = "/c/dev/topic/download?form=csv&name=orders"
# A field, values that it needs, and its own value.
FIELDS = {
    "start": ("", "start"),
    "offset": ("&start=offset&offset=1", "2"),
    "time": ("&start=time&time=2026-11-22", "2026-11-23"),
    "partition": ("", "1"),
    "limit": ("", "20"),
    "text": ("", "anna"),
    "header": ("", "trace"),
    "header_value": ("", "t1"),
    "where": ("&text=a", "key"),
    "jsonpath": ("", "$.id"),
    "until": ("", "2026-11-22T10:00"),
    "case": ("&text=a", "1"),
    "committed": ("", "1"),
}
MODES = {"show": "", "search": "&header_value=b", "tail": "&live=1"}

# What a mode does not use, and how the page names it: a search reads from the start and has its own
# bound; a tail begins at the end.
UNUSED = {
    "show": {},
    "search": {"start": "“Newest” does not apply", "limit": "“Records” does not apply"},
    "tail": {
        "start": "“Oldest” does not apply",
        "offset": "“From offset” does not apply",
        "time": "“From time” does not apply",
    },
}


class Effects:
    """The queries that pages send to the cluster instead of reading it."""

    def __init__(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site = site
        self.sent: list[Any] = []
        monkeypatch.setattr(messages, "read_page", self._read_page)
        monkeypatch.setattr(messages, "downloaded", self._downloaded)
        monkeypatch.setattr(streams, "searched", self._searched)
        monkeypatch.setattr(streams, "tailed", self._tailed)

    async def _read_page(self, _collector: Any, query: Any) -> RecordPage:
        self.sent.append(query)
        return RecordPage((), {})

    def _searched(self, _collector: Any, query: Any, _report: Any) -> Any:
        self.sent.append(query)
        return chunks_of()

    def _tailed(self, _collector: Any, query: Any, record_filter: Any, _losses: Any) -> Any:
        # It begins at the end, and the page bounds its list.
        self.sent += [query._replace(start="", offset=0, time_ms=0, limit=0), record_filter]
        return chunks_of()

    def _downloaded(self, _collector: Any, query: Any, _form: str) -> Any:
        self.sent.append(query)
        return chunks_of()

    async def of_page(self, parameters: str) -> tuple[Any, ...]:
        """Return what a page reads, its bound, its faults, and what it does not use."""
        self.sent.clear()
        page = await self.site.page(f"{URL}{parameters}")
        if stream := re.search(r'hx-sse:connect="([^"]+)"', page):
            assert (await self.site.get(html.unescape(stream[1]))).status == 200
        bound = re.findall(r'data-most="(\d+)"', page)
        faults = re.findall(r'class="banner bad"[^>]*>(.*?)</section>', page)
        unused = re.findall(r'<p class="muted unused">(.*?)</p>', page)
        return (list(self.sent), bound, faults), unused

    async def of_download(self, parameters: str) -> list[Any]:
        self.sent.clear()
        await self.site.get(f"{DOWNLOAD}{parameters}")
        return list(self.sent)


@pytest.fixture
def effects(site: Site, monkeypatch: pytest.MonkeyPatch) -> Effects:
    return Effects(site, monkeypatch)


async def test_the_table_has_all_fields_of_the_form(site: Site, effects: Effects):
    del effects
    page = await site.page(URL)
    (form,) = re.findall(r'<form class="search".*?</form>', page, re.DOTALL)
    assert set(re.findall(r' name="(\w+)"', form)) == FIELDS.keys() | {"name", "live"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("field", FIELDS)
async def test_a_field_has_an_effect_or_the_page_says_that_it_has_none(
    effects: Effects, field: str, mode: str
):
    needed, value = FIELDS[field]
    base = f"{MODES[mode]}{needed}"
    before, unused = await effects.of_page(base)
    base = re.sub(f"&{field}=[^&]*", "", base)
    after, unused_after = await effects.of_page(f"{base}&{field}={value}")
    sentences = " ".join([*unused, *unused_after])
    assert after != before or UNUSED[mode][field] in sentences


# A download contains all records that match.
@pytest.mark.parametrize("field", sorted(FIELDS.keys() - {"limit", "start"}))
async def test_a_field_has_an_effect_on_a_download(effects: Effects, field: str):
    needed, value = FIELDS[field]
    before = await effects.of_download(needed)
    needed = re.sub(f"&{field}=[^&]*", "", needed)
    assert await effects.of_download(f"{needed}&{field}={value}") != before


async def test_a_tail_keeps_as_many_records_as_were_chosen(effects: Effects):
    (_, bound, _), unused = await effects.of_page("&live=1&limit=100")
    assert (bound, unused) == (["100"], [])


async def test_a_duration_that_is_no_number_is_a_fault(site: Site, answers):
    answers(details, "transactions", [])
    page = await site.page("/c/dev/transactions?topic=orders&minutes=soon")
    assert "The minutes must be a number of at most 6 digits, not &#39;soon&#39;." in page
    assert 'value="soon"' in page
