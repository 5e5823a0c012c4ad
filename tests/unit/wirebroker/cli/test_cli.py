"""The command line: output, and one line with status 2 for mistakes."""

from __future__ import annotations

import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from tests.support.tools.ports import free_port
from wirebroker.base.version import version_text
from wirebroker.cli import main as cli
from wirebroker.config import StartError


@pytest.fixture
def served(monkeypatch):
    calls = []

    def run(config, *, port_file, companions=()):
        calls.append((config, port_file))
        return 0

    module = types.ModuleType("wirebroker.broker.serve_process")
    monkeypatch.setattr(module, "run", run, raising=False)
    monkeypatch.setitem(sys.modules, "wirebroker.broker.serve_process", module)
    for name in ("CLUSTER_ID", "KAFKA_NUM_PARTITIONS"):
        monkeypatch.delenv(name, raising=False)
    return calls


def test_no_command_shows_help(capsys):
    assert cli.run([]) == 0
    assert "serve" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["serve", "configs", "dump", "verify", "repair"])
def test_help_names_every_command(capsys, command):
    assert cli.run(["--help"]) == 0
    assert f"\n  {command} " in capsys.readouterr().out


def test_configs_lists_names_with_their_defaults(capsys):
    assert cli.run(["configs"]) == 0
    assert "\nnum.partitions=1\n" in capsys.readouterr().out


def test_version_is_one_line(capsys):
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"wirebroker {version_text()}\n"


def test_the_module_can_be_run():
    command = [sys.executable, "-m", "wirebroker", "--version"]
    root = Path(__file__).parents[4]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.startswith("wirebroker ")


def test_serve_passes_the_settings_to_the_server(served, tmp_path):
    arguments = ["serve", "--data-dir", str(tmp_path), "--port", "0", "--set", "num.partitions=5"]
    arguments += ["--log-format", "json", "--log-level", "debug", "--port-file", "p"]
    assert cli.run(arguments) == 0
    ((config, port_file),) = served
    assert config.int("num.partitions") == 5
    assert config.log_directories == (str(tmp_path),)
    assert config.str("wirebroker.log.format") == "json"
    assert config.str("wirebroker.log.level") == "debug"
    assert port_file == Path("p")


def test_a_comma_is_part_of_the_data_directorys_name(served):
    assert cli.run(["serve", "--data-dir", "a,b"]) == 0
    assert served[0][0].log_directories == ("a,b",)


def test_unprotected_flag_allows_ignored_protection_settings(served, capsys):
    arguments = ["serve", "--set", "principal.builder.class=x"]
    assert cli.run(arguments) == 2
    assert not served
    assert cli.run([*arguments, "--unprotected"]) == 0
    assert served[0][0].bool("wirebroker.unprotected")


def test_the_environment_sets_what_no_flag_sets(served, monkeypatch):
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "6")
    assert cli.run(["serve"]) == 0
    assert served[0][0].int("num.partitions") == 6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "--port", "70000"], "--port 70000 cannot be used: the port must be 0 to 65535"),
        (["serve", "--port", "x"], "--port x cannot be used: the port must be 0 to 65535"),
        (["serve", "--data-dir", ""], "log.dirs is empty: name at least one directory"),
        (["serve", "--set", "a"], "write --set key=value"),
        (["serve", "--set", "num.partitions=0"], "it must be at least 1"),
        (["serve", "--set", "num.partition=3"], "did you mean num.partitions?"),
        (
            ["serve", "--set", "principal.builder.class=x"],
            "principal.builder.class requires protection",
        ),
        (["serve", "--config", "."], ". is a directory: give the properties file"),
        (["serve", "--config", "missing.properties"], "no such file"),
        (["serve", "--log-format", "xml"], "json"),
        (["serve", "extra"], "extra"),
        (["nonsense"], "nonsense"),
    ],
)
def test_usage_error_is_one_line_on_stderr_and_status_2(served, capsys, arguments, words):
    assert cli.run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("wirebroker: ")
    assert words in captured.err
    assert not served


def test_server_start_failure_is_one_line(served, monkeypatch, capsys):
    def run(config, *, port_file, companions=()):
        raise StartError("port 9092 is in use", "stop the other process or give --port")

    monkeypatch.setattr(sys.modules["wirebroker.broker.serve_process"], "run", run)
    assert cli.run(["serve"]) == 2
    expected = "wirebroker: port 9092 is in use: stop the other process or give --port\n"
    assert capsys.readouterr().err == expected


def test_exit_status_is_that_of_the_server(served, monkeypatch):
    monkeypatch.setattr(sys.modules["wirebroker.broker.serve_process"], "run", lambda *_, **__: 1)
    assert cli.run(["serve"]) == 1


def test_importing_the_command_line_loads_no_server():
    code = (
        "import sys, wirebroker.cli.main as c; c.run(['--version']);"
        "names = ('asyncio', 'kafka', 'wirebroker.broker.serve_process');"
        "sys.exit(any(name in sys.modules for name in names))"
    )
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, cwd=root)
    assert done.returncode == 0


def test_a_group_without_a_verb_shows_its_verbs(capsys):
    cli.run(["topic"])
    captured = capsys.readouterr()
    output = captured.out + captured.err
    assert output.startswith("Usage: wirebroker topic ")
    assert "see wirebroker" not in output


def test_missing_choice_message_is_one_line(capsys):
    assert cli.run(["completion"]) == 2
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1
    assert "bash" in stderr
    assert "\t" not in stderr


def test_join_refuses_a_directory_with_worker_data(tmp_path, capsys):
    folder = tmp_path / "worker1"
    folder.mkdir()
    (folder / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    assert cli.run(["join", f"127.0.0.1:{free_port()}", "--data-dir", str(tmp_path)]) == 2
    assert "holds the data of 1 workers" in capsys.readouterr().err
    assert not (tmp_path / "meta.properties").exists()


def test_join_times_out_after_the_registration_timeout(tmp_path, capsys, caplog, monkeypatch):
    monkeypatch.setattr("wirebroker.broker.join_process.configure_as", lambda config: None)
    caplog.set_level("INFO", "wirebroker")
    address = f"127.0.0.1:{free_port()}"
    directory_flags = ("--data-dir", str(tmp_path / "data"), "--port", "0")
    timeout = ("--set", "initial.broker.registration.timeout.ms=1000")
    assert cli.run(["join", address, *directory_flags, *timeout]) == 2
    assert address in capsys.readouterr().err
    first, second, *_ = [record.getMessage() for record in caplog.records]
    assert first == f"looking up a free node id at controllers {address}"
    assert re.match(r"no controller has responded after \d+ of 1 s: ", second)
    assert cli.run(["join", address, *directory_flags, "--set", "num.partitons=1"]) == 2
    assert "did you mean num.partitions?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["topics", "list"], "topic"),
        (["produec", "t"], "produce"),
        (["serv"], "serve"),
        (["kafka-topic", "--list"], "kafka-topics"),
        (["kafka-topcs.sh", "--list"], "kafka-topics"),
        (["topic", "lst"], "list"),
        (["kafka-features", "descibe"], "describe"),
    ],
)
def test_a_mistyped_verb_gets_a_suggestion(words, meant, capsys):
    assert cli.run(words) != 0
    assert f"Did you mean '{meant}'?" in capsys.readouterr().err


def test_verb_unlike_any_other_gets_no_suggestion(capsys):
    assert cli.run(["xyzzy"]) == 2
    assert (
        capsys.readouterr().err == "wirebroker: No such command 'xyzzy' (see wirebroker --help)\n"
    )
