"""Valid topic names."""

import pytest

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.image.topic_names import (
    check_topic_name,
    collisions,
    is_internal,
)


@pytest.mark.parametrize("name", ["a", "A-1_b.c", "...", "n" * 249, "-"])
def test_letters_digits_dots_underscores_and_dashes_make_a_name(name):
    check_topic_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "n" * 250, "a b", "a/b", "ä", "a\n", "a\x00", "\u0661"]
)
def test_other_names_are_refused(name):
    with pytest.raises(KafkaError) as raised:
        check_topic_name(name)
    assert raised.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_dots_and_underscores_collide():
    assert collisions(["a.b", "c-d", "e_f"]) == {"a_b": "a.b", "e_f": "e_f"}


def test_kafka_keeps_its_state_in_three_topics():
    assert is_internal("__consumer_offsets")
    assert not is_internal("__cluster_metadata")
    assert not is_internal("orders")
