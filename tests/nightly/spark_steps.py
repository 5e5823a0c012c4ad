"""The steps that need Spark."""

from __future__ import annotations

from tests.nightly.step import Step, pytest_of

_SPARKS_OTHER_SUITES = (
    "KafkaSinkMicroBatchStreamingSuite",
    "KafkaContinuousSinkSuite",
    "KafkaSourceStressSuite",
    "KafkaContinuousSourceTopicDeletionSuite",
    "KafkaRelationSuiteV1",
    "KafkaMicroBatchV2SourceWithAdminSuite",
)

_SPARK_FAULTS = {
    "": "pipelines whose brokers, drivers and workers are killed",
    "directory_": "archive jobs that are killed",
    "cluster_": "pipelines with killed executors and with full disks",
}


def _faults(kind: str, *broker: str) -> Step:
    """Return the step with a kind of faults, on wirebroker or with these flags."""
    return Step(
        f"spark-{kind}faults{'-apache' if broker else ''}".replace("_", "-"),
        pytest_of(f"spark_it/faults/nightly_{kind}faults.py", "--long", *broker),
        15,
        _SPARK_FAULTS[kind] + (", on Apache Kafka" if broker else ""),
        nights=7 if broker else 3,
    )


SPARK_STEPS = (
    Step("spark", ("spark_it.suites.run",), 4, "Spark's own suites: the five that take a minute"),
    Step(
        "spark-others",
        ("spark_it.suites.run", *_SPARKS_OTHER_SUITES),
        12,
        "Spark's own suites: six more",
        nights=3,
    ),
    Step(
        "spark-jobs",
        pytest_of("spark_it", "--nightly"),
        20,
        "all pipeline tests",
    ),
    Step(
        "spark-connector",
        pytest_of(
            "spark_it/connector/nightly_connector.py",
            "spark_it/connector/nightly_secured.py",
            "--long",
        ),
        4,
        "the connector's other read modes, lost data, deleted topics; SASL_SSL with SCRAM",
    ),
    Step(
        "spark-connector-apache",
        pytest_of("spark_it/connector/nightly_connector.py", "--long", "--broker", "apache"),
        4,
        "the connector tests with Apache Kafka",
        nights=7,
    ),
    Step(
        "spark-rows",
        pytest_of("spark_it/directories/nightly_rows.py", "--long", "--seed", "random"),
        3,
        "the data source returns the same rows of random topics as the connector",
    ),
    *(_faults(kind) for kind in _SPARK_FAULTS),
    _faults("", "--broker", "apache"),
    Step(
        "spark-rows-apache",
        pytest_of(
            "spark_it/directories/nightly_rows.py",
            "--long",
            "--seed",
            "random",
            "--broker",
            "apache",
        ),
        4,
        "the data source on directories of Apache Kafka",
        nights=7,
    ),
    _faults("directory_", "--broker", "apache"),
    _faults("cluster_", "--broker", "apache"),
    Step(
        "spark-cluster",
        pytest_of("spark_it/connector/nightly_cluster.py", "--long"),
        3,
        "Spark streams from a cluster of three voters while the active controllers are killed",
    ),
)
