"""A query's rows are all counted, and it stops between batches."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from wirebroker.pipelines.run.query_watch import QueryWatch

ROWS = 10


class _Query:
    """A query like Spark's, which completes some batches between two polls."""

    def __init__(self, batches: int, per_look: int, capacity: int = 100) -> None:
        self.recentProgress: deque[dict[str, Any]] = deque(maxlen=capacity)
        self.stopped_at: int | None = None
        self._batches = batches
        self._per_look = per_look
        self._done = 0

    def awaitTermination(self, _: float) -> bool:  # noqa: N802 - Spark's
        if self.stopped_at is not None:
            return True
        for _ in range(min(self._per_look, self._batches - self._done)):
            # A poll without work precedes each, under the next batch number.
            for index, rows in enumerate((0, ROWS)):
                time = f"2026-01-31T00:00:{self._done:05}.{index}"
                progress = {"batchId": self._done, "timestamp": time, "numInputRows": rows}
                self.recentProgress.append(progress)
            self._done += 1
        return self._done == self._batches

    def stop(self) -> None:
        self.stopped_at = self._done


def test_batches_beyond_sparks_progress_list_are_counted():
    query = _Query(1_000, per_look=40)
    reported: list[dict[str, Any]] = []
    watch = QueryWatch(query, None, reported.append)
    watch.follow()
    assert watch.rows == 1_000 * ROWS
    assert [progress["batchId"] for progress in reported] == list(range(1_000))


@pytest.mark.parametrize("asked_behind", [1, 3])
def test_requested_stop_waits_for_the_current_batch(asked_behind):
    query = _Query(50, per_look=1)
    stop: Any = SimpleNamespace(is_requested=False)
    batch_ids: list[int] = []

    def tell(progress: dict[str, Any]) -> None:
        batch_ids.append(progress["batchId"])
        stop.is_requested = len(batch_ids) >= asked_behind

    watch = QueryWatch(query, stop, tell)
    watch.follow()
    assert query.stopped_at == asked_behind + 1
    assert watch.rows == (asked_behind + 1) * ROWS


def test_failed_query_raises_its_error():
    class _Failing(_Query):
        def awaitTermination(self, _: float) -> bool:  # noqa: N802 - Spark's
            raise RuntimeError("records are gone")

    with pytest.raises(RuntimeError, match="records are gone"):
        QueryWatch(_Failing(1, 1), None, None).follow()


def test_unreadable_progress_keeps_the_cause_of_a_failed_query():
    cause = RuntimeError("Spark has ended")

    class _Ended:
        def awaitTermination(self, _: float) -> bool:  # noqa: N802 - Spark's
            raise cause

        @property
        def recentProgress(self) -> Any:  # noqa: N802 - Spark's
            raise ConnectionRefusedError("no answer")

    query: Any = _Ended()
    with pytest.raises(RuntimeError) as raised:
        QueryWatch(query, None, None).follow()
    assert raised.value is cause


def test_unreadable_progress_after_the_end_is_an_error():
    class _Ended(_Query):
        recentProgress = property(lambda _: 1 // 0, lambda *_: None)  # noqa: N815 - Spark's

    with pytest.raises(ZeroDivisionError):
        QueryWatch(_Ended(0, 1), None, None).follow()
