"""Framing without I/O: byte positions, refusals, and late frames."""

import random
import struct

import pytest

from wirebroker.base.shared_block import is_shared, keep, owned
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.net.frames.protocol import SMALL_FRAME_BYTES, Protocol, frame_answer
from wirebroker.net.frames.receive_area import ReceiveArea
from wirebroker.storage.files import Files, FileSlice

MAX_BYTES = 100 << 20


def new_protocol(area: ReceiveArea | None = None, *, max_bytes: int = MAX_BYTES) -> Protocol:
    return Protocol(area or ReceiveArea(), request_max_bytes=max_bytes, deadline_s=30.0)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def receive(protocol: Protocol, data: bytes) -> list[bytes]:
    """Feed everything in reads of the buffer's size; return the resulting frames."""
    frames: list[bytes] = []
    remaining = memoryview(data)
    while remaining:
        buffer = protocol.get_buffer()
        count = min(len(buffer), len(remaining))
        buffer[:count] = remaining[:count]
        remaining = remaining[count:]
        protocol.buffer_updated(count)
        while (frame := protocol.next_frame()) is not None:
            frames.append(bytes(frame))
        protocol.hold()
    return frames


def test_frames_are_complete_whatever_the_read_boundaries():
    source = random.Random(7)
    bodies = [
        source.randbytes(source.choice([1, 10, 200, 70_000, 300_000, 1_200_000])) for _ in range(40)
    ]
    data = b"".join(map(framed, bodies))
    for longest_cut in (3, 5_000, 200_000, 3_000_000):
        area = ReceiveArea()
        protocol, other = new_protocol(area), new_protocol(area)
        frames: list[bytes] = []
        position = 0
        cuts = data if longest_cut > 3 else data[:40_000]
        while position < len(cuts):
            count = source.randint(1, longest_cut)
            frames += receive(protocol, cuts[position : position + count])
            position += count
            # Another connection overwrites the shared area between any two reads.
            receive(other, framed(bytes(1000)))
        assert frames == bodies[: len(frames)]
        assert longest_cut == 3 or frames == bodies


def test_whole_frames_are_views_into_the_shared_area():
    area = ReceiveArea()
    protocol = new_protocol(area)
    protocol.get_buffer()[:9] = framed(b"hello")
    protocol.buffer_updated(9)
    frame = protocol.next_frame()
    assert frame is not None
    assert is_shared(frame)
    assert not frame.readonly
    assert protocol.hold() == 0


def test_frames_that_wait_leave_the_shared_area():
    area = ReceiveArea()
    protocol = new_protocol(area)
    data = framed(b"first") + framed(b"second") + framed(b"third")[:6]
    protocol.get_buffer()[: len(data)] = data
    protocol.buffer_updated(len(data))
    assert bytes(protocol.next_frame() or b"") == b"first"
    assert protocol.hold() == len(data) - 9
    area.view[:100] = bytes(100)
    assert bytes(protocol.next_frame() or b"") == b"second"
    assert protocol.next_frame() is None
    protocol.hold()
    assert receive(protocol, framed(b"third")[6:]) == [b"third"]
    assert protocol.held_bytes == 0


def test_a_large_frame_owns_its_bytes():
    area = ReceiveArea()
    protocol = new_protocol(area)
    body = bytes(range(256)) * 1000
    receive(protocol, framed(body)[:1000])
    assert protocol.is_large
    remaining = framed(body)[1000:]
    protocol.get_buffer()[: len(remaining)] = remaining
    protocol.buffer_updated(len(remaining))
    frame = protocol.next_frame()
    area.view[:1000] = bytes(1000)
    assert frame is not None
    assert bytes(frame) == body
    assert not is_shared(frame)
    assert owned(frame) is frame
    assert not protocol.is_large


def test_receiving_a_large_frame_does_not_take_bytes_of_the_next():
    protocol = new_protocol()
    receive(protocol, framed(bytes(SMALL_FRAME_BYTES + 1))[:-10])
    assert len(protocol.get_buffer()) == 10


def test_kept_bytes_stay_and_the_receive_area_continues_after():
    area = ReceiveArea()
    protocol = new_protocol(area)
    data = framed(b"keep me") + framed(b"next")
    protocol.get_buffer()[: len(data)] = data
    protocol.buffer_updated(len(data))
    frame = protocol.next_frame()
    assert frame is not None
    part = frame[5:]
    keep(frame)
    keep(frame)
    assert bytes(protocol.next_frame() or b"") == b"next"
    protocol.hold()
    receive(protocol, framed(b"overwrites"))
    assert bytes(frame) == b"keep me"
    assert bytes(part) == b"me"


def test_ten_thousand_kept_requests_share_their_memory():
    area = ReceiveArea()
    protocol = new_protocol(area)
    frames = []
    for number in range(10_000):
        data = framed(b"request %d" % number)
        protocol.get_buffer()[: len(data)] = data
        protocol.buffer_updated(len(data))
        frame = protocol.next_frame()
        assert frame is not None
        keep(frame)
        frames.append(frame)
        protocol.hold()
        assert len(area.view) >= 512 << 10
    assert all(bytes(frame) == b"request %d" % number for number, frame in enumerate(frames))
    assert len({id(frame.obj) for frame in frames}) == 1


def test_kept_large_reads_use_up_blocks():
    area = ReceiveArea()
    protocol = new_protocol(area)
    frames = []
    for number in range(10):
        body = bytes([number]) * 300_000
        data = framed(body)
        protocol.get_buffer()[: len(data)] = data
        protocol.buffer_updated(len(data))
        frame = protocol.next_frame()
        assert frame is not None
        keep(frame)
        frames.append((frame, body))
        protocol.hold()
    assert all(bytes(frame) == body for frame, body in frames)
    assert len({id(frame.obj) for frame, _ in frames}) == 5


def test_a_kept_small_view_is_a_copy():
    area = ReceiveArea()
    area.view[:3] = b"abc"
    copy = owned(area.view[:3])
    area.view[:3] = b"xyz"
    assert bytes(copy) == b"abc"


@pytest.mark.parametrize(
    ("start", "cause"),
    [
        (struct.pack(">i", -1), "cannot have -1 bytes"),
        (struct.pack(">i", 0), "cannot have 0 bytes"),
        (struct.pack(">i", 2**31 - 1), "exceeds socket.request.max.bytes"),
        (struct.pack(">i", MAX_BYTES + 1), "exceeds socket.request.max.bytes"),
        (b"GET / HTTP/1.1\r\n", "HTTP client"),
        (b"PRI * HTTP/2.0\r\n", "HTTP client"),
        (bytes.fromhex("16030102000100"), "TLS client"),
    ],
)
def test_invalid_frame_length_is_refused_with_a_reason(start, cause):
    protocol = new_protocol()
    with pytest.raises(MalformedFrameError, match=cause):
        receive(protocol, start)


def test_foreign_protocols_are_recognized_even_if_the_length_is_valid():
    with pytest.raises(MalformedFrameError, match="HTTP client"):
        receive(new_protocol(max_bytes=2**31 - 1), b"GET / HTTP/1.1\r\n")
    assert receive(new_protocol(max_bytes=2**31 - 1), struct.pack(">i", 2**31 - 1)) == []


def test_frame_is_late_after_the_deadline_or_below_64_kib_per_second():
    protocol = new_protocol()
    receive(protocol, framed(bytes(10 << 20))[:4])
    protocol.progressed(4, 100.0)
    assert not protocol.is_late(129.9)
    assert protocol.is_late(130.1)
    # 64 KiB per second is just enough forever; half of that uses up the 30 seconds in 60.
    for second in range(1, 100):
        protocol.progressed(64 << 10, 100.0 + second)
    assert not protocol.is_late(199.0)
    for second in range(100, 159):
        protocol.progressed(32 << 10, 100.0 + second)
        assert not protocol.is_late(100.0 + second)
    for second in range(159, 165):
        protocol.progressed(32 << 10, 100.0 + second)
    assert protocol.is_late(264.0)


def test_burst_extends_nothing_beyond_the_deadline():
    protocol = new_protocol()
    protocol.progressed(4, 0.0)
    protocol.progressed(90 << 20, 1.0)
    assert protocol.is_late(31.1)


def test_time_without_reading_does_not_count():
    protocol = new_protocol()
    receive(protocol, framed(bytes(10 << 20))[:4])
    protocol.progressed(4, 0.0)
    protocol.pause(10.0)
    assert not protocol.is_late(1000.0)
    protocol.resume(1000.0)
    assert not protocol.is_late(1019.0)
    assert protocol.is_late(1021.0)


def test_a_whole_frame_ends_its_deadline():
    protocol = new_protocol()
    receive(protocol, framed(b"body")[:5])
    protocol.progressed(5, 0.0)
    assert receive(protocol, framed(b"body")[5:]) == [b"body"]
    assert not protocol.is_late(1e9)


def test_small_response_buffers_are_joined_after_length_and_header():
    assert frame_answer(7, [b"ab"], is_flexible=False) == [b"\0\0\0\x06\0\0\0\x07ab"]
    assert frame_answer(7, [b"ab", bytearray(b"c")], is_flexible=True) == [
        b"\0\0\0\x08\0\0\0\x07\0abc"
    ]
    assert frame_answer(7, [], is_flexible=False) == [b"\0\0\0\x04\0\0\0\x07"]


def test_file_slices_and_large_response_buffers_stay_separate():
    large = memoryview(bytes(200_000))
    part = FileSlice(Files().data("unopened"), 10, 500)
    empty = FileSlice(part.file, 10, 0)
    answer = frame_answer(1, [b"head", part, b"", empty, b"tail", large, b"end"], is_flexible=False)
    assert answer == [
        struct.pack(">ii", 4 + 4 + 500 + 4 + 200_000 + 3, 1) + b"head",
        part,
        b"tail",
        large,
        b"end",
    ]
    assert answer[3] is large
