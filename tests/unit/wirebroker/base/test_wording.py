"""Formatting of words and names for people."""

import pytest

from wirebroker.base.wording import counted, lower_camel_case


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
def test_counts_have_nouns_that_fit(count, noun, text):
    assert counted(count, noun) == text


def test_names_of_fields_are_kafkas():
    assert lower_camel_case("commit_timestamp") == "commitTimestamp"
    assert lower_camel_case("offset") == "offset"
