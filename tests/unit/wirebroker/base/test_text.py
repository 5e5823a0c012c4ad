"""Formatting of words and names for people."""

import pytest

from wirebroker.base.text import counted, lower_camel_case


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "record", "0 records"),
        (1, "record", "1 record"),
        (2, "record", "2 records"),
        (1, "entry", "1 entry"),
        (2, "entry", "2 entries"),
        (3, "batch", "3 batches"),
        (2, "key", "2 keys"),
        (2, "alias", "2 aliases"),
    ],
)
def test_counted_nouns_are_singular_or_plural(count, noun, text):
    assert counted(count, noun) == text


def test_field_names_are_converted_to_kafkas_spelling():
    assert lower_camel_case("commit_timestamp") == "commitTimestamp"
    assert lower_camel_case("offset") == "offset"
