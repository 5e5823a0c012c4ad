"""Common behavior of verbs that call a cluster: addresses, failures and exits."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading

import click
import pytest

from tests.support.tools.ports import free_port
from wirebroker.cli import main as cli
from wirebroker.cli.plumbing.output import Output
from wirebroker.cli.table import VERBS
from wirebroker.client.addresses import addresses_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("box", [("box", 9092)]),
        ("box:1, other:2,", [("box", 1), ("other", 2)]),
        ("[::1]:9", [("::1", 9)]),
        ("::1", [("::1", 9092)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_addresses_are_hosts_and_ports(text, expected):
    assert addresses_of(text) == expected


@pytest.mark.parametrize("text", ["", ",", ":1", "a:x", "a:0", "a:65536"])
def test_invalid_address_is_a_usage_error(text, capsys):
    with pytest.raises(ValueError, match="write HOST:PORT"):
        addresses_of(text)
    if text:
        assert cli.run(["cluster", "-b", text]) == 2
        assert "write HOST:PORT" in capsys.readouterr().err


def test_refused_connection_message_says_what_to_do(capsys):
    port = free_port()
    assert cli.run(["cluster", "-b", f"127.0.0.1:{port}"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"wirebroker: no broker responds at 127.0.0.1:{port}: connection refused. Start one with"
        " `wirebroker serve`, or set its address with -b HOST:PORT or WIREBROKER_BOOTSTRAP\n"
    )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server responded, not a Kafka broker"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "A TLS listener needs --tls or --tls-ca FILE"),
        (b"SSH-2.0-x\r\n", "invalid response length: 1397966893 bytes"),
    ],
)
def test_message_names_what_responds_instead_of_a_broker(capsys, answer, words):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        def respond():
            peer, _ = other.accept()
            with peer:
                peer.recv(1)
                peer.sendall(answer)
                peer.recv(1 << 16)

        thread = threading.Thread(target=respond)
        thread.start()
        assert cli.run(["cluster", "-b", f"127.0.0.1:{port}"]) == 1
        thread.join()
    stderr = capsys.readouterr().err
    assert f"127.0.0.1:{port}: " in stderr
    assert words in stderr


def test_message_names_the_address_option_of_the_verb_or_script(capsys, tmp_path):
    nobody = f"127.0.0.1:{free_port()}"
    copied = ("--topics", "t", "--data-dir", str(tmp_path / "copy"), "--once")
    assert cli.run(["shadow", nobody, *copied]) == 1
    assert capsys.readouterr().err.endswith("or set its address with BOOTSTRAP, as HOST:PORT\n")
    assert cli.run(["kafka-topics", "--bootstrap-server", nobody, "--list"]) == 1
    assert "or set its address with --bootstrap-server HOST:PORT" in capsys.readouterr().out


def test_first_responding_address_is_used(verbs):
    verbs.bootstrap = f"127.0.0.1:{free_port()},{verbs.bootstrap}"
    assert verbs.json("cluster")["controller_id"] == 1


def test_environment_variable_names_the_cluster(verbs, monkeypatch, capsys):
    monkeypatch.setenv("WIREBROKER_BOOTSTRAP", verbs.bootstrap)
    assert cli.run(["cluster"]) == 0
    assert capsys.readouterr().out.startswith("cluster ")


def test_cluster_verb_shows_the_brokers(verbs):
    verbs.do("topic", "create", "some", "-p", "2")
    cluster = verbs.json("cluster")
    host, _, port = verbs.bootstrap.partition(":")
    assert cluster["brokers"] == [{"broker": 1, "host": host, "port": int(port), "rack": None}]
    assert (cluster["topic_count"], cluster["partition_count"]) == (1, 2)
    assert (cluster["leaderless_count"], cluster["under_replicated_count"]) == (0, 0)
    assert verbs.do("cluster").lines[-1].split() == ["1", host, port, "-"]


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"]
)
def test_a_signal_ends_a_verb_quietly(number, status):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "wirebroker", "cluster", "-b", address]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        peer, _ = silent.accept()
        peer.recv(1)  # it has sent its request, and waits
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        peer.close()
    assert (process.returncode, out, err.strip()) == (status, b"", b"")


def test_closed_output_ends_a_verb_quietly(verbs):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "wirebroker", "cluster", "-b", verbs.bootstrap]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_tables_are_aligned_with_numbers_on_the_right():
    rows = [
        {"name": "a", "count": 5, "is_new": True, "ids": [1, 2], "rack": None},
        {"name": "long", "count": 500, "is_new": False, "ids": [], "rack": "r"},
    ]
    assert Output(is_json=False).table(rows, ("name", "count", "is_new", "ids", "rack")) == [
        "NAME  COUNT  IS-NEW  IDS  RACK",
        "a         5  yes     1,2  -",
        "long    500  no      -    r",
    ]


def test_titles_are_bold_on_a_terminal_unless_colors_are_disabled(monkeypatch):
    for variable, title in (("", "\x1b[1mNAME\x1b[0m"), ("1", "NAME")):
        reading, writing = os.openpty()
        with os.fdopen(reading, "rb", buffering=0), os.fdopen(writing, "w") as terminal:
            monkeypatch.setattr("sys.stdout", terminal)
            monkeypatch.setenv("NO_COLOR", variable)
            assert Output(is_json=False).table([{"name": "a"}], ("name",)) == [title, "a"]
            monkeypatch.undo()
    assert Output(is_json=False).table([{"name": "a"}], ("name",)) == ["NAME", "a"]


def test_verb_table_has_the_help_text_of_each_verb():
    context = click.Context(cli.cli)
    for verb in VERBS:
        command = cli.cli.get_command(context, verb.name)
        assert command is not None
        assert command.get_short_help_str(limit=100) == verb.help, verb.name


def test_help_imports_no_verb():
    code = (
        "import sys, wirebroker.cli.main as c; c.run(['--help']);"
        "sys.exit(any(m in sys.modules for m in ('asyncio', 'wirebroker.config', 'json')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0
