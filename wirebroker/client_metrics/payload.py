"""The contents of a push: compressed, in OpenTelemetry's form."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.threads import LONGEST_ON_LOOP_BYTES, coding, in_thread
from wirebroker.client_metrics.otlp import read_points
from wirebroker.client_metrics.series import MOST_LABELS, MOST_OF_ONE_CLIENT
from wirebroker.codecs.errors import ErrorCode, KafkaError, MalformedFrameError
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import decompress

if TYPE_CHECKING:
    from wirebroker.client_metrics.otlp import Point

# A data point has about ten.
_MOST_FIELDS: Final = 100_000
# Reads about as fast as compressed records.
_SHORT_BYTES: Final = LONGEST_ON_LOOP_BYTES // 16


class Payload(NamedTuple):
    """A compressed push.

    Attributes:
        most_bytes: Limit of the decompressed size.
    """

    codec: Codec
    data: bytes
    most_bytes: int


async def points_of(payload: Payload) -> list[Point]:
    """Return the data points of a push, one more than a client may have if there are more.

    Raises:
        KafkaError: INVALID_RECORD: it is too large or cannot be read.
    """
    is_short = payload.codec is Codec.NONE and len(payload.data) <= _SHORT_BYTES
    if is_short:
        return _read(payload)
    return await in_thread(coding(payload.most_bytes), _read, payload)


def _read(payload: Payload) -> list[Point]:
    try:
        data = decompress(payload.codec, payload.data, max_bytes=payload.most_bytes)
        points = read_points(data, most_fields=_MOST_FIELDS, most_attributes=MOST_LABELS)
        return list(islice(points, MOST_OF_ONE_CLIENT + 1))
    except (KafkaError, MalformedFrameError) as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None
