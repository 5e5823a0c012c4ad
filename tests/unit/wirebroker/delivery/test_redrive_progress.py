"""The progress of a redrive, as an offset with metadata."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebroker.delivery.letters.progress import RedriveProgress


@given(st.integers(0, 50), st.lists(st.integers(0, 80)))
def test_progress_is_a_set_of_offsets(start, added):
    progress = RedriveProgress(start)
    model = set(range(start))
    for offset in added:
        progress.add(offset)
        model.add(offset)
        progress = RedriveProgress(progress.offset, progress.metadata)
    assert [offset for offset in range(100) if progress.contains(offset)] == sorted(model)
    assert progress.offset == next(offset for offset in range(200) if offset not in model)


@given(st.integers(0, 60), st.lists(st.integers(0, 50)))
def test_deleted_records_count_as_redriven(start, added):
    progress = RedriveProgress(0)
    for offset in added:
        progress.add(offset)
    progress.begin_at(start)
    model = set(range(start)) | set(added)
    assert [offset for offset in range(100) if progress.contains(offset)] == sorted(model)


def test_other_metadata_is_refused():
    with pytest.raises(ValueError, match="not a list"):
        RedriveProgress(0, "hello")
