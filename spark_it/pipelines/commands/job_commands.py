"""Commands that run jobs from files."""

from __future__ import annotations

import argparse
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.base.clock import SystemClock
from wirebroker.pipelines.delivery.delivery import Target, folder_of, make_topics
from wirebroker.pipelines.delivery.rights import refusal_of
from wirebroker.pipelines.ingest.ingest import Ingest, IngestJob
from wirebroker.pipelines.job.job_file import described, kafka_settings, load_job
from wirebroker.pipelines.job.job_folder import JobFolder
from wirebroker.pipelines.job.noise_file import NOISE_FILE, noise_in
from wirebroker.pipelines.replay.replay import Replay, ReplayJob
from wirebroker.pipelines.run.job_run import JobRun, StopRequest
from wirebroker.pipelines.run.reporter import Reporter, WorkTicker
from wirebroker.pipelines.source.source_table import packages_for
from wirebroker.pipelines.spark.spark_start import running_spark
from wirebroker.pipelines.windows.windows import Windows, WindowsJob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from wirebroker.base.clock import Clock


class JobKind(NamedTuple):
    """A kind of job."""

    sentence: str
    settings: type[Any]
    pipeline: type[Any]


JOBS: Final = {
    "ingest": JobKind(
        "load JSON, CSV or Avro files into a topic, each row exactly once", IngestJob, Ingest
    ),
    "replay": JobKind(
        "send a topic's records through a function into another topic, exactly once",
        ReplayJob,
        Replay,
    ),
    "windows": JobKind(
        "aggregate a topic's values by event-time window, joined with a table",
        WindowsJob,
        Windows,
    ),
}


def add_jobs(verbs: argparse._SubParsersAction[Any]) -> None:
    """Add a verb for each kind of job."""
    for name, kind in JOBS.items():
        settings = "\n".join(described(kind.settings))
        verb = verbs.add_parser(
            name,
            help=kind.sentence,
            description=f"{kind.sentence}\n\nsettings of the file, in TOML:\n{settings}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        verb.add_argument("file", type=Path, help="the job's file")


def run_job(kind: str, file: Path, *, stop: StopRequest, spark: SparkSession | None = None) -> Any:
    """Run a job's file, of a kind in JOBS, to its end; return its summary.

    Without a session, Spark is started and stopped.

    Raises:
        PipelineError: The job cannot continue.
    """
    clock: Clock = SystemClock()
    settings, pipeline = JOBS[kind].settings, JOBS[kind].pipeline
    job = load_job(file, settings)
    kafka = kafka_settings(file, job.kafka)
    dead_letters = getattr(job, "dead_letters", None)
    target = Target(
        kafka,
        job.name,
        job.topic,
        f"{job.topic}.dead-letters" if dead_letters == "" else dead_letters or "",
        job.partitions,
    )
    pipeline.check(job, target)
    source = pipeline.source_of(job, target)
    folder = folder_of(job.checkpoint)
    topics = () if source is None else source.topics_at_brokers
    make_topics(target, topics)
    checkpoint = JobFolder(folder, job.name, job.topic)
    reporter = Reporter(job.name, Path(job.metrics) if job.metrics else None, clock)
    packages = {} if source is None else packages_for(source, job.spark)
    log = Path(job.log) if job.log else folder / NOISE_FILE
    explain = partial(refusal_of, target=target, reader=getattr(job, "reader", {}), topics=topics)
    with _session(job, packages, log, stop) if spark is None else nullcontext(spark) as session:
        work = pipeline(session, job, target, checkpoint, reporter=reporter, clock=clock)
        with closing(work):
            run = JobRun(
                work.handle,
                note=work.note,
                look=work.look,
                ticker=WorkTicker(session.sparkContext, reporter, clock),
                explain=explain,
                patience_s=job.patience,
                stop=stop,
                reporter=reporter,
                clock=clock,
            )
            run.run(work.start)
            return reporter.summary(**work.summary_fields())


@contextmanager
def _session(
    job: Any, packages: dict[str, str], log: Path, stop: StopRequest
) -> Iterator[SparkSession]:
    """Start Spark; from then on signals request the job's end."""
    with noise_in(log), running_spark(job.name, packages | job.spark) as spark:
        # After Spark's start, which sets a handler.
        stop.heed_signals()
        yield spark
