"""Frames of Produce requests for one topic, with the positions of their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import produce_request
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.primitives import uvarint

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSIONS = range(3, 14)
_FIRST_FLEXIBLE = 9
_TOPIC_ID = bytes(range(16))


def produce_frame(
    version: int, partitions: Mapping[int, bytes], *, correlation_id: int = 0
) -> bytes:
    """Return a Produce request without its size."""
    request = produce_request({("topic", index): records for index, records in partitions.items()})
    if version >= 13:
        request["topic_data"][0] |= {"topic_id": _TOPIC_ID}
    return request_frame(
        ApiKey.PRODUCE, version, request, correlation_id=correlation_id & 0xFFFFFFFF
    )[4:]


class Frame:
    """A Produce request for one partition, without its size.

    Attributes:
        data: All its bytes.
        count_at: Position of the partition count.
        length_at: Position of the records' length.
        start: Start of the records.
        stop: End of the records.
    """

    def __init__(self, version: int, records: bytes, *, correlation_id: int = 0) -> None:
        is_flexible = version >= _FIRST_FLEXIBLE
        self.data = produce_frame(version, {3: records}, correlation_id=correlation_id)
        length = uvarint(len(records) + 1) if is_flexible else len(records).to_bytes(4)
        self.stop = len(self.data) - 3 * is_flexible
        self.start = self.stop - len(records)
        self.length_at = self.start - len(length)
        assert self.data[self.length_at : self.start] == length
        self.count_at = self.length_at - 4 - (1 if is_flexible else 4)
        self._is_flexible = is_flexible

    @property
    def head(self) -> bytes:
        """Key and version."""
        return self.data[:4]

    @property
    def same(self) -> bytes:
        """The bytes between the correlation id and the partition count."""
        return self.data[8 : self.count_at]

    def match(self, module: Any, data: bytes | bytearray) -> Any:
        """Match another frame with this one."""
        return module.match(memoryview(data), self.head, self.same, self._is_flexible)
