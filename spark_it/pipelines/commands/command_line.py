"""Spark jobs on topics: `wirebroker pipeline` or `python -m wirebroker.pipelines`."""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from pyspark.errors import PySparkException

from wirebroker.pipelines.archive.archive import NoArchiveError
from wirebroker.pipelines.archive.archive_job import (
    ArchiveJob,
    compare_archive,
    print_comparison,
    run_archive,
)
from wirebroker.pipelines.archive.restore import FolderExistsError
from wirebroker.pipelines.archive.restore_job import RestoreJob, restore_settings, run_restore
from wirebroker.pipelines.commands.job_commands import JOBS, add_jobs, run_job
from wirebroker.pipelines.job.errors import PipelineError, first_line
from wirebroker.pipelines.job.file_or_flags import add_settings, settings_of
from wirebroker.pipelines.job.job_file import kafka_settings_if_any
from wirebroker.pipelines.job.noise_file import NOISE_FILE, noise_in
from wirebroker.pipelines.quality.quality_job import QualityJob, run_quality
from wirebroker.pipelines.run.job_run import StopRequest
from wirebroker.pipelines.source.source_table import check_topics
from wirebroker.pipelines.spark.spark_start import running_spark
from wirebroker.segments.errors import OptionError, RecreatedTopicError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def main() -> int:
    """Run the command line and return the exit status."""
    options = _arguments()
    try:
        if options.pipeline in JOBS:
            run_job(options.pipeline, options.file, stop=StopRequest())
            return 0
        return _run_on_directories(options)
    except (
        *(NoArchiveError, FolderExistsError, PipelineError, OptionError, RecreatedTopicError),
    ) as error:
        sys.stderr.write(f"{options.pipeline}: {error}\n")
    except KafkaException as error:
        sys.stderr.write(f"{options.pipeline}: {error.args[0].str()}\n")
    except PySparkException as error:
        sys.stderr.write(f"{options.pipeline}: {first_line(error)}\n")
    return 1


def _run_on_directories(options: argparse.Namespace) -> int:
    bootstrap = getattr(options, "bootstrap", None)
    tables = {"kafka": {"bootstrap.servers": bootstrap}} if bootstrap else {}
    if options.pipeline == "restore":
        way_back = settings_of(options, RestoreJob, **tables)
        kafka = restore_settings(options.file or Path(), way_back)
        with _spark("restore", way_back.spark, _log_of(options, way_back)) as spark:
            return run_restore(spark, way_back, kafka)
    if options.pipeline == "quality":
        look = settings_of(options, QualityJob, **tables)
        kafka = kafka_settings_if_any(options.file or Path(), look.kafka)
        check_topics(look.path, look.topics)
        with _spark(look.name, look.spark, Path(look.log) if look.log else None) as spark:
            return run_quality(spark, look, kafka)
    job = settings_of(options, ArchiveJob)
    # With lost_records = "skip", all topics of an existing archive may be deleted.
    if job.lost_records == "stop" or not Path(job.target, "checkpoint").exists():
        check_topics(job.path, job.topics)
    with _spark(job.name, job.spark, _log_of(options, job)) as spark:
        if options.pipeline == "verify":
            return 1 if print_comparison(compare_archive(spark, job)) else 0
        stop = StopRequest()
        # After Spark's start, which sets a handler.
        stop.heed_signals()
        return run_archive(spark, job, stop)


@contextmanager
def _spark(name: str, settings: dict[str, Any], log: Path | None) -> Iterator[SparkSession]:
    with (
        noise_in(log) if log else nullcontext(),
        running_spark(f"wirebroker-{name}", settings) as spark,
    ):
        yield spark


def _log_of(options: argparse.Namespace, job: ArchiveJob | RestoreJob) -> Path | None:
    if job.log:
        return Path(job.log)
    target = Path(job.target)
    is_there = options.pipeline == "archive" or target.is_dir()  # archive creates it
    return target / NOISE_FILE if is_there else None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="wirebroker pipeline", description=__doc__)
    verbs = parser.add_subparsers(dest="pipeline", required=True)
    sentence = "update a Parquet archive of topics, and verify it"
    add_settings(verbs.add_parser("archive", help=sentence, description=sentence), ArchiveJob)
    sentence = "compare an archive with the log, where both have records"
    verb = verbs.add_parser("verify", help=sentence, description=sentence)
    add_settings(verb, ArchiveJob, ("path", "topics", "target", "log"))
    add_jobs(verbs)
    sentence = "report rates, gaps, duplicates, skew and lag of topics"
    verb = verbs.add_parser("quality", help=sentence, description=sentence)
    add_settings(verb, QualityJob)
    verb.add_argument("--bootstrap", help="a broker, to report the lag of groups")
    sentence = "restore an archive as partitions' logs, or into a running broker"
    verb = verbs.add_parser("restore", help=sentence, description=sentence)
    add_settings(verb, RestoreJob)
    verb.add_argument("--bootstrap", help="a broker instead; its topics must be empty or missing")
    return parser.parse_args()
