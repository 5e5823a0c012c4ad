"""Keeping cores awake: the value written to the kernel's device, and the messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.measurement.awake_cores import KEPT_AWAKE, MAY_SLEEP, awake_cores


@pytest.fixture
def device(tmp_path: Path) -> Path:
    path = tmp_path / "cpu_dma_latency"
    path.touch()
    return path


def test_a_bound_of_zero_as_a_32_bit_number_keeps_the_cores_awake(device: Path):
    with awake_cores(device=device) as cores:
        assert cores == KEPT_AWAKE
        assert device.read_bytes() == bytes(4)


def test_the_device_is_held_open_within_the_block_and_no_longer(device: Path):
    with awake_cores(device=device):
        assert device in open_files()
    assert device not in open_files()


def test_device_is_closed_when_the_measurement_fails(device: Path):
    with pytest.raises(RuntimeError, match="broker"), awake_cores(device=device):
        raise RuntimeError("the broker has died")
    assert device not in open_files()


def test_without_a_device_the_cores_may_sleep(tmp_path: Path):
    with awake_cores(device=tmp_path / "none") as cores:
        assert cores == MAY_SLEEP


def test_a_device_that_cannot_be_opened_for_writing_lets_the_cores_sleep(tmp_path: Path):
    with awake_cores(device=tmp_path) as cores:  # a folder: root may write to any file
        assert cores == MAY_SLEEP


def test_device_is_not_opened_when_sleep_is_requested(device: Path):
    with awake_cores(enabled=False, device=device) as cores:
        assert cores == MAY_SLEEP
        assert device.read_bytes() == b""


def open_files() -> list[Path]:
    return [descriptor.resolve() for descriptor in Path("/proc/self/fd").iterdir()]
