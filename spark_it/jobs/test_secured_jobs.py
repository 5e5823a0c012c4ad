"""Jobs at a broker with authentication: both of their clients log in for all reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from compat_tests.security.secured import PASSWORD, add_alice, secured_broker
from spark_it.kit import job_kit, records
from tests.support.tools.ports import HOST

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.nightly, pytest.mark.java]

MECHANISM = "SCRAM-SHA-256"
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def test_windows_job_reads_and_writes_with_login(
    spark: SparkSession, broker_kind: str, topic: str, tmp_path: Path
) -> None:
    with secured_broker(broker_kind, tmp_path / "broker") as broker:
        add_alice(broker)
        # The last one as well, so that retention does not delete its old records.
        for name in (topic, f"{topic}-table", f"{topic}-to"):
            records.create_topic(broker.bootstrap, name, partitions=1)
        records.write_visits(broker.bootstrap, topic, table=f"{topic}-table")
        alice = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": MECHANISM}
        java = alice | {"sasl.jaas.config": f'{LOGIN} username="alice" password="{PASSWORD}";'}
        tables = {
            "kafka": {
                "bootstrap.servers": f"{HOST}:{broker.secured_port}",
                **alice,
                "sasl.username": "alice",
                "sasl.password": PASSWORD,
            },
            "reader": {f"kafka.{name}": value for name, value in java.items()},
            "schema": {"who": "string"},
            "columns": {"n": "count(*)"},
            "table_schema": {"city": "string"},
        }
        job = job_kit.write_job(
            *(tmp_path, "", tables),
            name=f"job-{topic}",
            source=topic,
            topic=f"{topic}-to",
            table=f"{topic}-table",
            key="who",
        )
        assert job_kit.run("windows", job, spark)["records"] == 1
        (message,) = job_kit.read_all(broker.bootstrap, f"{topic}-to", 1, partitions=1)
        row = json.loads(message.value())
        assert (row["n"], row["city"]) == (1, "Oslo")
