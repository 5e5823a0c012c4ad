"""Runs the steps of a transcript against a broker and prints its responses.

The commands:

    settings NAME=VALUE …     the broker needs these configs (first line of a file)
    send API VERSION          a request; its fields are the arguments; `to NAME` after it uses a
                              second connection
    frame API VERSION         the same with `body = hex("…")`, for bodies that cannot be encoded
    create TOPIC PARTITIONS   a topic, with `configs = {…}`; waits for its leaders
    append TOPIC PARTITION    Produce with acks=-1 of `records = batch(…)`; prints the response
    wait TOPIC PARTITIONS     until Metadata shows that many partitions with leaders; 0: deleted
    wait-config TOPIC NAME VALUE
    wait-broker-config NAME VALUE
    wait-group-config GROUP NAME VALUE
    wait-client-metrics RESOURCE NAME VALUE
    begin API VERSION as NAME a request with a later response, on its own connection
    await NAME                its response
    coordinator               until groups are served: `__consumer_offsets` is loaded
    wait-group GROUP STATE MEMBERS
    wait-consumer-group GROUP EPOCH MEMBERS
    wait-streams-assignment GROUP EPOCH
    wait-share-group GROUP EPOCH MEMBERS
    wait-share-state GROUP PARTITIONS   until the group has share state of that many partitions
    group-records GROUP       its records in `__consumer_offsets` (group_records.py)
    share-coordinator TOPIC   until the state of its partitions in share groups is served
    share-records GROUP       the group's records in `__share_group_state` (share_records.py)
    transactions              until transactional ids are served: `__transaction_state` is loaded
    wait-transaction ID STATE for example until all markers are written
    settle ID                 until no markers of its last transaction are pending
    wait-offsets GROUP COUNT  until the group has committed offsets of that many partitions
    restart                   stop the broker and start it again
    admin                     from here on the second client, `guest`, has no permissions except by
    allow OPERATION RESOURCE NAME, deny …, revoke    (permissions.py)

`create` and `wait` hide that Apache Kafka's broker applies a change a moment after the response;
`wait-group` after `begin` waits until the request has arrived.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from tests.support.protocol.message_schemas import schema_of
from tests.support.tools.waiting import eventually
from tests.transcripts.arguments import evaluate
from tests.transcripts.batches import HELPERS
from tests.transcripts.connection import TIMEOUT_S, Connection
from tests.transcripts.group_records import group_records
from tests.transcripts.permissions import GUEST, GUEST_HOST, Permissions
from tests.transcripts.printing import Names, lines_of
from tests.transcripts.script import ScriptError
from tests.transcripts.share_records import share_records
from wirebroker.codecs.api_keys import SPOKEN_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode, MalformedFrameError
from wirebroker.codecs.frames import response_header
from wirebroker.codecs.messages import (
    decode_response,
    encode_request,
    request_message,
    response_message,
)
from wirebroker.codecs.primitives import uuid_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.transcripts.script import Step

_POLL_S = 0.02
_METADATA_VERSION = 12
_CREATE_VERSION = 7
_PRODUCE_VERSION = 9
_CONFIGS_VERSION = 4
_OFFSETS_VERSION = 7
_FIND_COORDINATOR_VERSION = 2
_DESCRIBE_GROUPS_VERSION = 5
_DESCRIBE_CONSUMER_GROUPS_VERSION = 1
_OFFSET_FETCH_VERSION = 2
_TOPIC_RESOURCE, _BROKER_RESOURCE, _CLIENT_METRICS_RESOURCE, _GROUP_RESOURCE = 2, 4, 16, 32
_NODE_ID = "1"
_LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
_UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2)


class Driver:
    """Runner of a transcript's steps; arguments may call its `helpers`.

    Args:
        host: The broker's host.
        port: The broker's port.
        restart: Restarts the broker on the same port.
        timeout_s: Timeout of each response and each wait.
    """

    helpers: ClassVar[Mapping[str, Callable[..., Any]]] = HELPERS

    def __init__(
        self,
        host: str,
        port: int,
        *,
        restart: Callable[[], None] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._host, self._port = host, port
        self._restart = restart
        self._timeout_s = timeout_s
        self._connections: dict[str, Connection] = {}
        # Pending requests by connection: key, version, correlation id.
        self._begun: dict[str, tuple[ApiKey, int, int]] = {}
        self.names = Names(now_ms=time.time_ns() // 1_000_000)
        self._permissions = Permissions(self._quietly, self._poll)

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._begun.clear()

    def run(self, steps: Iterable[Step]) -> list[Step]:
        return [step.with_answer(self.answer(step)) for step in steps]

    def answer(self, step: Step) -> list[str]:
        """Run one step and return the response as lines.

        Raises:
            ScriptError: The step is invalid or failed.
        """
        commands = {
            "settings": self._settings,
            "send": self._send,
            "frame": self._frame,
            "create": self._create,
            "append": self._append,
            "wait": self._wait,
            "wait-config": self._wait_config,
            "wait-broker-config": self._wait_broker_config,
            "wait-group-config": self._wait_group_config,
            "wait-client-metrics": self._wait_client_metrics,
            "begin": self._begin,
            "await": self._await,
            "coordinator": self._coordinator,
            "wait-group": self._wait_group,
            "wait-consumer-group": self._wait_consumer_group,
            "wait-streams-assignment": self._wait_streams_assignment,
            "wait-share-group": self._wait_share_group,
            "wait-share-state": self._wait_share_state,
            "group-records": self._group_records,
            "share-coordinator": self._share_coordinator,
            "share-records": self._share_records,
            "transactions": self._transactions,
            "wait-transaction": self._wait_transaction,
            "settle": self._settle,
            "wait-offsets": self._wait_offsets,
            "restart": self._restart_broker,
            "admin": self._admin,
            "allow": self._allow,
            "deny": self._allow,
            "revoke": self._revoke,
        }
        words = " ".join(step.command)
        try:
            arguments = evaluate(step.arguments, self.names.values, self.helpers)
            return commands[step.command[0]](step, arguments)
        except (ScriptError, KeyError, ValueError, AssertionError, OSError) as error:
            raise ScriptError(f"line {step.line_number}, {words!r}: {error!r}") from error

    def _settings(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del step, arguments  # they were applied when the broker started
        return []

    def _send(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        key, version = api_key_of(step.command[1]), int(step.command[2])
        connection = step.command[4] if len(step.command) > 4 else "first"
        body = encode_request(key, min(version, SPOKEN_VERSIONS[key].max_version), arguments)
        frame = self._exchange(connection, key, version, body, arguments)
        if isinstance(frame, str):
            return [frame]
        response = response_message(key)
        start = len(response_header(key, version, 0))
        if key is ApiKey.API_VERSIONS and frame[start : start + 2] == _UNSUPPORTED_VERSION:
            version = 0  # the response to an unsupported version has version 0
        decoded = decode_response(key, version, frame, start)
        if key == ApiKey.INIT_PRODUCER_ID and decoded.error_code == _LOADING:
            time.sleep(_POLL_S)  # Apache Kafka has not allocated its first block of ids
            return self._send(step, arguments)
        return lines_of(schema_of(response), version, decoded, self.names)

    def _frame(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        key, version = api_key_of(step.command[1]), int(step.command[2])
        frame = self._exchange("first", key, version, arguments["body"], {})
        return [frame if isinstance(frame, str) else frame.hex()]

    def _exchange(
        self, name: str, key: ApiKey, version: int, body: bytes, arguments: dict[str, Any]
    ) -> bytes | str:
        assert name not in self._begun, f"{name} waits for an answer"
        connection = self._connect(name)
        expected = connection.send(key, version, body)
        is_silent = key == ApiKey.PRODUCE and arguments.get("acks") == 0
        if is_silent:  # acks=0 has no response, so wait for that of another request
            expected = connection.send(ApiKey.API_VERSIONS, 0, b"")
        frame = self._receive(name, expected)
        return "no answer" if is_silent and not isinstance(frame, str) else frame

    def _connect(self, name: str) -> Connection:
        connection = self._connections.get(name)
        if connection is None:
            connection = self._connections[name] = Connection(
                self._host,
                self._port,
                source=GUEST_HOST if name == GUEST else "",
                timeout_s=self._timeout_s,
            )
        return connection

    def _receive(self, name: str, expected: int) -> bytes | str:
        connection = self._connections[name]
        frame = connection.receive()
        if frame is None:
            del self._connections[name]
            connection.close()
            return "the connection is closed"
        assert int.from_bytes(frame[:4]) == expected, "the answer is another request's"
        return frame

    def _admin(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del step, arguments
        self._permissions.admin()
        return []

    def _allow(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        verb, operation, resource, name = step.command
        self._permissions.add(operation, resource, name, is_allowed=verb == "allow")
        return []

    def _revoke(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del step, arguments
        self._permissions.revoke()
        return []

    def _begin(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        _, api, number, _, name = step.command
        assert name not in self._begun, f"{name} waits for an answer"
        key, version = api_key_of(api), int(number)
        body = encode_request(key, version, arguments)
        expected = self._connect(name).send(key, version, body)
        self._begun[name] = key, version, expected
        return []

    def _await(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        name = step.command[1]
        key, version, expected = self._begun.pop(name)
        frame = self._receive(name, expected)
        if isinstance(frame, str):
            return [frame]
        decoded = decode_response(key, version, frame, len(response_header(key, version, 0)))
        return lines_of(schema_of(response_message(key)), version, decoded, self.names)

    def _create(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        name, partitions = step.command[1], int(step.command[2])
        settings = arguments.get("configs", {})
        configs = [{"name": key, "value": value} for key, value in settings.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
        request = {"topics": [{**topic, "configs": configs}], "timeout_ms": 30_000}
        decoded = self._quietly(ApiKey.CREATE_TOPICS, _CREATE_VERSION, request)
        (created,) = decoded.topics
        if created.error_code:
            return [ErrorCode(created.error_code).name]
        self._wait_for(name, partitions)
        return [f"{name} is {self.names.name('T', created.topic_id)}"]

    def _append(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        partition = {"index": int(step.command[2]), "records": arguments["records"]}
        topic = {"name": step.command[1], "partition_data": [partition]}
        request = {"acks": -1, "timeout_ms": 30_000, "topic_data": [topic]}
        decoded = self._quietly(ApiKey.PRODUCE, _PRODUCE_VERSION, request)
        answer = decoded.responses[0].partition_responses[0]
        if answer.error_code:
            return [ErrorCode(answer.error_code).name]
        return [f"base_offset {answer.base_offset}"]

    def _wait(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        self._wait_for(step.command[1], int(step.command[2]))
        return ["done"]

    def _wait_config(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        _, topic, name, expected = step.command
        return self._wait_for_config(_TOPIC_RESOURCE, topic, name, expected)

    def _wait_broker_config(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        _, name, expected = step.command
        return self._wait_for_config(_BROKER_RESOURCE, _NODE_ID, name, expected)

    def _wait_group_config(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        _, group, name, expected = step.command
        return self._wait_for_config(_GROUP_RESOURCE, group, name, expected)

    def _wait_client_metrics(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        _, resource, name, *expected = step.command
        return self._wait_for_config(_CLIENT_METRICS_RESOURCE, resource, name, " ".join(expected))

    def _wait_for_config(self, kind: int, of: str, name: str, expected: str) -> list[str]:
        resource = {"resource_type": kind, "resource_name": of}
        request = {"resources": [{**resource, "configuration_keys": [name]}]}

        def value() -> str | None:
            decoded = self._quietly(ApiKey.DESCRIBE_CONFIGS, _CONFIGS_VERSION, request)
            return next((entry.value for entry in decoded.results[0].configs), None)

        self._poll(lambda: value() == expected)
        return ["done"]

    def _coordinator(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del step, arguments
        request = {"key": "any", "key_type": 0}
        version = _FIND_COORDINATOR_VERSION

        def is_found() -> bool:
            decoded = self._quietly(ApiKey.FIND_COORDINATOR, version, request)
            return bool(decoded.error_code == 0)

        self._poll(is_found)
        self._poll(lambda: self._group("any").error_code == 0)
        return ["done"]

    def _share_coordinator(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        request = {"topics": [{"name": step.command[1]}], "allow_auto_topic_creation": False}
        metadata = self._quietly(ApiKey.METADATA, _METADATA_VERSION, request)
        topic_id = metadata.topics[0].topic_id
        key = f"any:{uuid_text(topic_id)}:0"
        sought = {"key_type": 2, "coordinator_keys": [key]}
        topics = [{"topic_id": topic_id, "partitions": [{"partition": 0, "leader_epoch": 0}]}]
        summary = {"group_id": "any", "topics": topics}

        def is_found() -> bool:
            decoded = self._quietly(ApiKey.FIND_COORDINATOR, 6, sought)
            return bool(decoded.coordinators[0].error_code == 0)

        def is_served() -> bool:
            decoded = self._quietly(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, summary)
            return bool(decoded.results[0].partitions[0].error_code == 0)

        self._poll(is_found)
        self._poll(is_served)
        return ["done"]

    def _share_records(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        return share_records(self._quietly, step.command[1], self.names)

    def _transactions(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del step, arguments
        request = {"key": "any", "key_type": 1}
        version = _FIND_COORDINATOR_VERSION

        def is_found() -> bool:
            decoded = self._quietly(ApiKey.FIND_COORDINATOR, version, request)
            return bool(decoded.error_code == 0)

        self._poll(is_found)
        not_found = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        self._poll(lambda: self._transaction("any").error_code == not_found)
        return ["done"]

    def _wait_transaction(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        _, transactional_id, state = step.command
        self._poll(lambda: self._transaction(transactional_id).transaction_state == state)
        return ["done"]

    def _settle(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        transactional_id = step.command[1]
        markers_left = {"PrepareCommit", "PrepareAbort"}
        self._poll(
            lambda: self._transaction(transactional_id).transaction_state not in markers_left
        )
        return ["done"]

    def _transaction(self, transactional_id: str) -> Any:
        request = {"transactional_ids": [transactional_id]}
        decoded = self._quietly(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
        return decoded.transaction_states[0]

    def _wait_group(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        _, group_id, state, count = step.command

        def is_so() -> bool:
            group = self._group(group_id)
            return bool(group.group_state == state and len(group.members) == int(count))

        self._poll(is_so)
        return ["done"]

    def _wait_consumer_group(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        _, group_id, epoch, count = step.command
        request = {"group_ids": [group_id]}
        version = _DESCRIBE_CONSUMER_GROUPS_VERSION

        def is_so() -> bool:
            decoded = self._quietly(ApiKey.CONSUMER_GROUP_DESCRIBE, version, request)
            group = decoded.groups[0]
            return bool(group.group_epoch == int(epoch) and len(group.members) == int(count))

        self._poll(is_so)
        return ["done"]

    def _wait_streams_assignment(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        _, group_id, epoch = step.command
        request = {"group_ids": [group_id]}

        def is_so() -> bool:
            decoded = self._quietly(ApiKey.STREAMS_GROUP_DESCRIBE, 0, request)
            return bool(decoded.groups[0].assignment_epoch == int(epoch))

        self._poll(is_so)
        return ["done"]

    def _wait_share_group(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        _, group_id, epoch, count = step.command
        request = {"group_ids": [group_id]}

        def is_so() -> bool:
            decoded = self._quietly(ApiKey.SHARE_GROUP_DESCRIBE, 1, request)
            group = decoded.groups[0]
            return bool(group.group_epoch == int(epoch) and len(group.members) == int(count))

        self._poll(is_so)
        return ["done"]

    def _wait_share_state(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        _, group_id, count = step.command
        request = {"groups": [{"group_id": group_id, "topics": None}]}

        def is_so() -> bool:
            decoded = self._quietly(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, request)
            topics = decoded.groups[0].topics
            return sum(len(topic.partitions) for topic in topics) == int(count)

        self._poll(is_so)
        return ["done"]

    def _group_records(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        return group_records(self._quietly, step.command[1], self.names)

    def _wait_offsets(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del arguments
        _, group_id, count = step.command
        request = {"group_id": group_id, "topics": None}

        def is_so() -> bool:
            decoded = self._quietly(ApiKey.OFFSET_FETCH, _OFFSET_FETCH_VERSION, request)
            return sum(len(topic.partitions) for topic in decoded.topics) == int(count)

        self._poll(is_so)
        return ["done"]

    def _group(self, group_id: str) -> Any:
        request = {"groups": [group_id]}
        decoded = self._quietly(ApiKey.DESCRIBE_GROUPS, _DESCRIBE_GROUPS_VERSION, request)
        return decoded.groups[0]

    def _restart_broker(self, step: Step, arguments: dict[str, Any]) -> list[str]:
        del step, arguments
        if self._restart is None:
            raise ScriptError("this broker can't be restarted from here")
        self.close()
        self._restart()
        return ["done"]

    def _wait_for(self, topic: str, partitions: int) -> None:
        request = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}

        def is_so() -> bool:
            decoded = self._quietly(ApiKey.METADATA, _METADATA_VERSION, request)
            listed = decoded.topics[0].partitions
            led = [partition for partition in listed if partition.leader_id >= 0]
            return len(led) == len(listed) == partitions

        self._poll(is_so)
        if partitions:
            self._poll(lambda: self._serves(topic, partitions))

    def _serves(self, topic: str, partitions: int) -> bool:
        """Return whether each partition has its log, a moment after Metadata lists it."""
        requested = [{"partition_index": index, "timestamp": -1} for index in range(partitions)]
        request = {"replica_id": -1, "topics": [{"name": topic, "partitions": requested}]}
        decoded = self._quietly(ApiKey.LIST_OFFSETS, _OFFSETS_VERSION, request)
        return all(partition.error_code == 0 for partition in decoded.topics[0].partitions)

    def _poll(self, condition: Callable[[], bool]) -> None:
        eventually(condition, timeout_s=self._timeout_s, poll_s=_POLL_S)

    def _quietly(self, key: ApiKey, version: int, request: dict[str, Any]) -> Any:
        """Return the decoded response to a request on a separate connection."""
        body = request_message(key).encode(version, request)
        frame = self._exchange("driver", key, version, body, {})
        assert isinstance(frame, bytes), frame
        try:
            return decode_response(key, version, frame, len(response_header(key, version, 0)))
        except MalformedFrameError as error:
            raise AssertionError(f"{key.name} v{version} is answered by nonsense") from error


def api_key_of(name: str) -> ApiKey:
    """Return the key of an API's name in steps: CreateTopics -> CREATE_TOPICS."""
    return ApiKey["".join(f"_{c}" if c.isupper() else c.upper() for c in name).lstrip("_")]
