"""What the three queries share: Spark with its connector for Kafka, input and output."""

import os
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession, functions

from wirebroker.pipelines import exactly_once

SERVERS = os.environ["KAFKA_SERVERS"]
CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"


def start(name: str) -> SparkSession:
    """Start Spark; it fetches its connector for Kafka once, unless SPARK_JARS names the files."""
    builder = SparkSession.builder.appName(name).config("spark.sql.session.timeZone", "UTC")
    # Spark's 200 are tasks for each batch.
    builder = builder.config("spark.sql.shuffle.partitions", "2")
    jars = os.environ.get("SPARK_JARS")
    if jars:
        return builder.config("spark.jars", jars).getOrCreate()
    return builder.config("spark.jars.packages", CONNECTOR).getOrCreate()


def read(spark: SparkSession, topic: str, columns: str) -> DataFrame:
    """Return a topic's committed JSON values as a stream of columns."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", SERVERS)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    records = reader.option("kafka.isolation.level", "read_committed").load()
    row = functions.from_json(records.value.cast("string"), columns)
    return records.select(row.alias("row")).select("row.*")


def run(table: DataFrame, topic: str, name: str, mode: str = "append") -> None:
    """Send each batch of a stream with a column `key` into a topic once, until the process ends."""
    folder = Path(os.environ["STATE_DIR"]) / name
    send = exactly_once(topic, name, kafka={"bootstrap.servers": SERVERS}, checkpoint=folder)
    fields = functions.struct(*[column for column in table.columns if column != "key"])
    rows = table.select("key", functions.to_json(fields).alias("value"))
    writer = rows.writeStream.foreachBatch(send).outputMode(mode)
    writer.option("checkpointLocation", send.checkpoint).start().awaitTermination()
