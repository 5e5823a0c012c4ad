"""The format of the pending topic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wirebroker.delivery.delivery_kit import NOW, MachineRun
from wirebroker.base.dead_letter_headers import read_dead_letter_headers
from wirebroker.delivery.model.entry import (
    EntryCommand,
    EntryFormatError,
    EntryKind,
    PendingEntry,
    decode_entry,
    encode_entry,
)

IDS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50)
BYTES = st.none() | st.binary(max_size=50)
ENTRIES = st.builds(
    PendingEntry,
    name=st.just("deliver/0/1/2"),
    due_ms=st.integers(0, 1 << 62),
    target=st.sampled_from(["orders", "a" * 249]),
    partition=st.none() | st.integers(0, 999),
    delivery_id=IDS,
    expires_ms=st.none() | st.integers(0, 1 << 62),
    attempt=st.integers(0, 100),
    dead_letters=st.just("deliver.dead-letters"),
    key=BYTES,
    value=BYTES,
    headers=st.lists(st.tuples(st.sampled_from(["a", "trace"]), BYTES), max_size=3).map(tuple),
)


@given(ENTRIES)
def test_entries_are_read_as_they_were_written(entry):
    assert decode_entry(entry.name, encode_entry(entry)) == entry


@given(IDS)
def test_commands_are_read_as_they_were_written(identity):
    entry = None if identity else "deliver/0/1/2"
    command = EntryCommand("command/1", EntryKind.HURRY, identity, entry)
    assert decode_entry("command/1", encode_entry(command)) == command


@given(st.binary(max_size=80))
def test_any_bytes_are_an_entry_or_a_format_error(value):
    try:
        entry = decode_entry("n", value)
    except EntryFormatError:
        return
    assert entry.name == "n"


def test_the_format_is_fixed():
    entry = PendingEntry(
        *("d/0/1/2", 258, "orders", None, "x", None, 0, "d.dead-letters", b"k", b"v", ())
    )
    assert encode_entry(entry) == (
        b"\x01\x01\x00\x01\x00\x00\x00\x19\x00\x00\x00\x00\x00\x00\x01\x02x"
        b"orders\0d.dead-letters\0\0\0000\x10\x00\x00\x00\x02k\x02v\x00"
    )


# Other software may give its entries other names

NAMES = pytest.mark.parametrize("name", ["my-own-name", "mine/1", "a/b/c/d"])


def foreign_entry(name: str, target: str) -> tuple[bytes, bytes]:
    """Return a valid entry's record, as other software may write it."""
    fields = (target, None, None, None, 0, "deliver.dead-letters", None, b"v", ())
    return name.encode(), encode_entry(PendingEntry(name, NOW, *fields))


@NAMES
def test_an_entry_with_another_name_is_delivered(name: str) -> None:
    run = MachineRun()
    run.log.append(foreign_entry(name, "orders"))
    run.apply()
    assert [record.value for record in run.run(NOW)] == [b"v"]


@NAMES
def test_an_entry_with_another_name_becomes_a_dead_letter(name: str) -> None:
    run = MachineRun()
    run.log.append(foreign_entry(name, "missing"))
    run.apply()
    (letter,) = run.run(NOW)
    fields = read_dead_letter_headers(letter.headers)
    assert letter.topic == "deliver.dead-letters"
    assert (fields["topic"], fields["partition"], fields["offset"]) == ("deliver", "0", "0")
