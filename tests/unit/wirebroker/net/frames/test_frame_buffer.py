"""Memory of large frames: allocated as bytes arrive, reused once no view is left."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from wirebroker.net.frames.frame_buffer import BLOCK_BYTES, FrameBlocks, FrameBuffer


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def arrive(buffer: FrameBuffer, content: bytes) -> memoryview:
    while buffer.missing_bytes:
        start = buffer.received_bytes
        room = buffer.room()
        count = min(len(room), 99_991)
        room[:count] = content[start : start + count]
        buffer.received(count)
    return buffer.take()


@pytest.mark.parametrize("frame_bytes", [100_000, BLOCK_BYTES, BLOCK_BYTES + 1, 20 << 20])
def test_complete_frame_is_returned(frame_bytes):
    content = (bytes(range(250)) * (frame_bytes // 250 + 1))[:frame_bytes]
    buffer = FrameBuffer(frame_bytes, FrameBlocks())
    buffer.append(memoryview(content)[:3])
    frame = arrive(buffer, content)
    assert bytes(frame) == content
    frame[:1] = b"x"


@pytest.mark.parametrize("frame_bytes", [BLOCK_BYTES, 100 << 20])
def test_declared_frame_size_allocates_nothing(frame_bytes):
    # Other threads' allocations vary between runs; ours do not.
    assert min(growth_by_50(frame_bytes) for _ in range(5)) < 50 * BLOCK_BYTES / 4


def growth_by_50(frame_bytes):
    before = resident_bytes()
    blocks = FrameBlocks()
    buffers = [FrameBuffer(frame_bytes, blocks) for _ in range(50)]
    for buffer in buffers:
        buffer.append(memoryview(b"abc"))
    return resident_bytes() - before


def test_one_receive_takes_a_mebibyte_at_most():
    assert len(FrameBuffer(3 << 20, FrameBlocks()).room()) == 1 << 20


def test_block_is_reused_when_no_view_refers_to_it():
    blocks = FrameBlocks()
    first = FrameBuffer(70_000, blocks)
    memory = first._memory
    frame = arrive(first, bytes(70_000))
    part = frame[10:20]
    del first, frame
    assert FrameBuffer(70_000, blocks)._memory is not memory
    del part
    assert FrameBuffer(80_000, blocks)._memory is memory


def test_kept_frame_is_unchanged_while_others_arrive():
    blocks = FrameBlocks()
    frames = [arrive(FrameBuffer(70_000, blocks), bytes([n]) * 70_000) for n in range(10)]
    for n, frame in enumerate(frames):
        assert bytes(frame) == bytes([n]) * 70_000


def test_few_blocks_are_kept():
    blocks = FrameBlocks()
    for block in [blocks.take() for _ in range(100)]:
        blocks.give_back(block)
    assert len(blocks._blocks) == 4
