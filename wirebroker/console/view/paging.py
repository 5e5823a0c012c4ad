"""One page of a long list: filtered by a part of the name, sorted by a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from wirebroker.base.threads import Work, in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Row = TypeVar("Row")

ROWS_A_PAGE: Final = 50
_DESCENDING: Final = "-"
# Longer lists are filtered and sorted in a thread: 10,000 rows take 20 ms.
_MOST_ROWS_ON_LOOP: Final = 500
# A longer filter cannot match: names have at most 249 characters, group ids rarely more.
_MOST_FILTER_CHARACTERS: Final = 300


class ListPage(NamedTuple, Generic[Row]):
    """Rows `first` to `last` (from 1) of `total`; pages count from 1.

    Attributes:
        sort: The column in use; a minus in front means descending.
    """

    rows: list[Row]
    total: int
    page: int
    page_count: int
    first: int
    last: int
    sort: str
    search: str


class ListQuery(NamedTuple):
    """What a viewer asked for; wrong values count as the default."""

    search: str = ""
    sort: str = ""
    page: int = 1

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> ListQuery:
        """Parse the parameters q, sort and page."""
        page = parameters.get("page", "")
        return cls(
            parameters.get("q", "").strip()[:_MOST_FILTER_CHARACTERS],
            parameters.get("sort", "")[:40],
            int(page) if page.isascii() and page.isdigit() and len(page) < 7 else 1,
        )


async def page_of(
    rows: Sequence[Row],
    query: ListQuery,
    *,
    name: Callable[[Row], str],
    columns: Mapping[str, Callable[[Row], Any]],
    default_sort: str,
) -> ListPage[Row]:
    """Return a page of rows.

    `columns` has the sort key of each column; unknown values (None) come last. Rows with equal
    keys are in the order of their names. Names and keys may be computed in a thread.
    """
    sort = query.sort if query.sort.removeprefix(_DESCENDING) in columns else default_sort
    key = columns[sort.removeprefix(_DESCENDING)]
    if len(rows) > _MOST_ROWS_ON_LOOP:
        return await in_thread(Work.LISTS, _page_of, rows, query, sort, name, key)
    return _page_of(rows, query, sort, name, key)


def _page_of(
    rows: Sequence[Row],
    query: ListQuery,
    sort: str,
    name: Callable[[Row], str],
    key: Callable[[Row], Any],
) -> ListPage[Row]:
    needle = query.search.casefold()
    found = [row for row in rows if needle in name(row).casefold()] if needle else list(rows)
    found.sort(key=name)
    known = [row for row in found if key(row) is not None]
    unknown = [row for row in found if key(row) is None]
    known.sort(key=key, reverse=sort.startswith(_DESCENDING))
    page_count = max(1, -(-len(found) // ROWS_A_PAGE))
    page = max(1, min(query.page, page_count))
    start = (page - 1) * ROWS_A_PAGE
    shown = (known + unknown)[start : start + ROWS_A_PAGE]
    return ListPage(
        shown,
        len(found),
        page,
        page_count,
        start + 1 if shown else 0,
        start + len(shown),
        sort,
        query.search,
    )
