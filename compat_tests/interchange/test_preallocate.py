"""Preallocated segments change brokers after a kill without loss."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from compat_tests.interchange.shared_folder import SharedFolder, address
from compat_tests.support.raw_requests import Requests, batch, record

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.java

SEGMENT_BYTES = 1 << 20
VALUE = b"x" * 300_000


def sizes(folder: SharedFolder) -> list[int]:
    (directory,) = folder.log_dirs
    return [file.stat().st_size for file in sorted((directory / "t-0").glob("*.log"))]


@pytest.mark.parametrize("first", ["wirebroker", pytest.param("apache", marks=pytest.mark.nightly)])
def test_a_preallocated_segment_survives_kills_under_both_brokers(
    tmp_path: Path, first: str
) -> None:
    folder = SharedFolder(tmp_path)
    other = "wirebroker" if first == "apache" else "apache"
    end_offset = 0
    stored = b""
    for kind in (first, other, first):
        with (
            folder.run(kind, "kill") as broker,
            contextlib.closing(Requests(address(broker))) as requests,
        ):
            if not stored:
                configs = {"preallocate": "true", "segment.bytes": str(SEGMENT_BYTES)}
                requests.create("t", 1, configs)
                assert sizes(folder) == [SEGMENT_BYTES]
            requests.wait_for_end("t", end_offset)
            assert bytes(requests.fetch("t", 0, 0).records or b"") == stored
            for _ in range(4):  # more than a segment holds
                assert requests.append("t", batch(record(0, b"k", VALUE))) == end_offset
                end_offset += 1
            stored = bytes(requests.fetch("t", 0, 0).records)
            # Closed segments are trimmed; this broker's active one has a whole segment's length.
            *closed, active = sizes(folder)
            assert active == SEGMENT_BYTES
            assert max(closed) < SEGMENT_BYTES
    assert end_offset == 12
