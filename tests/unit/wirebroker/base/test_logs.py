"""Log lines: one per event, whatever the event's text holds."""

import io
import json
import logging
import os
import subprocess
import sys

import pytest

from wirebroker.authorization import audit
from wirebroker.base.logs import configure_logging, one_line
from wirebroker.broker.log_settings import configure_as
from wirebroker.config.sources.sources import load_config


@pytest.fixture(autouse=True)
def _logging_as_before():
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("wirebroker", "kafka.authorizer.logger"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def lines_of(log_format, write, level="info", process=""):
    stream = io.StringIO()
    configure_logging(level=level, log_format=log_format, stream=stream, process=process)
    write(logging.getLogger("wirebroker.net"))
    return stream.getvalue().splitlines()


def test_an_event_is_one_line_with_time_level_and_source():
    (line,) = lines_of("text", lambda logger: logger.warning("closing %s", "1.2.3.4:5"))
    date, time, level, rest = line.split(" ", 3)
    assert len(date) == len("2026-11-21")
    assert len(time) == len("10:12:33.123")
    assert (level, rest) == ("WARNING", "wirebroker.net: closing 1.2.3.4:5")


def test_process_name_is_part_of_each_line():
    (line,) = lines_of("text", lambda logger: logger.info("stopped"), process="worker 2")
    assert line.endswith(" INFO [worker 2] wirebroker.net: stopped")
    (line,) = lines_of("json", lambda logger: logger.info("stopped"), process="worker 2")
    assert json.loads(line)["process"] == "worker 2"


def test_text_of_a_peer_cannot_start_a_line_or_color_a_terminal():
    evil = "a\nERROR b\r\x1b[31m\u2028c\x00"
    (line,) = lines_of("text", lambda logger: logger.info("client %s", evil))
    assert line.endswith(r"client a\nERROR b\r\x1b[31m\u2028c\x00")


def test_a_long_text_is_cut():
    assert len(one_line("x" * 100_000)) < 2100


@pytest.mark.parametrize(("level", "told"), [("debug", 2), ("info", 1), ("warning", 0)])
def test_denials_are_logged_at_info_and_allowed_requests_at_debug(level, told):
    def decide(_):
        audit.LOGGER.info("Principal = User:bob is Denied")
        audit.LOGGER.debug("Principal = User:bob is Allowed")

    assert len(lines_of("text", decide, level=level)) == told


def fail(logger):
    try:
        # An earlier test of compiled code may have left an error as this one's context.
        raise ValueError("first\nsecond") from None
    except ValueError:
        logger.exception("it failed")


def test_a_traceback_follows_its_line_indented():
    lines = lines_of("text", fail)
    assert lines[0].endswith("it failed")
    assert lines[1] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") for line in lines[1:])


def test_json_is_one_object_a_line():
    (line,) = lines_of("json", fail)
    event = json.loads(line)
    assert event["level"] == "error"
    assert event["logger"] == "wirebroker.net"
    assert event["message"] == "it failed"
    assert event["time"].endswith("Z")
    assert "ValueError: first\nsecond" in event["traceback"]


def test_levels_below_the_chosen_one_are_silent():
    assert lines_of("text", lambda logger: logger.info("no"), level="warning") == []
    assert len(lines_of("text", lambda logger: logger.debug("yes"), level="debug")) == 1


def test_libraries_log_from_warning_on():
    def write(_logger):
        logging.getLogger("asyncio").info("no")
        logging.getLogger("asyncio").warning("yes")

    assert len(lines_of("text", write, level="debug")) == 1


PROVIDED = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "listeners": "SSL://127.0.0.1:0",
    "security.inter.broker.protocol": "SSL",
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "${env:KEYS}",
    "broker.rack": "${env:RACK}",
}


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_log_lines_hide_values_of_config_providers(capsys, log_format):
    environment = {"KEYS": "/missing/keys.pem", "RACK": "r1"}
    flags = {**PROVIDED, "wirebroker.log.format": log_format}
    configure_as(load_config(file=None, environment=environment, flags=flags))
    try:
        raise OSError("/missing/keys.pem is away")
    except OSError:
        logging.getLogger("wirebroker").exception("cannot read %s in r1", "/missing/keys.pem")
    written = capsys.readouterr().err
    assert "cannot read (hidden) in r1" in written
    assert "(hidden) is away" in written


def test_start_errors_hide_values_of_config_providers(tmp_path):
    flags = [f"--set={name}={value}" for name, value in PROVIDED.items()]
    command = [sys.executable, "-m", "wirebroker", "serve", f"--data-dir={tmp_path}/data", *flags]
    environment = {**os.environ, "KEYS": f"{tmp_path}/missing.pem", "RACK": "r1"}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "ssl.keystore.location: (hidden) cannot be read" in done.stderr
    assert "missing.pem" not in done.stderr + done.stdout
