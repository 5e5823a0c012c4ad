"""Benchmark results that are kept between runs are not measured again."""

from __future__ import annotations

import time

import pytest

from benchmarks.spark.kept_reads import Pace, StoredReads
from benchmarks.spark.spark_reads import Read, ReadCase

WISH = ReadCase("100 B", 100, 1_000, "lz4")


def test_results_survive_a_run_killed_while_writing_a_line(tmp_path):
    path = tmp_path / "reads.jsonl"
    reads = StoredReads(path)
    assert not reads.is_filled(WISH)
    reads.fill(WISH)
    reads.add(WISH, Read(4.0, 2.0, 1.0), Read(1.0, 1.0, 0.0), 150.0)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"kind": "pair", "ca')
    reads = StoredReads(path)
    assert reads.is_filled(WISH)
    assert not reads.is_filled(WISH._replace(codec="zstd"))
    reads.add(WISH, Read(8.0, 2.0, 1.0), Read(1.0, 1.0, 0.0), 160.0)
    pairs = StoredReads(path).pairs_of(WISH)
    assert [read.seconds for read in pairs.before] == [4.0, 8.0]
    assert (pairs.rate_ratio, pairs.cpu_ratio, pairs.worker_mb) == (6.0, 3.0, 160.0)
    assert len(pairs.loads) == 2
    assert not StoredReads(path).pairs_of(WISH._replace(records=2_000)).before


def test_forgotten_topic_is_refilled_for_more_pairs(tmp_path):
    reads = StoredReads(tmp_path / "reads.jsonl")
    reads.fill(WISH)
    reads.forget(WISH)
    for loaded in (reads, StoredReads(tmp_path / "reads.jsonl")):
        assert not loaded.is_filled(WISH)
    reads.fill(WISH)
    assert StoredReads(tmp_path / "reads.jsonl").is_filled(WISH)


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"kind": "pair", "case": "a"}', "\udc80"])
def test_foreign_file_is_refused_naming_the_line(tmp_path, line):
    path = tmp_path / "reads.jsonl"
    StoredReads(path).fill(WISH)
    with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"{line}\n")
    with pytest.raises(SystemExit, match=r"reads\.jsonl, line 2: not a read"):
        StoredReads(path)


def test_step_starts_only_if_it_fits_the_time_except_the_first():
    pace = Pace(minutes=1)
    assert pace.allows("fill", guess_s=600)
    assert not pace.allows("fill", guess_s=600)
    assert pace.allows("pair", guess_s=30)
    pace.note("pair", began=time.monotonic() - 90)
    assert not pace.allows("pair", guess_s=30)
    assert Pace(minutes=None).allows("pair", guess_s=1e9)
