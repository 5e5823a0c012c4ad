"""What the guide begins with does what it says: its two jobs, on orders of a day."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_it import job_kit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.conftest import StartBroker

pytestmark = [pytest.mark.long, pytest.mark.java]

GUIDE = Path(__file__).with_name("README.md")
CITIES = ("Oslo", "Rome", "Lima")


def write_orders(folder: Path) -> None:
    """Write an order each half minute of a day, a file an hour, each city in turn."""
    folder.mkdir()
    for hour in range(24):
        orders = [
            {
                "id": hour * 120 + number,
                "at": f"2026-03-02T{hour:02}:{number // 2:02}:{number % 2 * 30:02}Z",
                "city": CITIES[number % 3],
                "price": "2.50",
            }
            for number in range(120)
        ]
        lines = "".join(f"{json.dumps(order)}\n" for order in orders)
        (folder / f"{hour:02}.jsonl").write_text(lines, encoding="utf-8")


def test_the_guides_first_jobs_run_as_they_stand(
    spark: SparkSession, start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker()
    ingest, windows = re.findall(
        r"```toml\n(.+?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL
    )[:2]
    for kind, text in (("ingest", ingest), ("windows", windows)):
        (tmp_path / kind).write_text(text.replace("localhost:9092", broker.bootstrap), "utf-8")
    write_orders(tmp_path / "in")
    assert job_kit.run("ingest", tmp_path / "ingest", spark)["records"] == 24 * 120
    # Rows of the last hour wait for later ones.
    assert job_kit.run("windows", tmp_path / "windows", spark)["records"] == 23 * 3
    found = job_kit.read_all(broker.bootstrap, "sales-by-hour", 23 * 3, partitions=1)
    told = [json.loads(each.value()) for each in found]
    assert {(each["orders"], each["total"]) for each in told} == {(40, 100.0)}
    assert {each["city"] for each in told} == set(CITIES)
    assert spark.read.parquet(str(tmp_path / "sales")).count() == 23 * 3
