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

    def __init__(self, message: str, stack: str) -> None:
        super().__init__(message)
        self._stackTrace = stack


@pytest.mark.parametrize(
    ("path", "given", "message"),
    [
        ("", {"maxOffsetPerTrigger": 5}, "did you mean maxOffsetsPerTrigger"),
        ("", {"client.id": "x"}, "there is no option client.id; .* begin with kafka."),
        ("", {"Subscribe": "x"}, "Subscribe is set by the job"),
        ("", {"kafka.bootstrap.servers": "x"}, "is set by the job"),
        ("/d", {"maxOffsetPerTrigger": 5}, "option maxOffsetPerTrigger is unknown"),
        ("/d", {"minPartitions": "many"}, "option minPartitions: 'many' is not a whole number"),
        ("/d", {"endingOffsets": "latest"}, "a stream has no end"),
        ("/d", {"path": "/e"}, "path is set by the job"),
    ],
)
def test_unknown_reader_option_is_refused(path, given, message):
    with pytest.raises(JobFileError, match=message):
        check_reader(path, given)


def test_reader_options_are_case_insensitive():
    options = {"MINPARTITIONS": 4, "failOnDataLoss": False, "kafka.client.id": "x"}
    for path in ("", "/d"):
        check_reader(path, options)
    assert texts_of(options)["failOnDataLoss"] == "false"
    assert of_a_client(options) == {"kafka.client.id": "x"}


def test_option_refusal_is_found_in_sparks_error():
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
