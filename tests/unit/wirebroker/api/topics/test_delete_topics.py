"""DeleteTopics: by name, by id, and every way to name a topic twice."""

import logging
import re

import pytest

import wirebroker.api.topics.delete_topics  # noqa: F401 - registers the handler
from tests.support.coordinators.kit import topic, topic_id
from tests.unit.wirebroker.api.api_kit import answer, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import ZERO_UUID

KEY = ApiKey.DELETE_TOPICS


def two_topics(**settings):
    return make_broker(*topic("a", 1), *topic("b", 2), **settings)


def delete(broker, *wishes):
    topics = [{"name": name, "topic_id": uuid} for name, uuid in wishes]
    reply = answer(broker, KEY, 6, topics=topics, timeout_ms=1)
    return [
        (response.name, response.topic_id, ErrorCode(response.error_code))
        for response in reply.responses
    ]


@pytest.mark.parametrize("version", range(1, 6))
def test_topics_are_deleted_by_name(version):
    broker = two_topics()
    reply = answer(broker, KEY, version, topic_names=["a", "nope"], timeout_ms=1)
    codes = {response.name: response.error_code for response in reply.responses}
    assert codes == {"a": 0, "nope": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert set(broker.metadata.image.topics) == {"b"}


def test_topics_are_deleted_by_name_or_id_and_both_are_answered():
    broker = two_topics()
    assert sorted(delete(broker, ("a", ZERO_UUID), (None, topic_id(2)))) == [
        ("a", topic_id(1), ErrorCode.NONE),
        ("b", topic_id(2), ErrorCode.NONE),
    ]
    assert not broker.metadata.image.topics


INVALID = ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("wishes", "refusals"),
    [
        ([(None, ZERO_UUID)], [(None, ZERO_UUID, INVALID)]),
        ([("a", topic_id(1))], [("a", topic_id(1), INVALID)]),
        ([("a", ZERO_UUID), ("a", ZERO_UUID)], [("a", ZERO_UUID, INVALID)]),
        ([(None, topic_id(1))] * 3, [(None, topic_id(1), INVALID)]),
        ([("a", ZERO_UUID), (None, topic_id(1))], [("a", topic_id(1), INVALID)]),
        (
            [(None, topic_id(1)), (None, topic_id(1)), ("a", ZERO_UUID)],
            [(None, topic_id(1), INVALID), ("a", topic_id(1), INVALID)],
        ),
        ([(None, topic_id(9))], [(None, topic_id(9), ErrorCode.UNKNOWN_TOPIC_ID)]),
        ([("", ZERO_UUID)], [("", ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
    ],
)
def test_ambiguous_or_missing_topics_are_refused(wishes, refusals):
    broker = two_topics()
    assert delete(broker, *wishes) == refusals
    assert set(broker.metadata.image.topics) == {"a", "b"}


@pytest.mark.parametrize(
    ("version", "code"),
    [(1, INVALID), (2, INVALID), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_disabled_deletion_error_code_depends_on_the_version(version, code):
    broker = two_topics(delete_topic_enable="false")
    reply = answer(broker, KEY, version, topic_names=["a", "b"], timeout_ms=1)
    assert [response.error_code for response in reply.responses] == [code, code]
    assert set(broker.metadata.image.topics) == {"a", "b"}


def test_disabled_deletion_response_names_topics_given_by_id():
    broker = two_topics(delete_topic_enable="false")
    code = ErrorCode.TOPIC_DELETION_DISABLED
    assert delete(broker, (None, topic_id(1))) == [(None, topic_id(1), code)]


def test_deleted_topics_are_logged_in_one_line(caplog):
    caplog.set_level(logging.INFO)
    delete(two_topics(), ("a", ZERO_UUID), (None, topic_id(2)), ("nope", ZERO_UUID))
    (line,) = caplog.messages
    assert sorted(re.findall(r"\b[ab]\b", line.partition(", requested by ")[0])) == ["a", "b"]
    assert line.startswith("deleted 2 topics: ")
    caplog.clear()
    delete(two_topics(), ("nope", ZERO_UUID))
    assert not caplog.messages
