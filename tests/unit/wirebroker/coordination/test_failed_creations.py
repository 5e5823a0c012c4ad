"""Failed topic creations: a bounded number of log lines per minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.brokers.servers import broker_of, client_of, running
from wirebroker.base.log_bound import LineBound
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    import logging

    import pytest

    from tests.support.protocol.raw_client import RawClient

ALIKE = 60
# More than there are brokers.
TOO_MANY = {"auto.create.topics.enable": "true", "default.replication.factor": "3"}


def told(records: list[logging.LogRecord], about: str) -> list[str]:
    bound = LineBound()
    alike = [record for record in records if about in record.getMessage()]
    return [emitted.getMessage() for record in alike for emitted in bound.take(record)]


async def ask_for_topics(client: RawClient, count: int) -> Any:
    topics = [{"name": f"t{number}"} for number in range(count)]
    return await client.ask(ApiKey.METADATA, 12, {"topics": topics})


async def test_failed_auto_creations_cause_few_lines_about_the_client(
    tmp_path, caplog: pytest.LogCaptureFixture
):
    async with running(tmp_path, settings=TOO_MANY) as server, client_of(server) as client:
        for _ in range(2):
            answer = await ask_for_topics(client, 100)
            assert {topic.error_code for topic in answer.topics} == {
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            }
            await broker_of(server).auto_creation.until_made(timeout_s=10)
    lines = told(caplog.records, "auto-creation of ")
    assert lines[0] == "auto-creation of t0 failed: INVALID_REPLICATION_FACTOR"
    assert lines[ALIKE:] == [
        "more lines like this about 127.0.0.1 on PLAINTEXT are only counted: "
        "auto-creation of t60 failed: INVALID_REPLICATION_FACTOR"
    ]


async def test_failed_internal_topic_creation_causes_few_lines(
    tmp_path, caplog: pytest.LogCaptureFixture
):
    settings = {"offsets.topic.replication.factor": "3"}
    body = {"key_type": 0, "coordinator_keys": ["g"]}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        while caplog.text.count("cannot create __consumer_offsets") < ALIKE + 5:
            answer = await client.ask(ApiKey.FIND_COORDINATOR, 4, body)
            assert answer.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    lines = told(caplog.records, "cannot create __consumer_offsets")
    assert len(lines) == ALIKE + 1
    assert "about __consumer_offsets are only counted" in lines[-1]
