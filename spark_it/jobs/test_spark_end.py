"""The end of Spark's Java process is reported, and hides no other error."""

from __future__ import annotations

import os
import signal
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from spark_it.kit import records
from spark_it.kit.faulty_runs import Driver, told
from spark_it.tools import session
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

pytestmark = [pytest.mark.nightly, pytest.mark.java]

ENDED = "Spark's process has ended: start the job again"


def unreadable_error(text_error: Exception) -> Exception:
    """Return an error of Spark that asked the ended process for its text."""
    from pyspark.errors import PySparkException

    class UnreadableError(PySparkException):
        def __str__(self) -> str:
            raise text_error

    return UnreadableError("no text")


@pytest.mark.parametrize("error_name", ["Py4JError", "Py4JNetworkError", "ConnectionRefusedError"])
@pytest.mark.parametrize("kind", ["directories", "job"])
def test_end_of_spark_raises_one_error_with_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, error_name: str
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, *session.python_folders()])
    from py4j import protocol

    from wirebroker.pipelines.commands import command_line, job_commands
    from wirebroker.pipelines.job.errors import PipelineError
    from wirebroker.pipelines.run.job_run import StopRequest
    from wirebroker.pipelines.spark import spark_start

    def stop() -> None:
        raise ConnectionRefusedError("at stop")

    def running() -> Any:
        if kind == "directories":
            return command_line._spark("archive", {}, tmp_path / "log")
        job = SimpleNamespace(name="job", spark={})
        return job_commands._session(job, {}, tmp_path / "log", StopRequest())

    monkeypatch.setattr(spark_start, "start_spark", lambda *_: SimpleNamespace(stop=stop))
    monkeypatch.setattr(StopRequest, "heed_signals", lambda _: None)
    cause: Exception = getattr(protocol, error_name, ConnectionRefusedError)("no answer")
    with pytest.raises(PipelineError, match=ENDED) as raised, running():
        raise cause
    assert raised.value.__cause__ is cause
    with pytest.raises(PipelineError, match=ENDED), running():
        raise unreadable_error(cause)
    with pytest.raises(PipelineError, match="another reason"), running():
        raise PipelineError("another reason")
    with running():
        pass


@pytest.mark.timeout(600)
def test_archive_ends_with_one_line_when_spark_is_killed(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    records.create_topic(broker.bootstrap, topic, partitions=1)
    records.write(broker.bootstrap, topic, range(4_000), partitions=1)
    settings = session.settings_for(tmp_path)
    arguments = ["--path", str(broker.data_dir), "--topics", topic]
    arguments += ["--target", str(tmp_path / "archive"), "--records-per-batch", "50"]
    arguments += ["--metrics", str(tmp_path / "metrics.jsonl")]
    driver = Driver(tmp_path, "archive", *arguments, settings=settings)
    eventually(lambda: bool(told(tmp_path, "batch")) or driver.status is not None, timeout_s=300.0)
    java = driver.java()
    assert java is not None
    os.kill(java, signal.SIGKILL)
    assert driver.wait() == 1
    log = (tmp_path / "driver.log").read_text(encoding="utf-8")
    assert log.splitlines()[-1] == f"archive: {ENDED}"
    assert "Traceback" not in log
