"""Large messages are freed in slices; objects in use are not affected."""

from __future__ import annotations

from typing import Any

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.messages import decode_request, encode_request
from wirebroker.net.bounds.gradual_free import free_gradually

MANY = 2_000


class Counted:
    """Counts its live instances."""

    count = 0

    def __init__(self) -> None:
        Counted.count += 1

    def __del__(self) -> None:
        Counted.count -= 1


def message() -> dict[str, Any]:
    return {
        "topics": [{"name": "t", "partitions": [Counted() for _ in range(MANY)]}],
        "others": [Counted() for _ in range(MANY)],
        "name": "n",
    }


async def test_everything_is_freed() -> None:
    messages = [message(), message()]
    assert Counted.count == 4 * MANY
    await free_gradually(messages)
    assert Counted.count == 0
    assert messages == []


async def test_objects_referenced_elsewhere_are_unchanged() -> None:
    for path in ((), ("others",), ("topics",), ("topics", 0), ("topics", 0, "partitions")):
        made = message()
        element: Any = made
        for step in path:
            element = element[step]
        before = list(element)
        messages = [made]
        del made
        await free_gradually(messages)
        assert list(element) == before
        if path == ("topics", 0):
            assert len(element["partitions"]) == MANY
        del element, before
        assert Counted.count == 0


async def test_decoded_requests_are_freed() -> None:
    topics = [{"name": f"topic-{number}", "partitions": []} for number in range(MANY)]
    frame = encode_request(ApiKey.OFFSET_DELETE, 0, {"group_id": "g", "topics": topics})
    bodies = [decode_request(ApiKey.OFFSET_DELETE, 0, memoryview(frame), 0)]
    decoded = bodies[0].topics
    await free_gradually(bodies)
    assert len(decoded) == MANY  # this test uses them
    bodies = [decode_request(ApiKey.OFFSET_DELETE, 0, memoryview(frame), 0)]
    counted = Counted()
    bodies[0].topics[-1].partitions.append(counted)
    del counted
    await free_gradually(bodies)
    assert Counted.count == 0
