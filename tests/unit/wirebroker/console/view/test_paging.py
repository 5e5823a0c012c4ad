from __future__ import annotations

from wirebroker.console.view.paging import ROWS_A_PAGE, ListQuery, page_of

ROWS = [(f"row-{number}", number % 7 if number % 5 else None) for number in range(120)]


def listed(**parameters):
    query = ListQuery.of({name: str(value) for name, value in parameters.items()})
    return page_of(
        ROWS,
        query,
        name=lambda row: row[0],
        columns={"name": lambda row: row[0], "size": lambda row: row[1]},
        default_sort="name",
    )


def test_a_page_has_a_bounded_number_of_rows():
    page = listed()
    assert len(page.rows) == ROWS_A_PAGE
    assert (page.first, page.last, page.total, page.page_count) == (1, 50, 120, 3)


def test_the_last_page_has_the_rest():
    page = listed(page=3)
    assert (page.first, page.last) == (101, 120)


def test_a_page_beyond_the_end_is_the_last_one():
    assert listed(page=99).page == 3
    assert listed(page="x" * 10).page == 1


def test_the_filter_ignores_case():
    page = listed(q="ROW-11")
    assert {row[0] for row in page.rows} == {"row-11", *(f"row-11{digit}" for digit in range(10))}


def test_unknown_values_are_last_in_both_orders():
    for sort in ("size", "-size"):
        values = [row[1] for page in (1, 2, 3) for row in listed(sort=sort, page=page).rows]
        known = [value for value in values if value is not None]
        assert values[: len(known)] == sorted(known, reverse=sort == "-size")


def test_an_unknown_column_is_the_default_one():
    assert listed(sort="-color").sort == "name"


def test_no_rows_are_an_empty_page():
    page = listed(q="nothing")
    assert (page.rows, page.first, page.last, page.page_count) == ([], 0, 0, 1)
