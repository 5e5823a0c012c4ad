"""How far groups are behind, as metrics will read it."""

import asyncio

from tests.support.batches import batch
from tests.support.requests import append, create_topic
from tests.support.servers import broker_of, client_of, running
from wirebroker.codecs.api_keys import ApiKey

PROFILE = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}


def commit(offset):
    return {
        "group_id": "g",
        "generation_id_or_member_epoch": -1,
        "topics": [
            {"name": "t", "partitions": [{"partition_index": 0, "committed_offset": offset}]}
        ],
    }


async def is_committed(client, offset):
    await client.ask(ApiKey.FIND_COORDINATOR, 4, {"coordinator_keys": ["g"]})
    answer = await client.ask(ApiKey.OFFSET_COMMIT, 8, commit(offset))
    return answer.topics[0].partitions[0].error_code == 0


def test_the_lag_is_what_lies_between_the_committed_offset_and_the_high_watermark(tmp_path):
    async def run():
        async with running(tmp_path, settings=PROFILE) as server, client_of(server) as client:
            await create_topic(client, "t")
            await append(client, "t", batch(b"a", b"b", b"c"))
            async with asyncio.timeout(20):  # until the coordinator's topic is made
                while not await is_committed(client, 1):
                    pass
            groups = broker_of(server).groups
            assert list(groups.lags()) == [("g", "t", 0, 2)]
            await append(client, "t", batch(b"d"))
            assert list(groups.lags()) == [("g", "t", 0, 3)]

    asyncio.run(run())
