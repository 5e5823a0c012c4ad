"""Benchmark results that are kept between runs are not measured again."""

from __future__ import annotations

import time

import pytest

from benchmarks.spark.kept_reads import KeptReads, Pace
from benchmarks.spark.spark_reads import Read, ReadWish

WISH = ReadWish("100 B", 100, 1_000, "lz4")


def test_pairs_and_topics_outlast_a_run_that_was_ended_within_a_line(tmp_path):
    path = tmp_path / "reads.jsonl"
    kept = KeptReads(path)
    assert not kept.is_filled(WISH)
    kept.fill(WISH)
    kept.add(WISH, Read(4.0, 2.0, 1.0), Read(1.0, 1.0, 0.0), 150.0)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"kind": "pair", "ca')
    kept = KeptReads(path)
    assert kept.is_filled(WISH)
    assert not kept.is_filled(WISH._replace(codec="zstd"))
    kept.add(WISH, Read(8.0, 2.0, 1.0), Read(1.0, 1.0, 0.0), 160.0)
    found = KeptReads(path).pairs_of(WISH)
    assert [each.seconds for each in found.before] == [4.0, 8.0]
    assert (found.rate_ratio, found.cpu_ratio, found.worker_mb) == (6.0, 3.0, 160.0)
    assert len(found.loads) == 2
    assert not KeptReads(path).pairs_of(WISH._replace(records=2_000)).before


def test_a_topic_that_was_deleted_with_its_case_is_made_again_for_more_pairs(tmp_path):
    kept = KeptReads(tmp_path / "reads.jsonl")
    kept.fill(WISH)
    kept.forget(WISH)
    for each in (kept, KeptReads(tmp_path / "reads.jsonl")):
        assert not each.is_filled(WISH)
    kept.fill(WISH)
    assert KeptReads(tmp_path / "reads.jsonl").is_filled(WISH)


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"kind": "pair", "case": "a"}', "\udc80"])
def test_a_file_of_something_else_is_named_with_its_line(tmp_path, line):
    path = tmp_path / "reads.jsonl"
    KeptReads(path).fill(WISH)
    with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(f"{line}\n")
    with pytest.raises(SystemExit, match=r"reads\.jsonl, line 2: .*no read"):
        KeptReads(path)


def test_a_step_begins_that_will_be_done_in_time_and_the_first_one_always():
    pace = Pace(minutes=1)
    assert pace.allows("fill", guess_s=600)
    assert not pace.allows("fill", guess_s=600)
    assert pace.allows("pair", guess_s=30)
    pace.note("pair", began=time.monotonic() - 90)
    assert not pace.allows("pair", guess_s=30)
    assert Pace(minutes=None).allows("pair", guess_s=1e9)
