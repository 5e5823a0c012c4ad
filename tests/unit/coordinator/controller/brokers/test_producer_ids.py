"""Producer ids are never allocated twice."""

from types import SimpleNamespace

import pytest

from tests.support.coordinators.kit import one_broker, run
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.coordinator.controller.brokers.producer_ids import (
    BLOCK_SIZE,
    ProducerIdBlock,
    ProducerIds,
    allocate_producer_ids,
)
from wirebroker.coordinator.operation import complete

ASKED = SimpleNamespace(broker_id=1, broker_epoch=5)


@pytest.mark.parametrize("asked", [(1, 4), (2, 5)])
def test_stale_broker_epoch_gets_no_producer_ids(asked):
    request = SimpleNamespace(broker_id=asked[0], broker_epoch=asked[1])
    with pytest.raises(KafkaError) as raised:
        complete(allocate_producer_ids(request, one_broker()))
    assert raised.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_blocks_follow_each_other_and_name_the_broker():
    image = one_broker()
    first, image, records = run(allocate_producer_ids(ASKED, image), image)
    second, _, _ = run(allocate_producer_ids(ASKED, image), image)
    assert [block["producer_id_start"] for block in (first, second)] == [0, BLOCK_SIZE]
    assert [block["producer_id_len"] for block in (first, second)] == [BLOCK_SIZE] * 2
    body = records[0].body
    assert (body.broker_id, body.broker_epoch, body.next_producer_id) == (1, 5, BLOCK_SIZE)


def test_ids_come_out_of_blocks_one_by_one():
    ids = ProducerIds()
    assert ids.take() is None
    ids.offer(ProducerIdBlock(5, 2))
    assert [ids.take(), ids.take(), ids.take()] == [5, 6, None]
    ids.offer(ProducerIdBlock(9, 1))
    assert ids.take() == 9


def test_block_below_the_last_one_is_an_assertion_error():
    ids = ProducerIds()
    ids.offer(ProducerIdBlock(5, 2))
    with pytest.raises(AssertionError):
        ids.offer(ProducerIdBlock(6, 2))


def test_last_block_exhausts_the_producer_ids():
    record = metadata_record(
        RecordType.PRODUCER_IDS, broker_id=1, broker_epoch=1, next_producer_id=2**63 - 1000
    )
    with pytest.raises(KafkaError) as raised:
        complete(allocate_producer_ids(ASKED, one_broker(record)))
    assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
