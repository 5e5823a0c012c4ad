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

    def __init__(self, batches: int, per_look: int, kept: int = 100) -> None:
        self.recentProgress: deque[dict[str, Any]] = deque(maxlen=kept)
        self.stopped_at: int | None = None
        self._batches = batches
        self._per_look = per_look
        self._done = 0

    def awaitTermination(self, _: float) -> bool:  # noqa: N802 - Spark's
        if self.stopped_at is not None:
            return True
        for _ in range(min(self._per_look, self._batches - self._done)):
            # A poll without work precedes each, under the next batch number.
            for place, rows in enumerate((0, ROWS)):
                time = f"2026-01-31T00:00:{self._done:05}.{place}"
                told = {"batchId": self._done, "timestamp": time, "numInputRows": rows}
                self.recentProgress.append(told)
            self._done += 1
        return self._done == self._batches

    def stop(self) -> None:
        self.stopped_at = self._done


def test_more_batches_than_spark_keeps_are_counted():
    query = _Query(1_000, per_look=40)
    told: list[dict[str, Any]] = []
    watch = QueryWatch(query, None, told.append)
    watch.follow()
    assert watch.rows == 1_000 * ROWS
    assert [each["batchId"] for each in told] == list(range(1_000))


@pytest.mark.parametrize("asked_behind", [1, 3])
def test_an_end_that_is_asked_for_comes_behind_the_batch_at_work(asked_behind):
    query = _Query(50, per_look=1)
    stop: Any = SimpleNamespace(is_asked=False)
    told: list[int] = []

    def tell(progress: dict[str, Any]) -> None:
        told.append(progress["batchId"])
        stop.is_asked = len(told) >= asked_behind

    watch = QueryWatch(query, stop, tell)
    watch.follow()
    assert query.stopped_at == asked_behind + 1
    assert watch.rows == (asked_behind + 1) * ROWS


def test_a_query_that_fails_is_not_passed_over():
    class _Failing(_Query):
        def awaitTermination(self, _: float) -> bool:  # noqa: N802 - Spark's
            raise RuntimeError("records are gone")

    with pytest.raises(RuntimeError, match="records are gone"):
        QueryWatch(_Failing(1, 1), None, None).follow()


def test_a_query_whose_progress_cannot_be_read_keeps_its_cause():
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


def test_progress_that_cannot_be_read_at_the_end_is_an_error():
    class _Ended(_Query):
        recentProgress = property(lambda _: 1 // 0, lambda *_: None)  # noqa: N815 - Spark's

    with pytest.raises(ZeroDivisionError):
        QueryWatch(_Ended(0, 1), None, None).follow()
