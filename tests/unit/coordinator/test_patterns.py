"""Regular expressions of peers: Kafka's syntax, linear time, bounded size."""

import pytest

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.patterns import compile_pattern


def test_the_whole_text_must_match():
    pattern = compile_pattern("orders-[0-9]+")
    assert pattern.fullmatch("orders-12")
    assert not pattern.fullmatch("orders-12-old")


def test_backtracking_pattern_is_matched_in_linear_time():
    # 2^200 ways to fail: a backtracking matcher never returns.
    assert not compile_pattern("(a+)+b").fullmatch("a" * 200)


@pytest.mark.parametrize("text", ["(", "a{2,1}", "(?=a)", "a" * 20_000, "((a{100}){100}){100}"])
def test_invalid_or_too_large_pattern_is_refused(text):
    with pytest.raises(KafkaError) as refused:
        compile_pattern(text)
    assert refused.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_refusal_of_a_pattern_quotes_text_not_bytes():
    with pytest.raises(KafkaError) as refused:
        compile_pattern("(")
    assert "b'" not in str(refused.value)
    assert "missing )" in str(refused.value)


def test_capture_groups_are_not_filled():
    match = compile_pattern("(.*)" * 100 + "!").fullmatch("x!")
    assert match
    assert set(match.groups()) <= {None}
