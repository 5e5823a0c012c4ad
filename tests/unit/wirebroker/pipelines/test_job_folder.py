"""A job's directory: its identity, and the limits of its batches."""

from __future__ import annotations

import pytest

from wirebroker.pipelines.job.errors import PositionError
from wirebroker.pipelines.job.job_folder import BatchPlan, JobFolder


def test_job_folder_keeps_its_identity_and_last_plans(tmp_path):
    first = JobFolder(tmp_path / "one", "job", "topic")
    assert first.find(0) is None
    plans = [BatchPlan(number, number + 1, 0, {"at": number}) for number in range(4)]
    for plan in plans:
        first.keep(plan)
    again = JobFolder(tmp_path / "one", "job", "topic")
    assert again.identity == first.identity
    assert again.identity != JobFolder(tmp_path / "two", "job", "topic").identity
    assert [again.find(number) for number in range(4)] == [None, None, *plans[2:]]


def test_job_folder_of_another_job_is_refused(tmp_path):
    JobFolder(tmp_path, "job", "topic")
    with pytest.raises(PositionError, match="is the checkpoint of"):
        JobFolder(tmp_path, "job", "other")


def test_job_folder_keeps_the_source_topic_id_and_restarts_with_a_new_one(tmp_path):
    first = JobFolder(tmp_path, "job", "topic")
    assert (first.source_id, first.first_batch, first.spark) == ("", 0, str(tmp_path / "spark"))
    first.take_source("A")
    for number in (0, 1):
        first.keep(BatchPlan(number, 1, 0, {}))
    assert JobFolder(tmp_path, "job", "topic").source_id == "A"
    first.restart("B")
    again = JobFolder(tmp_path, "job", "topic")
    for folder in (first, again):
        state = (folder.source_id, folder.first_batch, folder.spark)
        assert state == ("B", 2, str(tmp_path / "spark-B"))
    assert again.identity == first.identity
