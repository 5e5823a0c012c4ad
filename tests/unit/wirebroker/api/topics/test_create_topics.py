"""CreateTopics: from request to response, in every version."""

import logging

import pytest

import wirebroker.api.topics.create_topics  # noqa: F401 - registers the handler
from tests.unit.wirebroker.api.api_kit import answer, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import ZERO_UUID

KEY = ApiKey.CREATE_TOPICS


def wish(name, partitions=1, replication_factor=1):
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replication_factor,
        "assignments": [],
        "configs": [],
    }


@pytest.mark.parametrize("version", range(2, 8))
def test_response_has_the_fields_of_its_version(version):
    broker = make_broker()
    reply = answer(broker, KEY, version, topics=[wish("a", 2), wish("b", 0)], timeout_ms=1000)
    good, bad = reply.topics
    assert (good.name, good.error_code, good.error_message) == ("a", 0, None)
    assert (bad.name, bad.error_code) == ("b", ErrorCode.INVALID_PARTITIONS)
    assert bad.error_message
    assert set(broker.metadata.image.topics) == {"a"}
    if version >= 5:
        assert (good.num_partitions, good.replication_factor) == (2, 1)
        assert (bad.num_partitions, bad.replication_factor, bad.configs) == (-1, -1, [])
        assert len(good.configs) > 30
    if version >= 7:
        assert good.topic_id == broker.metadata.image.topics["a"].topic_id
        assert bad.topic_id == ZERO_UUID


def test_empty_request_gets_an_empty_response():
    for version in (2, 7):
        assert answer(make_broker(), KEY, version, topics=[], timeout_ms=1).topics == []


def test_too_many_partitions_are_refused_for_every_topic():
    broker = make_broker()
    reply = answer(broker, KEY, 7, topics=[wish("a", 10_000), wish("b")], timeout_ms=1)
    assert [topic.error_code for topic in reply.topics] == [ErrorCode.POLICY_VIOLATION] * 2
    assert not broker.metadata.image.topics


def test_hundreds_of_topics_are_answered_in_their_order():
    names = [f"t{number}" for number in range(300)]
    reply = answer(make_broker(), KEY, 7, topics=[wish(name) for name in names], timeout_ms=1)
    assert [topic.name for topic in reply.topics] == names


def test_created_topics_are_logged_in_one_line(caplog):
    caplog.set_level(logging.INFO)
    wishes = [wish(f"t{number}") for number in range(12)] + [wish("bad", 0)]
    answer(make_broker(), KEY, 7, topics=wishes, timeout_ms=1)
    names = "t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more"
    (line,) = caplog.messages
    assert line.startswith(f"created 12 topics: {names}, requested by ")
    caplog.clear()
    answer(make_broker(), KEY, 7, topics=[wish("one")], timeout_ms=1)
    assert caplog.messages[0].startswith("created topic one, requested by ")


def test_validated_or_refused_topics_are_not_logged(caplog):
    caplog.set_level(logging.INFO)
    answer(make_broker(), KEY, 7, topics=[wish("a")], timeout_ms=1, validate_only=True)
    answer(make_broker(), KEY, 7, topics=[wish("a", 0)], timeout_ms=1)
    assert not caplog.messages
