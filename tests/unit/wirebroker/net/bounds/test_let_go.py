"""Large messages are freed in slices; objects in use are not affected."""

from __future__ import annotations

from typing import Any

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.messages import decode_request, encode_request
from wirebroker.net.bounds.let_go import let_go

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
    await let_go(messages)
    assert Counted.count == 0
    assert messages == []


async def test_what_others_use_stays_as_it_is() -> None:
    for path in ((), ("others",), ("topics",), ("topics", 0), ("topics", 0, "partitions")):
        made = message()
        kept: Any = made
        for step in path:
            kept = kept[step]
        before = list(kept)
        messages = [made]
        del made
        await let_go(messages)
        assert list(kept) == before
        if path == ("topics", 0):
            assert len(kept["partitions"]) == MANY
        del kept, before
        assert Counted.count == 0


async def test_decoded_requests_are_freed() -> None:
    topics = [{"name": f"topic-{number}", "partitions": []} for number in range(MANY)]
    frame = encode_request(ApiKey.OFFSET_DELETE, 0, {"group_id": "g", "topics": topics})
    bodies = [decode_request(ApiKey.OFFSET_DELETE, 0, memoryview(frame), 0)]
    decoded = bodies[0].topics
    await let_go(bodies)
    assert len(decoded) == MANY  # this test uses them
    bodies = [decode_request(ApiKey.OFFSET_DELETE, 0, memoryview(frame), 0)]
    counted = Counted()
    bodies[0].topics[-1].partitions.append(counted)
    del counted
    await let_go(bodies)
    assert Counted.count == 0
