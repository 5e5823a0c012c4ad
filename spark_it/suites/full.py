"""Every suite of Spark's connector that runs against a broker, one after the other, resumable.

    make spark-suite ARGS=--full                      what has not passed on these sources
    make spark-suite ARGS="--full --broker apache"    the same against Apache Kafka

Each suite has a broker and a Java process of its own, and is a step of the nightly runner
(tests/nightly.py): a run that was ended goes on with the suite it was at, and in the end a table
tells what each came to. An hour and a half on two idle cores.

Not among them: KafkaDelegationTokenSuite, which needs a Kerberos server and a broker set up with
it, and KafkaRealTimeIntegrationSuite, which starts a cluster of Spark's whose executors did not
register where this was tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_it.suites.run import SUITES
from tests import nightly
from tests.nightly import Step
from tests.project_files import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

# suite -> about how many minutes it takes
_ASKING_NO_BROKER = dict.fromkeys(
    (
        *("JsonUtilsSuite", "KafkaSourceOffsetSuite", "KafkaSourceProviderSuite"),
        *("KafkaSparkConfSuite", "KafkaOffsetRangeCalculatorSuite", "KafkaRealTimeModeSuite"),
        *("consumer.FetchedDataPoolSuite", "consumer.InternalKafkaConsumerPoolSuite"),
        "producer.InternalKafkaProducerPoolSuite",
    ),
    1,
)
_OTHERS = {
    **dict.fromkeys(("KafkaRelationSuiteV1", "KafkaSinkBatchSuiteV1"), 2),
    **dict.fromkeys(("KafkaRelationSuiteWithAdminV1", "KafkaRelationSuiteWithAdminV2"), 2),
    **dict.fromkeys(("KafkaSinkMicroBatchStreamingSuite", "KafkaContinuousSinkSuite"), 1),
    **dict.fromkeys(
        (
            *("KafkaMicroBatchV1SourceWithAdminSuite", "KafkaMicroBatchV2SourceWithAdminSuite"),
            "KafkaMicroBatchV1SourceWithConsumerSuite",
            "KafkaMicroBatchV2SourceWithConsumerSuite",
        ),
        8,
    ),
    "KafkaContinuousSourceSuite": 15,
    **dict.fromkeys(("KafkaContinuousSourceTopicDeletionSuite", "KafkaSourceStressSuite"), 1),
    "KafkaDontFailOnDataLossSuite": 2,
    **dict.fromkeys(
        (
            "KafkaSourceStressForDontFailOnDataLossSuite",
            "KafkaContinuousSourceStressForDontFailOnDataLossSuite",
            *("KafkaRealTimeModeE2ESuite", "KafkaConsumerPoolRealTimeModeSuite"),
        ),
        2,
    ),
}
MINUTES = {**dict.fromkeys(SUITES, 1), **_ASKING_NO_BROKER, **_OTHERS}


def steps_of(broker: str) -> tuple[Step, ...]:
    """Return a step for each suite, against a kind of broker."""
    return tuple(
        Step(suite, ("spark_it.suites.run", suite, "--broker", broker), minutes, "Spark's own")
        for suite, minutes in MINUTES.items()
    )


def run_full(broker: str, suites: Iterable[str] = ()) -> int:
    """Run every suite that has not passed on these sources, or these; 0 if all have passed."""
    results = ROOT / ".venv" / f"spark-suites-{broker}"
    return nightly.main([*suites, "--results", str(results)], steps_of(broker))
