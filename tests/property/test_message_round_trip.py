"""Round trips of every message in every version: our codec against itself, kio, and noise.

kio is an independent implementation, generated from Kafka's definitions. `tame` values avoid what
it cannot represent: unknown error codes (it makes enums) and timestamps after year 9999 (it makes
datetimes).
"""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from tests.support.harness.budget import SharedBudget
from tests.support.protocol.message_values import Case, ValueMaker, all_cases, kio_knows
from wirebroker.codecs.errors import MalformedFrameError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import pytest

CASES = all_cases()


@cache
def _kio(case: Case) -> tuple[Callable[..., Any], Callable[..., None]]:
    load = load_request_schema if case.is_request else load_response_schema
    entity = load(int(case.key), case.version)
    return entity_reader(entity), entity_writer(entity)


def _written_by_kio(case: Case, data: bytes) -> bytes:
    read, write = _kio(case)
    entity, length = read(data, 0)
    assert length == len(data), f"{case}: kio read {length} of {len(data)} bytes"
    buffer = io.BytesIO()
    write(buffer, entity)
    return buffer.getvalue()


def test_every_message_survives_encoding_and_decoding(
    pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = SharedBudget(pytestconfig, seconds=6)
    maker = ValueMaker(budget.random)
    count = 0
    for _ in budget.rounds():
        for case in CASES:
            message = case.message
            value = message.struct_class(**maker.message(message, case.version))
            data = message.encode(case.version, value)
            decoded = message.decode(case.version, data)
            assert decoded == value, f"{case}, seed {budget.seed}"
            assert message.encode(case.version, decoded) == data, f"{case}, seed {budget.seed}"
            count += 1
    with capsys.disabled():
        print(f"\n{count} messages round trip, seed {budget.seed}")  # noqa: T201


def test_kio_reads_what_we_write_and_writes_the_same(
    pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = SharedBudget(pytestconfig, seconds=6)
    maker = ValueMaker(budget.random, tame=True)
    cases = [case for case in CASES if kio_knows(case.key, case.version)]
    count = 0
    for _ in budget.rounds():
        for case in cases:
            data = case.message.encode(case.version, maker.message(case.message, case.version))
            assert _written_by_kio(case, data) == data, f"{case}, seed {budget.seed}"
            count += 1
    with capsys.disabled():
        print(f"\n{count} messages through kio, seed {budget.seed}")  # noqa: T201


def test_every_prefix_of_a_message_is_refused(
    pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = SharedBudget(pytestconfig, seconds=6)
    maker = ValueMaker(budget.random, most_elements=1)
    count = 0
    for _ in budget.rounds():
        for case in CASES:
            data = case.message.encode(case.version, maker.message(case.message, case.version))
            # Long texts are cut at some places only, short ones everywhere.
            step = 1 + len(data) // 200
            for length in range(0, len(data), step):
                assert not _is_read(case, data[:length]), f"{case}, seed {budget.seed}"
                count += 1
    with capsys.disabled():
        print(f"\n{count} prefixes refused, seed {budget.seed}")  # noqa: T201


def test_a_message_with_a_changed_byte_is_read_or_refused(
    pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = SharedBudget(pytestconfig, seconds=6)
    maker = ValueMaker(budget.random, most_elements=2)
    read = refused = 0
    for _ in budget.rounds():
        for case in CASES:
            data = bytearray(
                case.message.encode(case.version, maker.message(case.message, case.version))
            )
            for _ in range(5 if data else 0):
                changed = data.copy()
                position = budget.random.randrange(len(data))
                changed[position] = budget.random.choice(
                    (0x00, 0x7F, 0x80, 0xFF, changed[position] ^ 1)
                )
                if _is_read(case, changed):
                    read += 1
                else:
                    refused += 1
    assert refused
    with capsys.disabled():
        print(f"\n{read} changed messages read, {refused} refused, seed {budget.seed}")  # noqa: T201


def test_any_byte_string_is_read_or_refused(pytestconfig: pytest.Config) -> None:
    budget = SharedBudget(pytestconfig, seconds=0)
    scale = pytestconfig.option.budget_scale * pytestconfig.option.share

    @hypothesis_seed(budget.seed)
    @settings(max_examples=max(1, int(3000 * scale)), deadline=None, database=None)
    @given(case=st.sampled_from(CASES), data=st.binary(max_size=200))
    def check(case: Case, data: bytes) -> None:
        _is_read(case, data)

    check()


def _is_read(case: Case, data: bytes | bytearray) -> bool:
    """Return whether the bytes are readable; if so, check that rewriting them is stable."""
    message = case.message
    try:
        value = message.decode(case.version, data)
    except MalformedFrameError:
        return False
    written = message.encode(case.version, value)
    encoded = message.encode(case.version, message.decode(case.version, written))
    assert encoded == written, case
    return True
