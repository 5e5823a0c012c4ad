"""`serve --console` starts the console with the broker, and ends it with the broker."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.support.tools.waiting import eventually
from wirebroker.broker.console_process import ConsoleOptions, check_console
from wirebroker.config import Config, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_READY = re.compile(r"console ready on (http://127\.0\.0\.1:\d+/) \(clusters: (local|mine)\)\n")


@contextlib.contextmanager
def broker_with_console(folder: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run both on free ports, and return the broker's process and the console's address."""
    command = [sys.executable, "-m", "wirebroker", "serve", "--port", "0", "--console", "0"]
    process = subprocess.Popen(
        [*command, "--data-dir", str(folder / "data"), *flags],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_CONFIG_HOME": str(folder)},
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if ready := _READY.fullmatch(line):
                yield process, ready[1]
                break
        else:
            pytest.fail("the console did not start")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def is_served(address: str) -> bool:
    try:
        with urllib.request.urlopen(address) as response:
            return "wirebroker console" in response.read().decode()
    except OSError:
        return False


def test_the_console_stops_with_its_broker(tmp_path):
    with broker_with_console(tmp_path) as (process, address):
        assert is_served(f"{address}c/local/brokers")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert not is_served(address)


def test_the_console_does_not_survive_a_killed_broker(tmp_path):
    with broker_with_console(tmp_path) as (process, address):
        assert is_served(address)
        process.kill()
        eventually(lambda: not is_served(address))


def test_a_profile_has_the_consoles_login(tmp_path):
    profiles = tmp_path / "wirebroker" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "mine.properties").write_text("security.protocol=PLAINTEXT\n")
    with broker_with_console(tmp_path, "--console-profile", "mine") as (process, address):
        assert is_served(f"{address}c/mine/brokers")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.parametrize("settings", [(), ("--set", "wirebroker.http.token=hush")])
def test_the_console_of_a_broker_in_test_mode_shows_its_clock(tmp_path, settings):
    with broker_with_console(tmp_path, "--test-mode", *settings) as (_, address):
        with urllib.request.urlopen(f"{address}c/local/testing") as response:
            page = response.read().decode()
        assert "Clock of the broker" in page
        assert "No fault is set." in page
        assert "hush" not in page


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--console-profile", "none"), "--console-profile needs --console PORT"),
        (("--console-config", "none"), "--console-config needs --console PORT"),
        (("--console", "0", "--console-profile", "none"), "profile none does not exist"),
    ],
)
def test_other_flags_of_the_console_are_refused(tmp_path, flags, reason):
    done = subprocess.run(
        [sys.executable, "-m", "wirebroker", "serve", "--data-dir", str(tmp_path / "data"), *flags],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)},
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert reason in done.stderr


def test_a_broker_that_requires_a_login_needs_a_profile_or_file(tmp_path):
    config = Config(
        {
            "log.dirs": str(tmp_path),
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
        }
    )
    with pytest.raises(
        ConfigError,
        match=r"needs --console-profile NAME or --console-config FILE: listener SASL_PLAINTEXT",
    ):
        check_console(config, ConsoleOptions(0, None))
    check_console(config, ConsoleOptions(0, tmp_path / "clusters"))
    check_console(config, ConsoleOptions(0, None, "admin"))
