"""The command line of pipelines: `wirebroker pipeline`, `python -m wirebroker.pipelines`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from pyspark.errors import PySparkException

from wirebroker.pipelines.archive import (
    MOST_OFFSETS,
    NoArchiveError,
    PartitionSummary,
    archive,
    compare,
)
from wirebroker.pipelines.broker_restore import restore_to_broker
from wirebroker.pipelines.errors import PipelineError, first_line
from wirebroker.pipelines.group_lag import lags_of
from wirebroker.pipelines.job_commands import JOBS, add_jobs, run_job
from wirebroker.pipelines.job_run import StopWish
from wirebroker.pipelines.quality import look_at
from wirebroker.pipelines.quality_picture import picture_of_quality
from wirebroker.pipelines.quality_report import lines_of_quality, table_of_quality
from wirebroker.pipelines.restore import FolderExistsError, restore
from wirebroker.pipelines.source_table import check_topics
from wirebroker.pipelines.spark_start import start_spark
from wirebroker.segments.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> int:
    """Run what the arguments ask for; 1: the archive is not what the log is."""
    options = _arguments()
    if options.pipeline in JOBS:
        return _run_job(options)
    try:
        if "topics" in options:
            check_topics(options.path, options.topics)
        spark = start_spark(f"wirebroker-{options.pipeline}", {})
    except (PipelineError, OptionError) as error:
        sys.stderr.write(f"{options.pipeline}: {error}\n")
        return 1
    try:
        return _run(spark, options)
    except (NoArchiveError, FolderExistsError, PipelineError) as error:
        sys.stderr.write(f"{options.pipeline}: {error}\n")
        return 1
    except KafkaException as error:
        sys.stderr.write(f"{options.pipeline}: {options.bootstrap}: {error.args[0].str()}\n")
        return 1
    except PySparkException as error:
        sys.stderr.write(f"{options.pipeline}: {first_line(error)}\n")
        return 1
    finally:
        spark.stop()


def _run_job(options: argparse.Namespace) -> int:
    try:
        run_job(options.pipeline, options.file, stop=StopWish())
    except PipelineError as error:
        sys.stderr.write(f"{options.pipeline}: {error}\n")
        return 1
    return 0


def _run(spark: SparkSession, options: argparse.Namespace) -> int:
    if options.pipeline == "archive":
        rows = archive(
            *(spark, options.path, options.topics, options.target, options.records_per_batch)
        )
        sys.stdout.write(f"{rows} records archived\n")
        if not rows and not (options.target / "records").exists():
            return 0
    if options.pipeline == "restore":
        places = (
            restore(spark, options.target, options.into)
            if options.into is not None
            else restore_to_broker(spark, options.target, options.bootstrap, options.map)
        )
        for place, count in places:
            sys.stdout.write(f"{place}: {count} records\n")
        return 0
    if options.pipeline == "quality":
        return _run_quality(spark, options)
    return _tell(compare(spark, options.path, options.topics, options.target))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="wirebroker pipeline", description=__doc__)
    verbs = parser.add_subparsers(dest="pipeline", required=True)
    for name, sentence in (
        ("archive", "bring an archive in Parquet up to date with topics, and verify it"),
        ("verify", "compare an archive with the log, as far as both go"),
    ):
        verb = verbs.add_parser(name, help=sentence, description=sentence)
        verb.add_argument("--path", required=True, help="log directories, comma between")
        verb.add_argument("--topics", required=True, help="a pattern of topics, Python's")
        verb.add_argument("--target", required=True, type=Path, help="the archive")
        if name == "archive":
            verb.add_argument(
                "--records-per-batch",
                type=_count,
                default=MOST_OFFSETS,
                metavar="N",
                help=f"how many offsets make a batch at most ({MOST_OFFSETS:,})",
            )
    add_jobs(verbs)
    _add_quality(verbs)
    sentence = "bring an archive's records back: as partitions' logs, or into a running broker"
    verb = verbs.add_parser("restore", help=sentence, description=sentence)
    verb.add_argument("--target", required=True, type=Path, help="the archive")
    where = verb.add_mutually_exclusive_group(required=True)
    where.add_argument("--into", type=Path, help="a folder for logs; what is there is kept")
    where.add_argument("--bootstrap", help="a broker; its topics must be empty, or are made")
    verb.add_argument(
        "--map",
        type=Path,
        metavar="FILE",
        help="with --bootstrap: let the broker give other offsets, and write which are which",
    )
    return parser.parse_args()


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)


def _add_quality(verbs: Any) -> None:
    sentence = "tell rates, gaps, duplicates, skew and lag of topics"
    verb = verbs.add_parser("quality", help=sentence, description=sentence)
    verb.add_argument("--path", required=True, help="log directories, comma between")
    verb.add_argument("--topics", required=True, help="a pattern of topics, Python's")
    verb.add_argument("--bootstrap", default="", help="a broker, to tell the lag of groups")
    verb.add_argument("--metrics", type=Path, help="a file that lines of JSON are written to")
    verb.add_argument("--plot", type=Path, help="a picture to write, .svg")


def _run_quality(spark: SparkSession, options: argparse.Namespace) -> int:
    found = look_at(spark, options.path, options.topics)
    names = {each.topic for each in found}
    lags = lags_of(options.bootstrap, names) if options.bootstrap else []
    sys.stdout.writelines(f"{line}\n" for line in table_of_quality(found, lags))
    if options.metrics is not None:
        lines = "".join(f"{line}\n" for line in lines_of_quality(found, lags))
        options.metrics.write_text(lines, encoding="utf-8")
    if options.plot is not None:
        options.plot.write_text("\n".join(picture_of_quality(found, lags)), encoding="utf-8")
    return 1 if any(each.resent for each in found) else 0


def _tell(pairs: list[tuple[PartitionSummary, PartitionSummary]]) -> int:
    wrong = 0
    for archived, logged in pairs:
        is_same = archived == logged
        wrong += not is_same
        place = f"{archived.topic}-{archived.partition}"
        sys.stdout.write(
            f"{place}: {archived.told()}{'' if is_same else ' BUT ' + logged.told()}\n"
        )
    return 1 if wrong else 0
