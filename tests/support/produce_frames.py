"""Frames of Produce requests for one partition, and where what stands in them."""

from __future__ import annotations

from typing import Any

from tests.support.raw_client import request_frame
from tests.support.requests import produce_request
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.primitives import uvarint

VERSIONS = range(3, 14)
_FIRST_FLEXIBLE = 9
_TOPIC_ID = bytes(range(16))


class Frame:
    """A Produce request without its size.

    Attributes:
        data: All its bytes.
        length_at: Where the length of the records stands.
        start: Where the records begin.
        stop: Where they end.
    """

    def __init__(self, version: int, records: bytes, *, correlation_id: int = 0) -> None:
        request = produce_request({("topic", 3): records})
        if version >= 13:
            request["topic_data"][0] |= {"topic_id": _TOPIC_ID}
        is_flexible = version >= _FIRST_FLEXIBLE
        frame = request_frame(
            ApiKey.PRODUCE, version, request, correlation_id=correlation_id & 0xFFFFFFFF
        )
        self.data = frame[4:]
        length = uvarint(len(records) + 1) if is_flexible else len(records).to_bytes(4)
        self.stop = len(self.data) - 3 * is_flexible
        self.start = self.stop - len(records)
        self.length_at = self.start - len(length)
        assert self.data[self.length_at : self.start] == length
        self._is_flexible = is_flexible

    @property
    def head(self) -> bytes:
        """Key and version."""
        return self.data[:4]

    @property
    def same(self) -> bytes:
        """What stands between the correlation id and the length."""
        return self.data[8 : self.length_at]

    def match(self, module: Any, data: bytes | bytearray) -> Any:
        """Hold another frame against this one."""
        return module.match(memoryview(data), self.head, self.same, self._is_flexible)
