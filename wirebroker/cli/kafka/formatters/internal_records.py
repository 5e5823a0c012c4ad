"""Records of Kafka internal topics as the console consumer prints them.

    {"key":{"type":1,"data":{…}},"value":{"version":4,"data":{…}}}

Records are not separated, and those of other types are not printed. Source: Kafka's
CoordinatorRecordMessageFormatter.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.cli.kafka.formatters.record_json import (
    OFFSET_TOPIC_FORMS,
    SHARE_STATE_FORMS,
    TRANSACTION_FORMS,
    RecordForm,
    type_of,
)
from wirebroker.client.errors import ClientError
from wirebroker.codecs.coordinator_records import GROUP_KIND, LEGACY_OFFSET_KIND, OFFSET_KIND
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.codecs.group_records import GroupRecordKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.record import Record


class InternalRecords(NamedTuple):
    """The record types that a formatter prints, with their forms."""

    forms: Mapping[int, RecordForm]

    def line_of(
        self,
        topic_partition: TopicPartition,
        record: Record,
        timestamp_type: str,
        delivery_count: int | None = None,
    ) -> bytes:
        """Return a record as JSON without a line end; empty for another type.

        Raises:
            ClientError: It cannot be read.
        """
        if record.key is None:
            return b""
        del topic_partition, timestamp_type, delivery_count
        try:
            number = type_of(record.key)
            form = self.forms.get(number)
            if form is None:
                return b""
            row = {
                "key": {"type": number, "data": form.key(record.key)},
                "value": _value(form, record.value),
            }
        except (KafkaError, MalformedFrameError) as error:
            raise ClientError(
                f"Could not read record at offset {record.offset} due to: {error}"
            ) from None
        return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()


def _value(form: RecordForm, value: bytes | None) -> dict[str, Any] | None:
    if value is None:
        return None
    version, fields = form.value_fields(value)
    return {"version": version, "data": fields}


def _some(numbers: Iterable[int]) -> InternalRecords:
    return InternalRecords({number: OFFSET_TOPIC_FORMS[number] for number in numbers})


OFFSETS: Final = _some((LEGACY_OFFSET_KIND, OFFSET_KIND))
GROUPS: Final = _some((GROUP_KIND,))
SHARE_GROUPS: Final = _some(kind for kind in GroupRecordKind if kind.name.startswith("SHARE_"))
TRANSACTIONS: Final = InternalRecords(TRANSACTION_FORMS)
SHARE_STATES: Final = InternalRecords(SHARE_STATE_FORMS)
