"""Records of internal topics as kafka-dump-log prints them.

    key: {"type":"3","data":{…}} payload: {"version":"0","data":{…}}

The payload of a tombstone is `<DELETE>`. Unlike the console consumer, it decodes the subscriptions
and assignments of consumers in classic groups.

Source: Kafka's DumpLogSegments.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

from wirebroker.cli.kafka.formatters.record_json import fields_of, type_of
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.codecs.message import load_message
from wirebroker.coordinator.groups.subscriptions import CONSUMER_PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.cli.kafka.formatters.record_json import RecordForm

_VERSION_BYTES: Final = 2
_SUBSCRIPTION_VERSIONS: Final = {
    "owned_partitions": range(1, 4),
    "generation_id": range(2, 4),
    "rack_id": range(3, 4),
}


def dumped(
    forms: Mapping[int, RecordForm], offset: int, key: bytes, value: bytes | None
) -> Iterator[str]:
    """Yield the key and the payload of a record, or only a key that names its fault."""
    try:
        number = type_of(key)
        form = forms.get(number)
        if form is None:
            yield f"key: Unknown record type {number} at offset {offset}, skipping."
            return
        key_text = _json({"type": str(number), "data": form.key(key)})
        payload = "<DELETE>" if value is None else _payload(form, value)
    except (KafkaError, MalformedFrameError) as error:
        yield f"key: Error at offset {offset}, skipping. {error}"
        return
    yield f"key: {key_text}"
    yield f"payload: {payload}"


def _payload(form: RecordForm, value: bytes) -> str:
    version, fields = form.value_fields(value)
    if fields.get("protocolType") == CONSUMER_PROTOCOL:
        for member in fields["members"]:
            member["subscription"] = _consumers(member["subscription"], "subscription")
            member["assignment"] = _consumers(member["assignment"], "assignment")
    return _json({"version": str(version), "data": fields})


def _consumers(text: str, what: str) -> Any:
    """Return a consumer's subscription or assignment as JSON; malformed ones stay base64."""
    data = base64.b64decode(text)
    message = load_message(f"consumer_protocol_{what}")
    # As in Kafka, later versions are read as the last one.
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    version = min(max(version, message.versions[0]), message.versions[-1])
    try:
        struct = message.decode(version, data, _VERSION_BYTES)
    except MalformedFrameError:
        return text
    return fields_of(struct, version, _SUBSCRIPTION_VERSIONS)


def _json(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))
