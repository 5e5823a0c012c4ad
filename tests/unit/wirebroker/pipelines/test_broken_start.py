"""Only files of an interrupted start are removed."""

from __future__ import annotations

import pytest

from wirebroker.pipelines.spark.broken_start import clear_broken_start


@pytest.mark.parametrize(
    ("names", "removed"),
    [
        ([], 0),
        ([".0.f00.tmp", "..0.f00.tmp.crc"], 2),
        (["0", ".0.crc", ".1.f00.tmp"], 0),
        (["strange"], 0),
        ([".hidden"], 0),
    ],
)
def test_temporary_plans_are_removed_where_no_batch_was_planned(tmp_path, names, removed):
    assert clear_broken_start(tmp_path) == 0
    (tmp_path / "offsets").mkdir()
    for name in names:
        (tmp_path / "offsets" / name).touch()
    assert clear_broken_start(tmp_path) == removed
    remaining = {path.name for path in (tmp_path / "offsets").iterdir()}
    assert remaining == (set() if removed else set(names))
