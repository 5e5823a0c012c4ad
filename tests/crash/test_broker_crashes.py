"""A whole broker cut at any event: topics, records, transactions and committed offsets survive.

    make test ARGS="tests/crash --seed random --crash-points 60000"   new ones (R1, R2 of the plan)
    pytest tests/crash --crash-at broker:7:120:KILL                   one, as a failure names it

Acknowledged operations survive kill -9. They survive a power loss with
wirebroker.durability=fsync, and always if the metadata log or a checkpoint stores them: topics,
partitions, configs and log starts.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.crash.broker_points import BrokerRun
from tests.crash.broker_process import BrokerProcess, broker_config
from tests.crash.clients import TopicClient, topic_after
from tests.crash.points import examine_points
from tests.crash.store import new_disk
from wirebroker.base.clock import pause


@pytest.mark.timeout(3_600)
def test_broker_keeps_acknowledged_data_at_every_crash_point(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    done = examine_points(request, "broker", BrokerRun, share=0.15, every=0.05)
    with capsys.disabled():
        print(f"\n  {done}")  # noqa: T201


def test_a_topic_does_not_inherit_offsets_from_a_deleted_one_of_the_same_name() -> None:
    disk = new_disk()
    random = Random(3)
    config = broker_config(durability="fsync")
    client = TopicClient("a", random, lambda: 0)

    async def live(broker: BrokerProcess) -> None:
        await client._create(broker, keeps_all=True)
        for _ in range(5):
            await client._produce(broker, topic_after(client.book.steps))
        await pause(3.0)  # checkpoints
        await client._delete(broker, topic_after(client.book.steps))
        await client._create(broker, keeps_all=True)
        await client._produce(broker, topic_after(client.book.steps))

    first = BrokerProcess(disk, config, random)
    assert first.start()
    first.run(live(first))
    first.kill()
    restarted = BrokerProcess(disk, config, random)
    assert restarted.start()
    partitions, _ = restarted.broker.replicas.find("a", b"", by_id=False)
    ends = {index: partition.log.log_end_offset for index, partition in partitions.items()}
    starts = {partition.log.log_start_offset for partition in partitions.values()}
    restarted.kill()
    assert starts == {0}
    for index, offset, _ in topic_after(client.book.steps).records:
        assert offset < ends[index]
