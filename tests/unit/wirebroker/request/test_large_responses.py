"""Responses that a thread encodes: their elements are counted wherever they are."""

import pytest

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.messages import response_message
from wirebroker.request.request import _FEW_ELEMENTS as MOST
from wirebroker.request.request import holds_much


@pytest.mark.parametrize(
    "of",
    [
        lambda elements: {"names": elements},
        lambda elements: {"names": tuple(elements)},
        lambda elements: {"topics": [{"names": elements[1:]}]},
        lambda elements: {"assignment": {"names": elements}},
        lambda elements: {"groups": [{"topology": {"names": elements[1:]}}]},
    ],
    ids=["list", "tuple", "element", "field", "field of an element"],
)
def test_elements_are_counted_at_each_depth(of):
    assert not holds_much(of(["x"] * MOST))
    assert holds_much(of(["x"] * (MOST + 1)))


def test_elements_of_a_struct_in_a_field_are_counted():
    message = response_message(ApiKey.SHARE_GROUP_HEARTBEAT)
    assignment = {
        "topic_partitions": [
            {"topic_id": bytes(16), "partitions": list(range(MOST // 2))} for _ in range(2)
        ]
    }
    body = message.decode(1, message.encode(1, {"assignment": assignment}))
    assert holds_much(body)
    body.assignment.topic_partitions.pop()
    assert not holds_much(body)
