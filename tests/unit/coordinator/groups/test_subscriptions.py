"""Subscriptions of consumers, as far as they can be parsed."""

import pytest

from wirebroker.coordinator.groups.subscriptions import subscribed_topics_of


def subscription(*topics, version=1):
    encoded = b"".join(len(t).to_bytes(2) + t.encode() for t in topics)
    return version.to_bytes(2) + len(topics).to_bytes(4) + encoded + b"\xff\xff\xff\xff"


def test_subscribed_topics_are_those_of_all_members():
    topics = subscribed_topics_of([subscription("a", "b"), subscription("b", "c", version=3)])
    assert topics == frozenset({"a", "b", "c"})
    assert subscribed_topics_of([]) == frozenset()


@pytest.mark.parametrize(
    "metadata",
    [b"", b"\x00", b"\x00\x01\x00\x00\x00\x01", b"\x00\x01\x7f\xff\xff\xff", subscription("a")[:8]],
)
def test_unreadable_subscription_leaves_topics_unknown(metadata):
    assert subscribed_topics_of([subscription("a"), metadata]) is None
