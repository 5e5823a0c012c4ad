"""The five requests to share coordinators, as messages and as operations.

Source: KIP-932; Kafka's PersisterStateManager, ShareCoordinatorService.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.share_state import operations
from wirebroker.coordinator.share_state.errors import message_of
from wirebroker.coordinator.share_state.state import (
    PersistedState,
    StateError,
    StateSummary,
    StateWrite,
)
from wirebroker.coordinator.share_state.stored_state import NO_COUNT, batches_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.coordinator.outcome import Outcome

# In one write of a partition, which holds the event loop. A share partition never has as many
# records in flight (group.share.max.partition.max.record.locks).
MOST_BATCHES: Final = 10_000

Fields = dict[str, Any]
# Topic id, partition index.
Partition = tuple[bytes, int]


class StateRpc(NamedTuple):
    """One of the requests. Its data and its result are those of one partition."""

    key: ApiKey
    # In error messages of the persister and of the coordinator.
    name: str
    action: str
    operation: Callable[..., Outcome]
    # The operation's arguments after the partition's key.
    arguments: Callable[[Any], tuple[Any, ...]]
    # From and to the fields of messages. Decoded data may be a StateError: the operation then does
    # not run.
    encode_data: Callable[[Any], Fields]
    decode_data: Callable[[Any], Any]
    encode_result: Callable[[Any], Fields]
    decode_result: Callable[[Any], Any]

    def error(self, code: ErrorCode) -> Fields:
        """Return a coordinator's response to a request that it could not serve."""
        message = f"Unable to {self.action}: {message_of(code)}"
        return {"result": StateError(code, message)}

    def request(self, group_id: str, partitions: Mapping[Partition, Any]) -> Fields:
        """Return a request; `partitions` maps to the data."""
        topics: dict[bytes, list[Fields]] = {}
        for (topic_id, index), data in partitions.items():
            fields = {"partition": index, **self.encode_data(data)}
            topics.setdefault(topic_id, []).append(fields)
        return {
            "group_id": group_id,
            "topics": [
                {"topic_id": topic_id, "partitions": entries}
                for topic_id, entries in topics.items()
            ],
        }

    def results(self, response: Any) -> dict[Partition, Any]:
        """Return the results in a decoded response."""
        return {
            (topic.topic_id, result.partition): self._result(result)
            for topic in response.results
            for result in topic.partitions
        }

    def _result(self, result: Any) -> Any:
        code = ErrorCode(result.error_code)
        if code is ErrorCode.NONE:
            return self.decode_result(result)
        return StateError(code, result.error_message or message_of(code))

    def result_fields(self, partition: int, result: Any) -> Fields:
        """Return a result as fields of a response."""
        if isinstance(result, StateError):
            return {
                "partition": partition,
                "error_code": result.code,
                "error_message": result.message,
            }
        return {"partition": partition, **self.encode_result(result)}


def _no_fields(data: Any) -> Fields:
    del data
    return {}


def _no_result(result: Any) -> None:
    del result


def _one_argument(data: Any) -> tuple[Any, ...]:
    return (data,)


def _without_arguments(data: Any) -> tuple[Any, ...]:
    del data
    return ()


def _initial(initial: tuple[int, int]) -> Fields:
    state_epoch, start_offset = initial
    return {"state_epoch": state_epoch, "start_offset": start_offset}


def _initial_of(partition: Any) -> tuple[int, int]:
    return partition.state_epoch, partition.start_offset


def _leader_epoch(leader_epoch: int) -> Fields:
    return {"leader_epoch": leader_epoch}


def _leader_epoch_of(partition: Any) -> int:
    epoch: int = partition.leader_epoch
    return epoch


def _write(written: StateWrite) -> Fields:
    fields = written._asdict()
    del fields["batches"]
    return {**fields, "state_batches": [batch.fields() for batch in written.batches]}


def _write_of(partition: Any) -> StateWrite | StateError:
    if len(partition.state_batches) > MOST_BATCHES:
        message = f"More than {MOST_BATCHES} batches of one partition."
        return StateError(ErrorCode.INVALID_REQUEST, message)
    return StateWrite(
        partition.state_epoch,
        partition.leader_epoch,
        partition.start_offset,
        partition.delivery_complete_count,
        batches_of(partition),
    )


def _state(state: PersistedState) -> Fields:
    return {
        "state_epoch": state.state_epoch,
        "start_offset": state.start_offset,
        "state_batches": [batch.fields() for batch in state.batches],
    }


def _state_of(result: Any) -> PersistedState:
    # The protocol's Read has no count.
    return PersistedState(result.state_epoch, result.start_offset, NO_COUNT, batches_of(result))


def _summary(summary: StateSummary) -> Fields:
    return summary._asdict()


def _summary_of(result: Any) -> StateSummary:
    return StateSummary(
        result.state_epoch,
        result.leader_epoch,
        result.start_offset,
        result.delivery_complete_count,
    )


INITIALIZE: Final = StateRpc(
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    "initialize state",
    "initialize share group state",
    operations.initialize,
    _one_argument,
    _initial,
    _initial_of,
    _no_fields,
    _no_result,
)
READ: Final = StateRpc(
    ApiKey.READ_SHARE_GROUP_STATE,
    "read state",
    "read share group state",
    operations.read,
    _one_argument,
    _leader_epoch,
    _leader_epoch_of,
    _state,
    _state_of,
)
WRITE: Final = StateRpc(
    ApiKey.WRITE_SHARE_GROUP_STATE,
    "write state",
    "write share group state",
    operations.write,
    _one_argument,
    _write,
    _write_of,
    _no_fields,
    _no_result,
)
DELETE: Final = StateRpc(
    ApiKey.DELETE_SHARE_GROUP_STATE,
    "delete state",
    "delete share group state",
    operations.delete,
    _without_arguments,
    _no_fields,
    _no_result,
    _no_fields,
    _no_result,
)
READ_SUMMARY: Final = StateRpc(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    "read state summary",
    "read share group state summary",
    operations.read_summary,
    _without_arguments,
    _leader_epoch,
    _leader_epoch_of,
    _summary,
    _summary_of,
)
