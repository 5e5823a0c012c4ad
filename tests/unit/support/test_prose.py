"""The check of wording finds its patterns in text, and not in code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.harness.prose import hits_in, texts_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "text",
    [
        "The index is built anew.",
        "Whoever waits gets an error.",
        "The client is told of it.",
        "It waits for ever.",
        "What is there is kept. What is missing is not.",
        "a rule of Kafka's.",
        "Nobody asks.",
    ],
)
def test_dialect_is_found_with_its_line(text: str) -> None:
    hits = list(hits_in(f"A title\n\n{text}", "page.md"))
    assert hits
    assert {hit.line for hit in hits} == {3}
    assert all(hit.advice for hit in hits)


@pytest.mark.parametrize(
    "text",
    [
        "At most 5 retries, no more than that.",
        "What is a broker? A server.",
        "Delete the file; the next start creates it again.",
    ],
)
def test_plain_text_has_no_hits(text: str) -> None:
    assert not list(hits_in(text))


def test_code_is_skipped_and_strings_and_comments_are_read(tmp_path: Path) -> None:
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text("`anew` and\n\n```\nanew\n```\n\nanew\n", encoding="utf-8")
    module.write_text('anew = "built anew"  # mended\n', encoding="utf-8")
    found = [hit.line for line, text in texts_of(page) for hit in hits_in(text, "page.md", line)]
    assert found == [7]
    hits = [hit.text for line, text in texts_of(module) for hit in hits_in(text, "m.py", line)]
    assert sorted(hits) == ["anew", "mended"]
