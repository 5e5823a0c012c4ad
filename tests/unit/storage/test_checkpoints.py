"""Checkpoint files in Apache Kafka's format."""

import pytest

from wirebroker.storage.checkpoints import (
    CheckpointError,
    read_offsets,
    read_rows,
    write_offsets,
    write_rows,
)
from wirebroker.storage.files import Files


def test_what_was_written_is_read_back(tmp_path):
    path = f"{tmp_path}/replication-offset-checkpoint"
    offsets = {("a-b.c_d", 0): 0, ("t", 2147483647): 2**62, ("t", 1): 7}
    write_offsets(Files(), path, offsets)
    assert read_offsets(Files(), path) == offsets
    assert (tmp_path / "replication-offset-checkpoint").read_text() == (
        "0\n3\na-b.c_d 0 0\nt 2147483647 4611686018427387904\nt 1 7\n"
    )


def test_no_offsets_are_a_file_with_a_count_of_zero(tmp_path):
    path = tmp_path / "recovery-point-offset-checkpoint"
    write_offsets(Files(), str(path), {})
    assert path.read_bytes() == b"0\n0\n"
    assert read_offsets(Files(), str(path)) == {}


def test_a_missing_and_an_empty_file_are_empty(tmp_path):
    path = tmp_path / "cleaner-offset-checkpoint"
    assert read_offsets(Files(), str(path)) == {}
    path.write_bytes(b"")
    assert read_offsets(Files(), str(path)) == {}


def test_rows_of_two_columns_serve_leader_epochs(tmp_path):
    path = f"{tmp_path}/leader-epoch-checkpoint"
    write_rows(Files(), path, ["0 0", "3 1041"], sync=False)
    assert read_rows(Files(), path, columns=2) == [["0", "0"], ["3", "1041"]]


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",
        b"0\n",
        b"0\nx\n",
        b"0\n2\nt 0 1\n",
        b"0\n1\nt 0 1\nt 1 1\n",
        b"0\n1\nt 0\n",
        b"0\n1\nt 0 1 2\n",
        b"0\n1\nt 0 one\n",
        b"0\n1\nt 0 1",
        b"0\n1\nt  0 1\n",
        b"0\n1\nt 0 1 \n",
        b"0\n1\nt\t0 1\n",
        b"0\n1\nt 0 1\r",
        b"0\n1\x0ct 0 1\n",
        b"0\n1\n\nt 0 1\n",
        b"0\n1\nt 0 -1\n",
        b"0\n1\nt 0 +1\n",
        b"0\n1\nt 0 1_0\n",
        b"0\n1\nt 0 %d\n" % (1 << 63),
        b"0\n1\nt %d 0\n" % (1 << 63),
        b"0\n1\nt 0 %s\n" % (b"0" * 5000),
        "0\n1\nt 0 \u0661\n".encode(),
        b" 0\n1\nt 0 1\n",
        b"0\n 1\nt 0 1\n",
        b"0\n\n",
        b"\xff\xfe",
        bytes(40),
    ],
)
def test_damage_is_an_error(tmp_path, content):
    path = tmp_path / "log-start-offset-checkpoint"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="log-start-offset-checkpoint"):
        read_offsets(Files(), str(path))
