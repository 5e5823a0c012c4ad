"""Round trips of the records of newer groups and of share states, and noise."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st

from tests.support.harness.budget import SharedBudget
from tests.support.protocol.message_values import TEXTS, ValueMaker
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    RegularExpressionKey,
    WholeGroupKey,
    decode_record_key,
    decode_record_value,
    group_record,
    group_record_message,
    group_record_tombstone,
)
from wirebroker.codecs.share_state_records import (
    ShareStateKey,
    ShareStateKind,
    decode_share_state_key,
    decode_share_state_value,
    share_state_message,
    share_state_record,
    share_state_tombstone,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    import pytest

    from wirebroker.codecs.coordinator_records import CoordinatorRecord
    from wirebroker.codecs.message import Message


class Case(NamedTuple):
    """One kind of record, with its functions."""

    kind: GroupRecordKind | ShareStateKind
    message: Message
    make: Callable[..., CoordinatorRecord]
    tombstone: Callable[[Any], CoordinatorRecord]
    decode_key: Callable[[bytes], Any]
    decode_value: Callable[[bytes], Any]


CASES = [
    *(
        Case(
            kind,
            group_record_message(kind),
            group_record,
            group_record_tombstone,
            decode_record_key,
            partial(decode_record_value, kind),
        )
        for kind in GroupRecordKind
    ),
    *(
        Case(
            kind,
            share_state_message(kind),
            share_state_record,
            share_state_tombstone,
            decode_share_state_key,
            partial(decode_share_state_value, kind),
        )
        for kind in ShareStateKind
    ),
]


def key_of(kind: GroupRecordKind | ShareStateKind, random: Random) -> Any:
    group_id = random.choice(TEXTS)
    name = kind.name
    if isinstance(kind, ShareStateKind):
        return ShareStateKey(kind, group_id, random.randbytes(16), random.randrange(2**31))
    if "_MEMBER" in name:
        return GroupMemberKey(kind, group_id, random.choice(TEXTS))
    if name.endswith("_EXPRESSION"):
        return RegularExpressionKey(kind, group_id, random.choice(TEXTS))
    return WholeGroupKey(kind, group_id)


def records(
    budget: SharedBudget, maker: ValueMaker
) -> Iterator[tuple[Case, Any, dict[str, Any], CoordinatorRecord]]:
    """Yield a record of each kind, with its key and its fields, until the budget is used."""
    for _ in budget.rounds():
        for case in CASES:
            key = key_of(case.kind, budget.random)
            fields = maker.message(case.message, 0)
            yield case, key, fields, case.make(key, **fields)


def test_every_record_survives_encoding_and_decoding(
    pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = SharedBudget(pytestconfig, seconds=1)
    count = 0
    for case, key, fields, record in records(budget, ValueMaker(budget.random)):
        assert record.value is not None
        decoded_key = case.decode_key(record.key)
        assert (type(decoded_key), decoded_key) == (type(key), key), f"seed {budget.seed}"
        value = case.decode_value(record.value)
        assert value == case.message.struct_class(**fields), f"{case.kind!r}, seed {budget.seed}"
        assert case.tombstone(key) == (record.key, None)
        count += 1
    with capsys.disabled():
        print(f"\n{count} records round trip, seed {budget.seed}")  # noqa: T201


def test_every_prefix_of_a_record_is_refused(pytestconfig: pytest.Config) -> None:
    budget = SharedBudget(pytestconfig, seconds=1)
    for case, _, _, record in records(budget, ValueMaker(budget.random, most_elements=1)):
        assert record.value is not None
        for length in range(2, len(record.key)):
            assert not is_read(case.decode_key, record.key[:length]), f"seed {budget.seed}"
        for length in range(0, len(record.value), 1 + len(record.value) // 200):
            prefix = record.value[:length]
            assert not is_read(case.decode_value, prefix), f"{case.kind!r}, seed {budget.seed}"


def test_any_bytes_are_read_or_refused(pytestconfig: pytest.Config) -> None:
    scale = pytestconfig.option.budget_scale * pytestconfig.option.share
    budget = SharedBudget(pytestconfig, seconds=0)

    @hypothesis_seed(budget.seed)
    @settings(max_examples=max(1, int(2000 * scale)), deadline=None, database=None)
    @given(case=st.sampled_from(CASES), data=st.binary(max_size=100))
    def check(case: Case, data: bytes) -> None:
        is_read(case.decode_key, int(case.kind).to_bytes(2) + data)
        for value in (data, b"\x00\x00" + data):
            is_read(case.decode_value, value)

    check()


def is_read(decode: Callable[[bytes], object], data: bytes) -> bool:
    try:
        decode(data)
    except (MalformedFrameError, KafkaError):
        return False
    return True
