import mmap
import tracemalloc
import weakref

import pytest

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.net.client.response_frames import ResponseFrames
from wirebroker.net.frames.frame_buffer import FrameBlocks


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4) + body


def received(frames: ResponseFrames, data: bytes, piece: int = 1 << 20) -> list[memoryview]:
    complete_frames = []
    while data:
        room = frames.get_buffer()
        assert room
        count = min(len(room), piece, len(data))
        room[:count] = data[:count]
        data = data[count:]
        frames.buffer_updated(count)
        while (frame := frames.next_frame()) is not None:
            complete_frames.append(frame)
    return complete_frames


@pytest.mark.parametrize("piece", [1, 3, 7, 4096, 1 << 20])
def test_responses_are_complete_whatever_the_read_boundaries(piece):
    bodies = [b"%d" % size + bytes(size) for size in (4, 0, 40, 4096, 70_000, 5)] * 2
    bodies += [b"%d" % number + bytes(20_000) for number in range(9)]
    bodies = [body.ljust(4, b".") for body in bodies]
    data = b"".join(map(framed, bodies))
    frames = ResponseFrames(1 << 20)
    assert [bytes(frame) for frame in received(frames, data, piece)] == bodies


def test_responses_are_unchanged_while_others_arrive():
    frames = ResponseFrames(1 << 22)
    first = received(frames, framed(b"a" * 50_000) + framed(b"b" * 300_000))
    for _ in range(10):
        received(frames, framed(b"c" * 60_000) + framed(b"d" * 300_000))
    assert [bytes(frame) for frame in first] == [b"a" * 50_000, b"b" * 300_000]


@pytest.mark.parametrize("length", [-1, 0, 3, 1001, 2**31 - 1])
def test_invalid_response_length_is_refused(length):
    frames = ResponseFrames(1000)
    with pytest.raises(MalformedFrameError, match=f"invalid response length: {length} bytes"):
        received(frames, length.to_bytes(4, signed=True) + b"....")


def test_declared_length_allocates_nothing_before_arrival():
    frames = ResponseFrames(1 << 30)
    tracemalloc.start()
    try:
        received(frames, (1 << 30).to_bytes(4) + b"x" * 1000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_long_responses_are_not_copied():
    frames = ResponseFrames(1 << 22)
    (first,) = received(frames, framed(b"a" * 70_000))
    views = [first]
    for number in range(6):
        room = frames.get_buffer()
        assert len(room) > 1 << 20, "a block, as long as the answers of one fetch may well be"
        body = b"%d" % number * 70_000
        data = framed(body) + framed(b"short")
        room[: len(data)] = data
        frames.buffer_updated(len(data))
        long, short = frames.next_frame(), frames.next_frame()
        assert long is not None
        assert short is not None
        assert (bytes(long), bytes(short), frames.next_frame()) == (body, b"short", None)
        room[4] = ord("!")
        assert long[0] == ord("!"), "the same memory"
        views.append(long)
    assert [bytes(view[1:]) for view in views] == [
        b"a" * 69_999,
        *(b"%d" % number * 69_999 for number in range(6)),
    ]
    del long, room
    rooms = {id(frames.get_buffer().obj)}
    views.clear()
    for _ in range(4):
        received(frames, framed(b"b" * 70_000))
        rooms.add(id(frames.get_buffer().obj))
    assert len(rooms) < 5, "unreferenced blocks are used again"


@pytest.mark.parametrize("last", [b"short", b"d" * 40_000, b"e" * 300_000, b"f" * 2_000_000])
def test_waiting_connections_have_none_of_the_blocks_that_they_share(last):
    blocks = FrameBlocks()
    connections = [ResponseFrames(1 << 22, blocks) for _ in range(20)]
    used = []
    for frames in connections:
        for body in (b"a" * 70_000, b"b" * 50_000, b"c" * 900_000, last):
            for frame in received(frames, framed(body)):
                assert bytes(frame) == body
                if isinstance(frame.obj, mmap.mmap):
                    used.append(weakref.ref(frame.obj))
            del frame
        # TLS transports ask for memory once more before they wait.
        frames.get_buffer()
    assert len(used) >= 2 * len(connections)
    assert 1 <= len({id(block) for ref in used if (block := ref()) is not None}) <= 4
