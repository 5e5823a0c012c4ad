"""Our codecs against Kafka's own generated classes, by one Java process (MessageEcho.java).

Java reads what we encoded and writes it again: the same bytes. It also prints what it read as JSON:
the same names and values, so that two neighbouring int32 cannot have been swapped.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import TYPE_CHECKING, Any

import pytest

from compiling.messages.schema import snake_case
from tests.java.java_program import JavaProgram
from tests.support.harness.budget import Budget
from tests.support.protocol.message_schemas import schema_of
from tests.support.protocol.message_values import ValueMaker, all_cases
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    RegularExpressionKey,
    WholeGroupKey,
    encode_record_key,
    group_record_message,
)
from wirebroker.codecs.message import load_message
from wirebroker.codecs.metadata_records import (
    MetadataRecord,
    RecordType,
    decode_metadata_record,
    encode_metadata_record,
    record_message,
)
from wirebroker.codecs.primitives import uuid_text
from wirebroker.codecs.share_state_records import (
    ShareStateKey,
    ShareStateKind,
    encode_share_state_key,
    share_state_message,
)
from wirebroker.codecs.transaction_records import transaction_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from compiling.messages.schema import Field, StructSchema
    from wirebroker.codecs.group_records import GroupRecordKey

pytestmark = [pytest.mark.java, pytest.mark.long]

REQUEST, RESPONSE, METADATA_RECORD, TRANSACTION_VALUE = range(4)
GROUP_KEY, GROUP_VALUE, SHARE_STATE_KEY, SHARE_STATE_VALUE, CONSUMER_PROTOCOL = range(4, 9)


class JavaEcho:
    """A running MessageEcho."""

    def __init__(self, program: JavaProgram) -> None:
        self._program = program

    def __call__(self, kind: int, key: int, version: int, body: bytes) -> tuple[bytes, Any]:
        """Return what Java writes after reading `body`, and what it has read."""
        question = struct.pack(">bhhi", kind, key, version, len(body)) + body
        status, (written, text) = self._program.ask(question, 2)
        assert status == 0, f"Java refuses {kind, key, version, body.hex()}: {written.decode()}"
        return written, json.loads(text)


@pytest.fixture(scope="module")
def java_echo() -> Iterator[JavaEcho]:
    program = JavaProgram("MessageEcho")
    yield JavaEcho(program)
    program.close()


def test_java_reads_every_request_and_response_and_writes_the_same(
    java_echo: JavaEcho, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(pytestconfig, seconds=8)
    maker = ValueMaker(budget.random)
    count = 0
    for _ in budget.rounds():
        for case in all_cases():
            message = case.message
            value = message.struct_class(**maker.message(message, case.version))
            body = message.encode(case.version, value)
            kind = REQUEST if case.is_request else RESPONSE
            written, read = java_echo(kind, case.key, case.version, body)
            assert written == body, f"{case}, seed {budget.seed}"
            assert_same(schema_of(message).body, case.version, value, read)
            count += 1
    with capsys.disabled():
        print(f"\n{count} messages through Java, seed {budget.seed}")  # noqa: T201


def test_java_reads_every_metadata_record_and_writes_the_same(
    java_echo: JavaEcho, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(pytestconfig, seconds=4)
    maker = ValueMaker(budget.random)
    count = 0
    for _ in budget.rounds():
        for record_type in RecordType:
            message = record_message(record_type)
            for version in message.versions:
                value = message.struct_class(**maker.message(message, version))
                record = MetadataRecord(record_type, version, value)
                framed = encode_metadata_record(record)
                assert decode_metadata_record(framed) == record, f"seed {budget.seed}"
                # The frame before the body: three varints below 128.
                written, read = java_echo(METADATA_RECORD, record_type, version, framed[3:])
                assert written == framed[3:], f"{record}, seed {budget.seed}"
                assert_same(schema_of(message).body, version, value, read)
                count += 1
    with capsys.disabled():
        print(f"\n{count} metadata records through Java, seed {budget.seed}")  # noqa: T201


def test_java_reads_every_record_of_a_transactional_id_and_writes_the_same(
    java_echo: JavaEcho, pytestconfig: pytest.Config
) -> None:
    budget = Budget(pytestconfig, seconds=1)
    maker = ValueMaker(budget.random)
    message = transaction_message()
    for _ in budget.rounds():
        for version in message.versions:
            value = message.struct_class(**maker.message(message, version))
            body = message.encode(version, value)
            written, read = java_echo(TRANSACTION_VALUE, 0, version, body)
            assert written == body, f"{value}, seed {budget.seed}"
            assert_same(schema_of(message).body, version, value, read)


def test_java_reads_every_record_of_newer_groups_and_writes_the_same(
    java_echo: JavaEcho, pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(pytestconfig, seconds=2)
    maker = ValueMaker(budget.random)
    messages = [
        *((GROUP_VALUE, kind, group_record_message(kind)) for kind in GroupRecordKind),
        *((SHARE_STATE_VALUE, kind, share_state_message(kind)) for kind in ShareStateKind),
    ]
    count = 0
    for _ in budget.rounds():
        for echo_kind, kind, message in messages:
            for version in message.versions:
                value = message.struct_class(**maker.message(message, version))
                body = message.encode(version, value)
                written, read = java_echo(echo_kind, kind, version, body)
                assert written == body, f"{value}, seed {budget.seed}"
                assert_same(schema_of(message).body, version, value, read)
                count += 1
    with capsys.disabled():
        print(f"\n{count} records of groups through Java, seed {budget.seed}")  # noqa: T201


@pytest.mark.parametrize("kind", GroupRecordKind)
def test_java_reads_the_keys_of_newer_groups(java_echo: JavaEcho, kind: GroupRecordKind) -> None:
    key: GroupRecordKey = WholeGroupKey(kind, "g")
    if "_MEMBER" in kind.name:
        key = GroupMemberKey(kind, "g", "m")
    elif kind is GroupRecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION:
        key = RegularExpressionKey(kind, "g", "t.*")
    body = encode_record_key(key)[2:]
    written, read = java_echo(GROUP_KEY, kind, 0, body)
    assert written == body
    assert {"kind": kind, **_snake_cased(read)} == key._asdict()


@pytest.mark.parametrize("kind", ShareStateKind)
def test_java_reads_the_keys_of_share_states(java_echo: JavaEcho, kind: ShareStateKind) -> None:
    key = ShareStateKey(kind, "g", bytes(range(16)), 3)
    encoded = encode_share_state_key(key)
    written, read = java_echo(SHARE_STATE_KEY, kind, 0, encoded[2:])
    assert written == encoded[2:]
    assert read == {"groupId": "g", "topicId": uuid_text(key.topic_id), "partition": 3}


def test_java_reads_consumers_subscriptions(
    java_echo: JavaEcho, pytestconfig: pytest.Config
) -> None:
    budget = Budget(pytestconfig, seconds=1)
    maker = ValueMaker(budget.random)
    for _ in budget.rounds():
        for kind, name in enumerate(("subscription", "assignment")):
            message = load_message(f"consumer_protocol_{name}")
            for version in message.versions:
                value = message.struct_class(**maker.message(message, version))
                body = message.encode(version, value)
                written, read = java_echo(CONSUMER_PROTOCOL, kind, version, body)
                assert written == body, f"{value}, seed {budget.seed}"
                assert_same(schema_of(message).body, version, value, read)


def assert_same(
    schema: StructSchema, version: int, wirebroker_struct: Any, java: dict[str, Any]
) -> None:
    """Compare a struct with Java's JSON of it, which lacks tagged fields at their default."""
    read = _snake_cased(java)
    for field in schema.fields:
        value = getattr(wirebroker_struct, field.name)
        if version not in field.versions:
            assert field.name not in read, field.name
        elif field.type == "records":
            # Java's JSON does not say what is in them; the bytes were compared.
            assert (value is None) == (read.pop(field.name) is None)
        elif version in field.tagged_versions and field.name not in read:
            is_empty = field.default == "" and not value
            is_default = is_empty or field.struct is not None or value == field.default
            assert is_default, field.name
        else:
            _assert_same_value(field, version, value, read.pop(field.name))
    assert not read, f"Java has more: {read}"


def _snake_cased(java: dict[str, Any]) -> dict[str, Any]:
    return {snake_case(name): value for name, value in java.items()}


def _assert_same_value(field: Field, version: int, wirebroker_value: Any, java: Any) -> None:
    if wirebroker_value is None or java is None:
        assert wirebroker_value is None, field.name
        assert java is None, field.name
    elif isinstance(wirebroker_value, list):
        assert len(wirebroker_value) == len(java), field.name
        for wirebroker_element, java_element in zip(wirebroker_value, java, strict=True):
            _assert_same_value(field, version, wirebroker_element, java_element)
    elif field.struct is not None:
        assert_same(field.struct, version, wirebroker_value, java)
    elif field.type == "uuid":
        assert uuid_text(wirebroker_value) == java, field.name
    elif field.type == "bytes":
        assert wirebroker_value == base64.b64decode(java), field.name
    else:
        assert wirebroker_value == java, field.name
