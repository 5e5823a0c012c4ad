from __future__ import annotations

import threading

from wirebroker.console.view.paging import ROWS_A_PAGE, ListQuery, page_of

ROWS = [(f"row-{number}", number % 7 if number % 5 else None) for number in range(120)]


async def listed(**parameters):
    query = ListQuery.of({name: str(value) for name, value in parameters.items()})
    return await page_of(
        ROWS,
        query,
        name=lambda row: row[0],
        columns={"name": lambda row: row[0], "size": lambda row: row[1]},
        default_sort="name",
    )


async def test_a_page_has_a_bounded_number_of_rows():
    page = await listed()
    assert len(page.rows) == ROWS_A_PAGE
    assert (page.first, page.last, page.total, page.page_count) == (1, 50, 120, 3)


async def test_the_last_page_has_the_rest():
    page = await listed(page=3)
    assert (page.first, page.last) == (101, 120)


async def test_a_page_beyond_the_end_is_the_last_one():
    assert (await listed(page=99)).page == 3
    assert (await listed(page="x" * 10)).page == 1


async def test_the_filter_ignores_case():
    page = await listed(q="ROW-11")
    assert {row[0] for row in page.rows} == {"row-11", *(f"row-11{digit}" for digit in range(10))}


async def test_unknown_values_are_last_in_both_orders():
    for sort in ("size", "-size"):
        pages = [await listed(sort=sort, page=page) for page in (1, 2, 3)]
        values = [row[1] for page in pages for row in page.rows]
        known = [value for value in values if value is not None]
        assert values[: len(known)] == sorted(known, reverse=sort == "-size")


async def test_an_unknown_column_is_the_default_one():
    assert (await listed(sort="-color")).sort == "name"


async def test_no_rows_are_an_empty_page():
    page = await listed(q="nothing")
    assert (page.rows, page.first, page.last, page.page_count) == ([], 0, 0, 1)


async def test_long_lists_are_sorted_in_a_thread():
    threads = set()

    def key(row):
        threads.add(threading.current_thread())
        return row

    numbers = range(10_000)
    page = await page_of(
        numbers, ListQuery(), name=str, columns={"number": key}, default_sort="-number"
    )
    assert page.rows == list(range(9999, 9949, -1))
    assert threads
    assert threading.main_thread() not in threads
