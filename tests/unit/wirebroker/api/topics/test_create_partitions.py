"""CreatePartitions: from request to response, in every version."""

import pytest

from tests.support.coordinators.kit import topic
from tests.unit.wirebroker.api.api_kit import answer, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_in_every_version(version):
    broker = make_broker(*topic("a", 1))
    reply = answer(
        broker,
        ApiKey.CREATE_PARTITIONS,
        version,
        topics=[
            {"name": "a", "count": 3, "assignments": None},
            {"name": "b", "count": 3, "assignments": None},
        ],
        timeout_ms=1,
        validate_only=False,
    )
    assert [(result.name, result.error_code) for result in reply.results] == [
        ("a", 0),
        ("b", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert len(broker.metadata.image.topics["a"].partitions) == 3
