"""Every suite of Spark's connector that runs against a broker, some at a time, resumable.

    make spark-suite ARGS=--full                      what has not passed on these sources
    make spark-suite ARGS="--full --broker apache"    the same against Apache Kafka
    make spark-suite ARGS="--full relations"          some suites alone, passed or not

Suites that are alike share a broker and a Java process, whose start and warm-up are most of what a
short one costs, and are a step of the nightly runner (tests/nightly.py): a run that was ended goes
on with the step it was at, and in the end a table tells what each suite came to.

Not among them: KafkaDelegationTokenSuite, which needs a Kerberos server and a broker set up with
it, and KafkaRealTimeIntegrationSuite, which starts a cluster of Spark's whose executors did not
register where this was tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spark_it.suites.run import SUITES
from tests import nightly
from tests.nightly import Step
from tests.project_files import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable


class Group(NamedTuple):
    """Suites that share a Java process, and about how many minutes they take."""

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


def steps_of(broker: str) -> tuple[Step, ...]:
    """Return a step for each group of suites, against a kind of broker."""
    return tuple(
        Step(
            name,
            ("spark_it.suites.run", *group.suites, "--broker", broker),
            group.minutes,
            f"{len(group.suites)} of Spark's own suites",
        )
        for name, group in GROUPS.items()
    )


def run_full(broker: str, groups: Iterable[str] = ()) -> int:
    """Run all groups that have not passed on these sources, or these; 0 if all have passed."""
    results = ROOT / ".venv" / f"spark-suites-{broker}"
    return nightly.main([*groups, "--results", str(results)], steps_of(broker))
