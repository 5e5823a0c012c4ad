"""All suites of Spark's connector that can run against a broker, in resumable steps.

    make spark-suite ARGS=--full                      what has not passed on these sources
    make spark-suite ARGS="--full --broker apache"    the same against Apache Kafka
    make spark-suite ARGS="--full relations"          some suites alone, passed or not

Similar suites share a broker and a Java process, whose start dominates short suites.

Left out: KafkaDelegationTokenSuite, which needs a Kerberos server, and
KafkaRealTimeIntegrationSuite, because the executors of its Spark cluster did not register.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

from spark_it.suites.run import SUITES
from tests.nightly import __main__ as nightly
from tests.nightly.step import Step
from tests.support.harness.project_files import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Group(NamedTuple):
    """Suites that share a Java process, and their approximate minutes."""

    minutes: int
    suites: tuple[str, ...]


GROUPS = {
    "no-broker": Group(
        2,
        (
            *("JsonUtilsSuite", "KafkaSourceOffsetSuite", "KafkaSourceProviderSuite"),
            *("KafkaSparkConfSuite", "KafkaOffsetRangeCalculatorSuite", "KafkaRealTimeModeSuite"),
            *("consumer.FetchedDataPoolSuite", "consumer.InternalKafkaConsumerPoolSuite"),
            "producer.InternalKafkaProducerPoolSuite",
        ),
    ),
    "each-change": Group(2, SUITES),
    "relations": Group(
        4,
        (
            *("KafkaRelationSuiteV1", "KafkaRelationSuiteWithAdminV1"),
            *("KafkaRelationSuiteWithAdminV2", "KafkaSinkBatchSuiteV1"),
        ),
    ),
    "others": Group(
        6,
        (
            *("KafkaSinkMicroBatchStreamingSuite", "KafkaContinuousSinkSuite"),
            *("KafkaContinuousSourceTopicDeletionSuite", "KafkaSourceStressSuite"),
            *("KafkaDontFailOnDataLossSuite", "KafkaSourceStressForDontFailOnDataLossSuite"),
            "KafkaContinuousSourceStressForDontFailOnDataLossSuite",
            *("KafkaRealTimeModeE2ESuite", "KafkaConsumerPoolRealTimeModeSuite"),
        ),
    ),
    "micro-batches-admin": Group(
        10, ("KafkaMicroBatchV1SourceWithAdminSuite", "KafkaMicroBatchV2SourceWithAdminSuite")
    ),
    "micro-batches-consumer": Group(
        12,
        ("KafkaMicroBatchV1SourceWithConsumerSuite", "KafkaMicroBatchV2SourceWithConsumerSuite"),
    ),
    "continuous": Group(15, ("KafkaContinuousSourceSuite",)),
}


def steps_of(broker: str, folder: Path, *, resumes: bool) -> tuple[Step, ...]:
    """Return a step for each group of suites; `resumes` skips suites that passed."""
    resume_option = ("--resume",) if resumes else ()
    return tuple(
        Step(
            name,
            (
                *("spark_it.suites.run", *group.suites, "--broker", broker),
                *("--output", str(folder / name), *resume_option),
            ),
            group.minutes,
            f"{len(group.suites)} of Spark's own suites",
        )
        for name, group in GROUPS.items()
    )


def run_full(broker: str, groups: Iterable[str] = ()) -> int:
    """Run these groups, or all that have not passed on these sources; return the exit status."""
    results = ROOT / ".venv" / f"spark-suites-{broker}"
    sources = nightly.Notebook(results).sources
    for other in results.glob("on-*"):
        if other.name != f"on-{sources}":
            shutil.rmtree(other)
    named = [*groups]
    steps = steps_of(broker, results / f"on-{sources}", resumes=not named)
    return nightly.main([*named, "--results", str(results)], steps)
