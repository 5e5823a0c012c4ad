"""One page of a long list: filtered by a part of the name, sorted by a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Row = TypeVar("Row")

ROWS_A_PAGE: Final = 50
_DESCENDING: Final = "-"
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


def page_of(
    rows: Iterable[Row],
    query: ListQuery,
    *,
    name: Callable[[Row], str],
    columns: Mapping[str, Callable[[Row], Any]],
    default_sort: str,
) -> ListPage[Row]:
    """Return a page of rows.

    `columns` has the sort key of each column; unknown values (None) come last. Rows with equal
    keys are in the order of their names.
    """
    needle = query.search.casefold()
    found = [row for row in rows if needle in name(row).casefold()] if needle else list(rows)
    sort = query.sort if query.sort.removeprefix(_DESCENDING) in columns else default_sort
    is_descending = sort.startswith(_DESCENDING)
    key = columns[sort.removeprefix(_DESCENDING)]
    found.sort(key=name)
    known = [row for row in found if key(row) is not None]
    unknown = [row for row in found if key(row) is None]
    known.sort(key=key, reverse=is_descending)
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
