"""Deduplication with each store."""

from __future__ import annotations

import re
import sqlite3
from types import SimpleNamespace
from typing import Any

import pytest

from wirebroker.dedup import (
    DatabaseStore,
    Deduplicator,
    MemoryStore,
    SqliteStore,
    message_id,
)


class SetClock:
    def __init__(self) -> None:
        self.ms = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


def record(identity: str | None):
    headers = [] if identity is None else [message_id(identity)]
    return SimpleNamespace(headers=headers, key=b"k")


class ConfluentMessage:
    """Fields are methods, as in confluent-kafka."""

    def headers(self):
        return [message_id("m1")]


@pytest.fixture(params=["memory", "sqlite", "numeric", "named"])
def store(request, tmp_path):
    if request.param == "memory":
        yield MemoryStore()
        return
    path = tmp_path / "seen.sqlite"
    made = (
        SqliteStore(path)
        if request.param == "sqlite"
        else DatabaseStore(sqlite3.connect(path), table="seen", paramstyle=request.param)
    )
    yield made
    made.connection.close()


def test_a_message_is_new_once(store):
    deduplicator = Deduplicator(store)
    seen = []
    for identity in ("m1", "m2", "m1"):
        with deduplicator.once(record(identity)) as is_new:
            seen.append(is_new)
    assert seen == [True, True, False]
    assert deduplicator.duplicate_count == 1


def test_a_message_that_failed_is_new_again(store):
    deduplicator = Deduplicator(store)
    with pytest.raises(RuntimeError), deduplicator.once(record("m1")):
        raise RuntimeError
    with deduplicator.once(record("m1")) as is_new:
        assert is_new


def test_ids_beyond_the_window_and_the_count_are_forgotten(store):
    clock = SetClock()
    deduplicator = Deduplicator(store, window_s=10, most=3, clock=clock)
    for number in range(5):
        with deduplicator.once(record(f"m{number}")):
            pass
        clock.ms += 1
    deduplicator.trim()
    known = [is_known(deduplicator, f"m{number}") for number in range(5)]
    assert known == [False, False, True, True, True]
    clock.ms += 10_001
    deduplicator.trim()
    assert not is_known(deduplicator, "m4")


def is_known(deduplicator, identity):
    try:
        with deduplicator.once(record(identity)) as is_new:
            raise LookupError  # marks nothing
    except LookupError:
        return not is_new


def test_changes_of_the_application_are_committed_with_the_mark(tmp_path):
    store = SqliteStore(tmp_path / "shop.sqlite")
    store.connection.execute("CREATE TABLE orders (number INTEGER)")
    deduplicator = Deduplicator(store)
    for fails in (True, False, False):
        try:
            with deduplicator.once(record("m1")) as is_new:
                if is_new:
                    store.connection.execute("INSERT INTO orders VALUES (1)")
                if fails:
                    raise RuntimeError
        except RuntimeError:
            pass
    assert store.connection.execute("SELECT count(*) FROM orders").fetchone() == (1,)
    store.connection.close()


def test_marks_survive_a_restart(tmp_path):
    for expected in (True, False):
        store = SqliteStore(tmp_path / "seen.sqlite")
        with Deduplicator(store).once(record("m1")) as is_new:
            assert is_new is expected
        store.connection.close()


def test_a_mark_of_another_consumer_makes_a_duplicate(tmp_path, monkeypatch):
    """Both consumers looked before either of them marked."""
    path = tmp_path / "seen.sqlite"
    first, second = SqliteStore(path), SqliteStore(path)
    run = second._run

    def look_too_early(statement, *arguments):
        if statement.startswith("SELECT"):
            return SimpleNamespace(fetchone=lambda: None)
        return run(statement, *arguments)

    monkeypatch.setattr(second, "_run", look_too_early)
    with Deduplicator(first).once(record("m1")):
        pass
    with Deduplicator(second).once(record("m1")) as is_new:
        assert not is_new
    first.connection.close()
    second.connection.close()


def test_the_id_may_come_from_a_function_or_from_confluent_kafka():
    deduplicator = Deduplicator(MemoryStore(), id_of=lambda each: each.key)
    with deduplicator.once(record(None)) as is_new:
        assert is_new
    with Deduplicator(MemoryStore()).once(ConfluentMessage()) as is_new:
        assert is_new


def test_bad_use_is_refused():
    deduplicator = Deduplicator(MemoryStore())
    with pytest.raises(ValueError, match="no id"), deduplicator.once(record(None)):
        pass
    with pytest.raises(ValueError, match="at most 512"), deduplicator.once(record("x" * 513)):
        pass
    with pytest.raises(ValueError, match="positive"):
        Deduplicator(MemoryStore(), window_s=0)
    with pytest.raises(ValueError, match="not a table"):
        DatabaseStore(None, table="a; b")
    with pytest.raises(ValueError, match="paramstyle"):
        DatabaseStore(None, paramstyle="positional")


@pytest.mark.parametrize(
    "connection",
    [
        pytest.param(lambda: sqlite3.connect(":memory:", isolation_level=None), id="sqlite3"),
        pytest.param(lambda: SimpleNamespace(autocommit=True), id="psycopg and others"),
    ],
)
def test_a_connection_in_autocommit_mode_is_refused(connection):
    """Its mark would outlive a failure, so the message would be lost."""
    with pytest.raises(ValueError, match="turn autocommit off"):
        DatabaseStore(connection())


def test_a_consumer_that_often_restarts_forgets_old_ids(tmp_path):
    clock = SetClock()
    for identity in ("m1", "m2", "m1"):
        store = SqliteStore(tmp_path / "seen.sqlite")
        with Deduplicator(store, window_s=10, clock=clock).once(record(identity)) as is_new:
            assert is_new
        store.connection.close()
        clock.ms += 11_000


def test_a_new_id_is_given_to_each_message():
    assert message_id() != message_id()
    assert message_id("order-7") == ("message-id", b"order-7")


def test_a_trim_finds_old_ids_by_an_index(tmp_path):
    for _ in range(2):
        store = SqliteStore(tmp_path / "seen.sqlite")
        plan = store.connection.execute(
            "EXPLAIN QUERY PLAN DELETE FROM processed_messages WHERE seen_ms < 5"
        ).fetchall()
        assert "INDEX" in str(plan)
        store.connection.close()


def test_a_trim_of_the_memory_store_reads_no_recent_ids():
    class Counted(dict[str, int]):
        read = 0

        def items(self):
            for pair in super().items():
                self.read += 1
                yield pair

    store = MemoryStore()
    store._seen_ms = Counted({f"m{number}": number for number in range(1_000)})
    store.trim(10, 995)
    assert min(store._seen_ms.values()) == 10
    assert store._seen_ms.read == 11


def test_a_failed_trim_does_not_make_a_processed_message_fail(tmp_path, caplog):
    store = SqliteStore(tmp_path / "seen.sqlite")
    store.connection.execute("CREATE TABLE orders (number INTEGER)")
    store.connection.execute(
        "CREATE TRIGGER keep BEFORE DELETE ON processed_messages"
        " BEGIN INSERT INTO orders VALUES (9); SELECT RAISE(FAIL, 'read only'); END"
    )
    clock = SetClock()
    with Deduplicator(store, clock=clock).once(record("m1")):
        pass
    clock.ms += 1_000_000_000
    deduplicator = Deduplicator(store, clock=clock)
    with deduplicator.once(record("m2")) as is_new:
        assert is_new
    assert "cannot delete old ids" in caplog.text
    assert "read only" in caplog.text
    assert not store.connection.in_transaction
    with pytest.raises(sqlite3.IntegrityError, match="read only"):
        deduplicator.trim()
    assert not store.connection.in_transaction
    assert not is_known(Deduplicator(store), "m3")
    store.connection.close()


def test_a_long_id_that_is_no_text_is_shortened_in_the_error():
    identity: Any = ["m"] * 100_000
    deduplicator = Deduplicator(MemoryStore(), id_of=lambda _record: identity)
    with (
        pytest.raises(TypeError, match="an id must be str or bytes") as caught,
        deduplicator.once(record("m1")),
    ):
        pass
    assert len(str(caught.value)) < 300


def number_of(_record):
    return 0


@pytest.mark.parametrize("identity", [0, 7, 1.5, bytearray(b"m1"), ("m", 1)])
def test_an_id_that_is_no_text_is_refused_with_the_name_of_the_function(identity, monkeypatch):
    deduplicator = Deduplicator(MemoryStore(), id_of=lambda _record: identity)
    with (
        pytest.raises(TypeError, match=rf"<lambda> returned {re.escape(repr(identity))}"),
        deduplicator.once(record("m1")),
    ):
        pass
    named = Deduplicator(MemoryStore(), id_of=number_of)
    with pytest.raises(TypeError, match="number_of returned 0"), named.once(record("m1")):
        pass


def test_ids_that_differ_in_case_or_spaces_are_two(store):
    deduplicator = Deduplicator(store)
    for identity in ("m1", "M1", "m1 "):
        with deduplicator.once(record(identity)) as is_new:
            assert is_new


@pytest.mark.parametrize("collation", ["NOCASE", "RTRIM"])
def test_a_column_that_does_not_compare_exactly_is_refused(collation):
    connection = sqlite3.connect(":memory:")
    connection.execute(
        f"CREATE TABLE seen (id VARCHAR(512) COLLATE {collation} PRIMARY KEY, seen_ms BIGINT)"
    )
    with pytest.raises(ValueError, match="column id of table seen does not compare"):
        DatabaseStore(connection, table="seen")
    connection.close()
