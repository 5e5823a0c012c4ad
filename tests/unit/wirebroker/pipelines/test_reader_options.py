"""The options of a job's table [reader], and errors about invalid ones."""

from __future__ import annotations

import pytest

from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.source.reader_options import (
    check_reader,
    of_a_client,
    refusal_in,
    texts_of,
)


class _SparkError(Exception):
    """Like those of PySpark, whose texts have no stack."""

    def __init__(self, told: str, stack: str) -> None:
        super().__init__(told)
        self._stackTrace = stack


@pytest.mark.parametrize(
    ("path", "given", "message"),
    [
        ("", {"maxOffsetPerTrigger": 5}, "did you mean maxOffsetsPerTrigger"),
        ("", {"client.id": "x"}, "there is no option client.id; .* begin with kafka."),
        ("", {"Subscribe": "x"}, "Subscribe is the job's own to set"),
        ("", {"kafka.bootstrap.servers": "x"}, "is the job's own to set"),
        ("/d", {"maxOffsetPerTrigger": 5}, "option maxOffsetPerTrigger is not known"),
        ("/d", {"minPartitions": "many"}, "option minPartitions: 'many' is no whole number"),
        ("/d", {"endingOffsets": "latest"}, "a stream has no end"),
        ("/d", {"path": "/e"}, "path is the job's own to set"),
    ],
)
def test_what_no_reader_knows_is_told(path, given, message):
    with pytest.raises(JobFileError, match=message):
        check_reader(path, given)


def test_what_a_reader_knows_is_taken_however_it_is_written():
    given = {"MINPARTITIONS": 4, "failOnDataLoss": False, "kafka.client.id": "x"}
    for path in ("", "/d"):
        check_reader(path, given)
    assert texts_of(given)["failOnDataLoss"] == "false"
    assert of_a_client(given) == {"kafka.client.id": "x"}


def test_a_refusal_of_an_option_is_found_in_what_spark_reports():
    failed = "org.apache.kafka.common.KafkaException: Failed to construct kafka consumer\n"
    config = "\tCaused by: org.apache.kafka.common.config.ConfigException: "
    wrong = "Invalid value x for configuration max.poll.records: Not a number of type INT"
    stack = f"{failed}\tat a.b(C.java:1)\n{config}{wrong}\n\tat d"
    assert refusal_in(ValueError(stack)) == wrong
    assert refusal_in(ValueError("the query has failed")) is None
    assert refusal_in(_SparkError("the query has failed", stack)) == wrong
    away = "No resolvable bootstrap urls given in bootstrap.servers"
    assert refusal_in(ValueError(f"{failed}{config}{away}")) is None
    timeout = "org.apache.kafka.common.errors.TimeoutException: timed out"
    assert refusal_in(ValueError(timeout)) is None
