"""Transactions, as their coordinators know them (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import PASSING, ClientError, check
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.client.kafka_client import KafkaClient


# Later versions are for two-phase commit.
_LAST_INIT_VERSION: Final = 4
# FindCoordinator's key_type, and its last version for one key.
_TRANSACTION: Final = 1
_LAST_OF_ONE_KEY: Final = 3
# The state of an open transaction: its end was not requested yet.
ONGOING: Final = "Ongoing"
# First versions of ListTransactions (KIP-994, KIP-1152).
_FIRST_WITH_DURATION: Final = 1
_FIRST_WITH_PATTERN: Final = 2


class ListedTransaction(NamedTuple):
    """A transactional id and its state."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


class DescribedTransaction(NamedTuple):
    """A coordinator's state of a transactional id.

    Attributes:
        timeout_ms: After which the coordinator aborts it.
        started_ms: Of the last transaction, also after its end; None without one.
        partitions: Such as `topic-0`.
    """

    transactional_id: str
    coordinator_id: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: list[str]

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open: it can be aborted, and its timeout applies."""
        return self.state == ONGOING

    def open_ms(self, now_ms: int) -> int | None:
        """Return for how long a transaction has been open; None if none is."""
        if not self.is_open or self.started_ms is None:
            return None
        return max(0, now_ms - self.started_ms)


async def list_transactions(
    client: KafkaClient,
    *,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    longer_than_ms: int = -1,
    pattern: str | None = None,
) -> list[ListedTransaction]:
    """Return the transactions of all coordinators, by id.

    Filters are states, producers, a duration (negative for all), and a regular expression of ids.

    Raises:
        ClientError: A broker does not know a state, or is too old for a filter.
    """

    def body(version: int) -> dict[str, Any]:
        request: dict[str, Any] = {
            "state_filters": list(states),
            "producer_id_filters": list(producer_ids),
        }
        if longer_than_ms >= 0:
            _check_version(version, _FIRST_WITH_DURATION, "by duration")
            request["duration_filter"] = longer_than_ms
        if pattern is not None:
            _check_version(version, _FIRST_WITH_PATTERN, "by a pattern")
            request["transactional_id_pattern"] = pattern
        return request

    broker_ids = await client.broker_ids()
    answers = await client.together(
        *(client.request_of(broker_id, ApiKey.LIST_TRANSACTIONS, body) for broker_id in broker_ids)
    )
    transactions: list[ListedTransaction] = []
    for broker_id, answer in zip(broker_ids, answers, strict=True):
        check(answer.error_code, f"transactions of broker {broker_id} cannot be listed")
        if answer.unknown_state_filters:
            unknown = ", ".join(answer.unknown_state_filters)
            raise ClientError(f"there is no state {unknown}; write Ongoing, CompleteCommit, …")
        transactions += [
            ListedTransaction(
                transaction.transactional_id,
                broker_id,
                transaction.producer_id,
                transaction.transaction_state,
            )
            for transaction in answer.transaction_states
        ]
    return sorted(transactions)


async def describe_transaction(client: KafkaClient, transactional_id: str) -> DescribedTransaction:
    """Return the coordinator's state of a transactional id."""
    body = {"transactional_ids": [transactional_id]}
    failure = f"transaction {transactional_id} cannot be described"
    answer: Any = None
    question = {"key": transactional_id, "key_type": _TRANSACTION}
    # As in Kafka's clients; it also creates __transaction_state on its first use.
    await client.request(ApiKey.FIND_COORDINATOR, question, at_most=_LAST_OF_ONE_KEY)
    async for _ in client.tries():
        broker_ids = await client.broker_ids()
        answers = await client.together(
            *(
                client.request_of(broker_id, ApiKey.DESCRIBE_TRANSACTIONS, body)
                for broker_id in broker_ids
            )
        )
        # Other brokers return NOT_COORDINATOR, a loading one COORDINATOR_LOAD_IN_PROGRESS.
        for broker_id, broker_answer in zip(broker_ids, answers, strict=True):
            (answer,) = broker_answer.transaction_states
            if answer.error_code not in PASSING:
                return _described(answer, broker_id, failure)
    check(answer.error_code, failure)
    raise AssertionError("a result without an error was returned")


async def describe_transactions(
    client: KafkaClient, coordinator_id: int, transactional_ids: Sequence[str]
) -> list[DescribedTransaction]:
    """Return a coordinator's state of several ids, without those that it does not know."""
    body = {"transactional_ids": list(transactional_ids)}
    answer = await client.request_of(coordinator_id, ApiKey.DESCRIBE_TRANSACTIONS, body)
    unknown = {*PASSING, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}
    return [
        _described(row, coordinator_id, f"transaction {row.transactional_id} cannot be described")
        for row in answer.transaction_states
        if row.error_code not in unknown
    ]


async def abort_transaction(client: KafkaClient, transactional_id: str) -> None:
    """Abort an id's open transaction, and fence its producer.

    It sends InitProducerId, like a new producer with the same id.
    """
    failure = f"transaction {transactional_id} cannot be aborted"
    transaction = await describe_transaction(client, transactional_id)
    body = {
        "transactional_id": transactional_id,
        "transaction_timeout_ms": transaction.timeout_ms,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    answer: Any = None
    async for _ in client.tries():
        answer = await client.request_of(
            transaction.coordinator_id, ApiKey.INIT_PRODUCER_ID, body, at_most=_LAST_INIT_VERSION
        )
        if answer.error_code not in {*PASSING, ErrorCode.CONCURRENT_TRANSACTIONS}:
            break
    check(answer.error_code, failure)


def _check_version(version: int, first: int, how: str) -> None:
    if version < first:
        raise ClientError(f"the brokers are too old to filter transactions {how}")


def _described(answer: Any, broker_id: int, failure: str) -> DescribedTransaction:
    if answer.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise ClientError(f"{failure}: there is no such transactional id", code=answer.error_code)
    check(answer.error_code, failure)
    started_ms = answer.transaction_start_time_ms
    return DescribedTransaction(
        answer.transactional_id,
        broker_id,
        answer.transaction_state,
        answer.producer_id,
        answer.producer_epoch,
        answer.transaction_timeout_ms,
        None if started_ms < 0 else started_ms,
        [
            f"{topic.topic}-{index}"
            for topic in sorted(answer.topics, key=lambda topic: topic.topic)
            for index in sorted(topic.partitions)
        ],
    )
