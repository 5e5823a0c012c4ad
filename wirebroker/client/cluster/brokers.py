"""Brokers: their log directories, and their unregistration (KIP-631)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import ClientError, check, explained
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.client.kafka_client import KafkaClient


# Timeout of an ApiVersions request.
_PATIENCE_S: Final = 5.0


class LogDir(NamedTuple):
    """A log directory of a broker.

    Attributes:
        error: Why it is offline; None if it is not.
        size_bytes: Size of its logs.
        total_bytes: Size of its disk; None if unknown.
        usable_bytes: Free space; None if unknown.
    """

    broker_id: int
    path: str
    error: str | None
    replica_count: int
    size_bytes: int
    total_bytes: int | None
    usable_bytes: int | None


async def responding_brokers(client: KafkaClient, broker_ids: Iterable[int]) -> dict[int, bool]:
    """Return whether each broker responds to an ApiVersions request."""
    queried = list(broker_ids)
    answers = await client.together(*(_answers(client, broker_id) for broker_id in queried))
    return dict(zip(queried, answers, strict=True))


async def _answers(client: KafkaClient, broker_id: int) -> bool:
    timeout_s = min(client.timeout_s, _PATIENCE_S)
    try:
        await client.request_of(broker_id, ApiKey.API_VERSIONS, {}, timeout_s=timeout_s)
    except ClientError:
        return False
    return True


async def log_dirs_of(client: KafkaClient, broker_ids: Sequence[int] = ()) -> list[LogDir]:
    """Return the log directories of brokers, by default all running ones."""
    results_by_broker = await described_log_dirs(client, broker_ids or await client.broker_ids())
    return [
        log_dir_of(broker_id, result)
        for broker_id, results in results_by_broker.items()
        for result in results
    ]


async def described_log_dirs(
    client: KafkaClient, broker_ids: Sequence[int]
) -> dict[int, list[Any]]:
    """Return results of DescribeLogDirsResponses with all partitions, by broker."""
    answers = await client.together(
        *(
            client.request_of(broker_id, ApiKey.DESCRIBE_LOG_DIRS, {"topics": None})
            for broker_id in broker_ids
        )
    )
    results: dict[int, list[Any]] = {}
    for broker_id, answer in zip(broker_ids, answers, strict=True):
        check(
            getattr(answer, "error_code", 0),
            f"cannot read the log directories of broker {broker_id}",
        )
        results[broker_id] = list(answer.results)
    return results


def log_dir_of(broker_id: int, result: Any) -> LogDir:
    """Return a directory of a DescribeLogDirsResponse."""
    logs = [log for topic in result.topics for log in topic.partitions]
    total, usable = getattr(result, "total_bytes", -1), getattr(result, "usable_bytes", -1)
    return LogDir(
        broker_id,
        result.log_dir,
        explained(result.error_code) if result.error_code else None,
        len(logs),
        sum(log.partition_size for log in logs),
        None if total < 0 else total,
        None if usable < 0 else usable,
    )


async def unregister_broker(client: KafkaClient, broker_id: int) -> None:
    """Unregister a permanently stopped broker."""
    answer = await client.request_of_controller(ApiKey.UNREGISTER_BROKER, {"broker_id": broker_id})
    check(answer.error_code, f"broker {broker_id} cannot be unregistered", answer.error_message)


async def unregister_controller(client: KafkaClient, controller_id: int) -> None:
    """Unregister a permanently stopped controller."""
    request = {"controller_id": controller_id}
    answer = await client.request_of_controller(ApiKey.UNREGISTER_CONTROLLER, request)
    failed = f"controller {controller_id} cannot be unregistered"
    check(answer.error_code, failed, answer.error_message)
