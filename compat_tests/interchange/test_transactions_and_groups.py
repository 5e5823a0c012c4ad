"""Transactions and share groups of both brokers in one data directory."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from compat_tests.clients import java
from compat_tests.interchange.contents import contents_of, read_transactions, types_of_groups
from compat_tests.interchange.shared_folder import SharedFolder, address
from compat_tests.support.raw_requests import Requests, batch, record
from compat_tests.support.transaction_requests import OpenTransaction
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.interchange.shared_folder import End

pytestmark = pytest.mark.java

LATEST = -1
READ_COMMITTED = 1


@contextlib.contextmanager
def serving(folder: SharedFolder, kind: str, end: End = "stop") -> Iterator[Requests]:
    with (
        folder.run(kind, end) as broker,
        contextlib.closing(Requests(address(broker))) as requests,
    ):
        yield requests


@pytest.fixture
def folder(tmp_path: Path) -> SharedFolder:
    return SharedFolder(tmp_path)


def make_transactions(requests: Requests) -> OpenTransaction:
    """Commit, abort and leave open one transaction each; return the producer of the last."""
    requests.create("t", 1)
    requests.ask_until_served(ApiKey.FIND_COORDINATOR, 2, {"key": "any", "key_type": 0})
    committed = OpenTransaction(requests, "committed")
    committed.append("t", b"c0", b"c1")
    committed.commit_offset("told", "t", 2)
    committed.end(committed=True)
    aborted = OpenTransaction(requests, "aborted")
    requests.wait_for_end("t", 3)
    aborted.append("t", b"a0", b"a1")
    aborted.commit_offset("never", "t", 5)
    aborted.end(committed=False)
    requests.wait_for_end("t", 6)
    requests.append("t", batch(record(0, b"k", b"plain")))
    left_open = OpenTransaction(requests, "open")
    assert left_open.append("t", b"o0", b"o1") == 7
    left_open.commit_offset("pending", "t", 9)
    requests.append("t", batch(record(0, b"k", b"plain")))
    return left_open


def view_of_committed(requests: Requests) -> tuple[int, list[int], bytes]:
    """Return the last stable offset, the starts of aborted transactions and the batches below."""
    end, _ = requests.offset("t", 0, LATEST, isolation_level=READ_COMMITTED)
    answer = requests.fetch("t", 0, 0, isolation_level=READ_COMMITTED)
    assert answer.last_stable_offset == end
    batches, aborted = read_transactions(requests, "t", 0, 0, end)
    return end, sorted(first for _, first in aborted), batches


@pytest.mark.parametrize(
    ("maker", "end"),
    [
        ("apache", "kill"),
        pytest.param("wirebroker", "stop", marks=pytest.mark.nightly),
        pytest.param("apache", "stop", marks=pytest.mark.nightly),
        pytest.param("wirebroker", "kill", marks=pytest.mark.nightly),
    ],
)
def test_other_broker_ends_open_transaction_and_reads_the_same(
    folder: SharedFolder, maker: str, end: End
) -> None:
    other = "wirebroker" if maker == "apache" else "apache"
    with serving(folder, maker, end) as requests:
        make_transactions(requests)
        before, committed = contents_of(requests), view_of_committed(requests)
    stable, aborted, _ = committed
    assert (stable, aborted) == (7, [3])
    assert before.offsets["told"] == {("t", 0): (2, "")}
    with serving(folder, other, end) as requests:
        assert contents_of(requests) == before
        assert view_of_committed(requests) == committed
        requests.append("t", batch(record(0, b"k", b"more")))
        assert view_of_committed(requests) == committed
        # The producer's restart aborts its open transaction.
        OpenTransaction(requests, "open")
        requests.wait_for_end("t", 12)
        requests.wait_for_end("t", 12, isolation_level=READ_COMMITTED)
        stable, aborted, _ = committed = view_of_committed(requests)
        assert (stable, aborted) == (12, [3, 7])
        before = contents_of(requests)
    with serving(folder, maker) as requests:
        assert view_of_committed(requests) == committed
        assert contents_of(requests) == before


def test_share_groups_keep_their_state(folder: SharedFolder) -> None:
    with folder.run("apache") as broker:
        with contextlib.closing(Requests(address(broker))) as requests:
            requests.create("t", 1)
            requests.append("t", batch(record(0, b"k", b"v")))
        read_by_share_group(broker.bootstrap)
    with serving(folder, "wirebroker") as requests:
        assert types_of_groups(requests) == {"shared": "share"}
        assert requests.try_join("shared").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert state_of_shares(requests)
        requests.append("t", batch(record(0, b"k", b"second")))
    with folder.run("apache") as broker:
        with contextlib.closing(Requests(address(broker))) as requests:
            assert types_of_groups(requests) == {"shared": "share"}
        # It continues: the first record is not delivered again.
        assert read_by_share_group(broker.bootstrap) == ["second"]


def read_by_share_group(bootstrap: str) -> list[str]:
    java.run(
        bootstrap,
        java.CONFIGS,
        *("--alter", "--entity-type", "groups", "--entity-name", "shared"),
        *("--add-config", "share.auto.offset.reset=earliest"),
    )
    printed = java.run(
        bootstrap,
        "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
        *("--topic", "t", "--group", "shared", "--max-messages", "1", "--timeout-ms", "20000"),
    )
    return [line for line in printed.splitlines() if not line.startswith("Processed")]


def state_of_shares(requests: Requests) -> int:
    return sum(
        requests.offset("__share_group_state", partition, LATEST)[0] for partition in range(2)
    )
