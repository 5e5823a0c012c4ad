"""Malicious frames: each costs at most its own connection and one log line.

The rows of the hostile-frame table and the CVE classes 2026-111115 (counts of tagged fields) and
2026-111108 (counts of array elements). After each, the broker must respond to other clients
immediately and use no more memory than the frame itself.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.hostile.hosted_broker import HostedBroker, framed, receive_answer
from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.codecs.primitives import uvarint

MIB = 1 << 20
# Memory that varies anyway: the allocator's, and what the first use of an API loads.
NOISE_BYTES = 12 * MIB


def header(key: int, version: int, *, tags: bytes = b"\0") -> bytes:
    head = struct.pack(">hhih", key, version, 7, 4) + b"evil"
    served = {int(api_key): api_key for api_key in API_VERSIONS}
    if key in served and version >= API_VERSIONS[served[key]].first_flexible:
        head += tags
    return head


def string(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


API_VERSIONS_REQUEST = framed(header(18, 0))


def assert_answered(broker: HostedBroker) -> None:
    with broker.connect() as sock:
        sock.sendall(API_VERSIONS_REQUEST)
        answer = receive_answer(sock)
    assert answer is not None
    assert answer[:6] == struct.pack(">ih", 7, 0)


def segments_sent_again(sock: socket.socket) -> int:
    """Return the TCP retransmissions (tcpi_total_retrans of Linux's tcp_info)."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    (count,) = struct.unpack_from("=I", info, 100)
    return count


def provoke(broker: HostedBroker, data: bytes) -> tuple[bytes | None, str]:
    """Send bytes; return the response (None if the connection was closed) and the local address."""
    with broker.connect() as sock:
        host, port = sock.getsockname()
        with contextlib.suppress(ConnectionError):
            sock.sendall(data)
        return receive_answer(sock), f"{host}:{port}"


@pytest.fixture(autouse=True)
def _others_are_served(broker: HostedBroker):
    assert_answered(broker)
    with broker.connect() as bystander:
        yield
        bystander.sendall(API_VERSIONS_REQUEST)
        assert receive_answer(bystander) is not None
        assert_answered(broker)


REFUSED = {
    "size -1": (struct.pack(">i", -1), "cannot have -1 bytes"),
    "size 0": (struct.pack(">i", 0), "cannot have 0 bytes"),
    "size 2^31-1": (struct.pack(">i", 2**31 - 1), "2147483647 bytes exceeds"),
    "size over the limit": (struct.pack(">i", 104_857_601), "socket.request.max.bytes"),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", "HTTP client is talking to the Kafka port"),
    "TLS": (bytes.fromhex("16030100c8010000c40303") + bytes(200), "TLS client is talking"),
    "a frame of one byte": (framed(b"\0"), "too short"),
    "unknown api key": (framed(header(999, 0)), "unknown api key 999"),
    "negative api key": (framed(header(-1, 0)), "unknown api key -1"),
    "api key of later parts": (framed(header(72, 0)), "api key 72"),
    "Metadata v99": (framed(header(3, 99)), "METADATA version 99 is not supported"),
    "Produce v2": (framed(header(0, 2) + bytes(20)), "PRODUCE version 2 is not supported"),
    "client id beyond the frame": (framed(struct.pack(">hhih", 3, 1, 7, 30_000)), "client id"),
    "client id of length -5": (framed(struct.pack(">hhih", 3, 1, 7, -5)), "client id"),
    "client id not UTF-8": (framed(struct.pack(">hhih", 3, 1, 7, 2) + b"\xff\xff"), "client id"),
    "array length 2^31-1": (framed(header(3, 1) + struct.pack(">i", 2**31 - 1)), ""),
    "string length -5": (framed(header(3, 1) + struct.pack(">ih", 1, -5)), ""),
    "overlong varint": (framed(header(3, 9) + b"\xff" * 12), ""),
    "overlong varint in the header": (framed(header(3, 9, tags=b"\xff" * 12)), ""),
    "header ends in its tags": (framed(header(3, 9, tags=b"\x05")), ""),
    "Produce cut short": (framed(header(0, 7) + b"\xff\xff\0\1\0\0"), ""),
    "Fetch cut short": (framed(header(1, 12) + bytes(9)), ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_frame_closes_its_connection_with_one_log_line(broker: HostedBroker, case):
    data, cause = REFUSED[case]
    before = broker.begin_memory_watch()
    answer, own_address = provoke(broker, data)
    assert answer is None
    (line,) = broker.lines_about(own_address)
    assert "closing" in line
    assert "PLAINTEXT" in line
    assert cause in line
    assert broker.peak_memory_bytes() - before < NOISE_BYTES


def test_bytes_after_the_body_are_ignored(broker: HostedBroker):
    data = framed(header(37, 0) + struct.pack(">iib", 0, 0, 0) + b"xyz")
    answer, _ = provoke(broker, data)
    assert answer is not None
    assert_answered(broker)


def test_frames_after_a_refused_one_are_not_served(broker: HostedBroker):
    answer, _ = provoke(broker, framed(header(999, 0)) + API_VERSIONS_REQUEST)
    assert answer is None


def test_api_versions_in_an_unknown_version_names_the_known_ones(broker: HostedBroker):
    expected = struct.pack(">ihihhh", 7, 35, 1, 18, 0, 5)
    for body in (b"", b"\xff" * 20):
        answer, _ = provoke(broker, framed(struct.pack(">hhih", 18, 99, 7, -1) + body))
        assert answer == expected


def test_negative_array_length_allocates_nothing(broker: HostedBroker):
    # Apache Kafka takes -2 for null, which requests all topics; closing is as good.
    before = broker.begin_memory_watch()
    provoke(broker, framed(header(3, 1) + struct.pack(">i", -2)))
    assert broker.peak_memory_bytes() - before < NOISE_BYTES


def test_a_declared_size_is_not_allocated_and_has_a_deadline(broker: HostedBroker):
    before = broker.begin_memory_watch()
    with broker.connect() as sock:
        own_address = "{}:{}".format(*sock.getsockname())
        sock.sendall(struct.pack(">i", 99 * MIB) + bytes(64))
        assert receive_answer(sock) is None
    (line,) = broker.lines_about(own_address)
    assert "64 of 103809024 bytes" in line
    assert broker.peak_memory_bytes() - before < NOISE_BYTES


def test_twenty_declared_giant_frames_allocate_nothing(broker: HostedBroker):
    before = broker.begin_memory_watch()
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            sock = stack.enter_context(broker.connect())
            sock.sendall(struct.pack(">i", 90 * MIB) + bytes(1024))
        assert_answered(broker)
    assert broker.peak_memory_bytes() - before < NOISE_BYTES


def test_giant_frames_stay_within_the_memory_budget_and_are_served(broker: HostedBroker):
    size = 20 * MIB
    before = broker.begin_memory_watch()

    def send_giant(_number: int) -> bytes | None:
        with broker.connect() as sock:
            sock.settimeout(60)
            # These 20 MiB are only a client id: a cheap request for the broker.
            sock.sendall(struct.pack(">i", size) + header(18, 4))
            padding = memoryview(bytes(MIB))
            missing = size - len(header(18, 4))
            while missing:
                missing -= sock.send(padding[: min(missing, MIB)])
            return receive_answer(sock)

    with ThreadPoolExecutor(8) as pool:
        giants = pool.map(send_giant, range(8))
        for _ in range(5):
            assert_answered(broker)
        list(giants)
    # The budget, the one frame that may exceed it, and a 64 KiB read for each other one.
    assert broker.peak_memory_bytes() - before < (32 + 20 + 8) * MIB + NOISE_BYTES


def test_two_million_tagged_fields_in_a_header_cost_no_memory(broker: HostedBroker):
    # CVE-2026-111115: 4 bytes a field (2-byte tag, length 1, one byte).
    count = 2_000_000
    tags = uvarint(count) + b"".join(uvarint(200 + n % 1000) + b"\1x" for n in range(1000)) * 2000
    data = framed(header(18, 3, tags=tags) + b"\2a\2b\0")
    before = broker.begin_memory_watch()
    answer, own_address = provoke(broker, data)
    assert answer is None
    assert len(broker.lines_about(own_address)) == 1
    assert broker.peak_memory_bytes() - before < 2 * len(data) + NOISE_BYTES


@pytest.mark.parametrize("key", [ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FETCH])
def test_a_declared_count_of_tagged_fields_is_checked_against_the_bytes(broker, key):
    answer, own_address = provoke(
        broker, framed(header(key, 12 if key != 18 else 3, tags=b"\xff\xff\xff\xff\x0f"))
    )
    assert answer is None
    assert len(broker.lines_about(own_address)) == 1


def test_three_million_empty_topic_names_are_capped(broker: HostedBroker):
    count = 3_000_000
    data = framed(header(3, 1) + struct.pack(">i", count) + bytes(2 * count))
    before = broker.begin_memory_watch()
    answer, own_address = provoke(broker, data)
    assert answer is None
    assert len(broker.lines_about(own_address)) == 1
    assert broker.peak_memory_bytes() - before < 2 * len(data) + NOISE_BYTES


# key -> (version, body up to the count of the first array).
ARRAYS = {
    ApiKey.PRODUCE: (7, struct.pack(">hhi", -1, 1, 1000)),
    ApiKey.FETCH: (4, struct.pack(">iiiib", -1, 100, 1, 1000, 0)),
    ApiKey.LIST_OFFSETS: (1, struct.pack(">i", -1)),
    ApiKey.METADATA: (1, b""),
    ApiKey.CREATE_TOPICS: (2, b""),
    ApiKey.DELETE_TOPICS: (1, b""),
    ApiKey.CREATE_PARTITIONS: (0, b""),
    ApiKey.DESCRIBE_CONFIGS: (1, b""),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, b""),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, b""),
}
COMPACT_ARRAYS = {
    ApiKey.PRODUCE: (9, b"\0" + struct.pack(">hi", 1, 1000)),
    ApiKey.FETCH: (12, struct.pack(">iiiibii", -1, 100, 1, 1000, 0, 0, -1)),
    ApiKey.LIST_OFFSETS: (6, struct.pack(">ib", -1, 0)),
    ApiKey.METADATA: (9, b""),
    ApiKey.CREATE_TOPICS: (5, b""),
    ApiKey.DELETE_TOPICS: (6, b""),
    ApiKey.CREATE_PARTITIONS: (2, b""),
    ApiKey.DESCRIBE_CONFIGS: (4, b""),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (1, b""),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, b""),
}


@pytest.mark.parametrize("fill", [0, 100_000], ids=["nothing after", "zeros after"])
@pytest.mark.parametrize("is_compact", [False, True], ids=["int32", "compact"])
def test_array_counts_are_checked_before_allocation(broker: HostedBroker, is_compact, fill):
    # CVE-2026-111108: a count is compared with the remaining bytes before any allocation.
    counts = [uvarint(2**32 - 1), uvarint(2**31)] if is_compact else [b"\x7f\xff\xff\xff"]
    before = broker.begin_memory_watch()
    for key, (version, start) in (COMPACT_ARRAYS if is_compact else ARRAYS).items():
        for count in counts:
            answer, own_address = provoke(
                broker, framed(header(key, version) + start + count + bytes(fill))
            )
            assert answer is None, key.name
            assert len(broker.lines_about(own_address)) == 1, key.name
    assert broker.peak_memory_bytes() - before < NOISE_BYTES


def test_a_garbage_batch_is_refused_for_its_partition(broker: HostedBroker):
    topic = b"hostile-garbage"
    create = framed(header(3, 4) + struct.pack(">i", 1) + string(topic) + b"\1")
    deadline = time.monotonic() + 20
    while True:
        answer, _ = provoke(broker, create)
        assert answer is not None
        # The first metadata response about an auto-created topic may be LEADER_NOT_AVAILABLE.
        if struct.pack(">h", 0) + string(topic) in answer:
            break
        assert time.monotonic() < deadline
    for records in (b"", b"\xff" * 10, bytes(61), b"\x01" * 200):
        body = struct.pack(">hhii", -1, -1, 1000, 1) + string(topic)
        body += struct.pack(">iii", 1, 0, len(records)) + records
        error_code = 3
        # UNKNOWN_TOPIC_OR_PARTITION: Metadata has a topic shortly before its log exists.
        while error_code == 3:
            assert time.monotonic() < deadline
            answer, _ = provoke(broker, framed(header(0, 7) + body))
            assert answer is not None
            start = 4 + 4 + 2 + len(topic) + 4
            index, error_code = struct.unpack_from(">ih", answer, start)
        # CORRUPT_MESSAGE, UNSUPPORTED_FOR_MESSAGE_FORMAT, INVALID_RECORD
        assert (index, error_code in {2, 43, 87}) == (0, True)


def test_slowly_sent_frame_is_closed_at_the_deadline(broker: HostedBroker):
    data = framed(header(3, 1) + struct.pack(">i", 1) + string(b"x" * 100))
    with broker.connect() as sock:
        own_address = "{}:{}".format(*sock.getsockname())
        sock.settimeout(0.1)
        for position in range(len(data) - 1):
            try:
                sock.sendall(data[position : position + 1])
                assert sock.recv(1) == b""
                break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            raise AssertionError("never cut")
    (line,) = broker.lines_about(own_address)
    assert "its request timed out" in line


def test_two_thousand_connections_in_a_row_are_accepted(broker: HostedBroker):
    before = broker.begin_memory_watch()
    sockets: list[socket.socket] = []
    try:
        sockets.extend(broker.connect() for _ in range(2000))
        assert_answered(broker)
        # A SYN dropped by a full backlog is sent again a second later.
        assert sum(segments_sent_again(sock) for sock in sockets) == 0
    finally:
        for sock in sockets:
            sock.close()
    assert broker.peak_memory_bytes() - before < 2000 * 8192 + NOISE_BYTES
