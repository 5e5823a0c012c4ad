"""Shell completion of verbs and scripts: names in the cluster, configs."""

from __future__ import annotations

import click
import pytest
from click.shell_completion import ShellComplete

from wirebroker.cli import main as cli
from wirebroker.cli.kafka.plumbing.script import takes_one
from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME
from wirebroker.cli.table import SCRIPTS, VERBS


@pytest.fixture
def completed(verbs, served, monkeypatch):
    verbs.do("topic", "create", "alpha", "alps", "--if-not-exists")
    verbs.do("group", "seek", "altos", "--to", "end", "-t", "alpha", "--yes")
    monkeypatch.setenv("WIREBROKER_BOOTSTRAP", verbs.bootstrap)

    def words(*arguments):
        shell = ShellComplete(cli.cli, {}, "wirebroker", "_WIREBROKER_COMPLETE")
        return [
            completion.value
            for completion in shell.get_completions(list(arguments[:-1]), arguments[-1])
        ]

    return words


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["topic", "describe", "al"], ["alpha", "alps"]),
        (["topic", "describe", "alpha", "alp"], ["alpha", "alps"]),
        (["topic", "delete", "alp"], ["alpha", "alps"]),
        (["topic", "create", "al"], []),
        (["produce", "alph"], ["alpha"]),
        (["consume", "alph"], ["alpha"]),
        (["consume", "--group", "al"], ["altos"]),
        (["group", "describe", "al"], ["altos"]),
        (["group", "seek", "altos", "--topic", "al"], ["alpha", "alps"]),
        (["config", "set", "topic", "al"], ["alpha", "alps"]),
        (["config", "set", "broker", ""], ["1", "all"]),
        (["config", "set", "topic", "alpha", "retention."], ["retention.bytes=", "retention.ms="]),
        (["config", "unset", "topic", "alpha", "retention."], ["retention.bytes", "retention.ms"]),
        (["config", "unset", "broker", "1", "num.io"], ["num.io.threads"]),
        (["topic", "create", "x", "-c", "cleanup"], ["cleanup.policy="]),
        (["topic", "alter", "alpha", "--unset", "cleanup"], ["cleanup.policy"]),
        (["acl", "list", "--group", "al"], ["altos"]),
        (["elect", "preferred", "alp"], ["alpha", "alps"]),
        (["reassign", "plan", "alp"], ["alpha", "alps"]),
        (["kafka-topics", "--describe", "--topic", "alp"], ["alpha", "alps"]),
        (["kafka-consumer-groups", "--describe", "--group", "al"], ["altos"]),
        (["kafka-configs", "--describe", "--topic", "alp"], ["alpha", "alps"]),
    ],
)
def test_cluster_names_are_completed(completed, words, found):
    assert completed(*words) == found


def test_completion_uses_the_cluster_named_by_flags(completed, verbs, monkeypatch):
    monkeypatch.setenv("WIREBROKER_BOOTSTRAP", "127.0.0.1:1")
    assert completed("topic", "describe", "al") == []
    assert completed("topic", "describe", "-b", verbs.bootstrap, "al") == ["alpha", "alps"]
    flags = ("--bootstrap-server", verbs.bootstrap)
    assert completed("kafka-topics", *flags, "--describe", "--topic", "alph") == ["alpha"]
    transactions = ("kafka-transactions", *flags, "find-hanging", "--topic", "alph")
    assert completed(*transactions) == ["alpha"]


def test_a_cluster_that_does_not_respond_completes_nothing(completed, monkeypatch, capsys):
    monkeypatch.setenv("WIREBROKER_BOOTSTRAP", "127.0.0.1:1")
    capsys.readouterr()
    assert completed("topic", "describe", "al") == []
    monkeypatch.setenv("WIREBROKER_BOOTSTRAP", "not:an:address")
    assert completed("topic", "describe", "al") == []
    assert capsys.readouterr() == ("", "")


def _complete(*words):
    shell = ShellComplete(cli.cli, {}, "wirebroker", "_WIREBROKER_COMPLETE")
    return [completion.value for completion in shell.get_completions(list(words), "--")]


def _all_commands():
    context = click.Context(cli.cli)
    for verb in (*VERBS, *SCRIPTS):
        command = cli.cli.get_command(context, verb.name)
        yield (verb.name,), command
        if isinstance(command, click.Group):
            yield from (
                ((verb.name, name), subcommand) for name, subcommand in command.commands.items()
            )


def test_flags_of_unfinished_commands_are_completed_without_an_error(capsys):
    for path, command in _all_commands():
        flags = [
            param.opts[0]
            for param in command.params
            if isinstance(param, click.Option) and takes_one(param) and param.opts[0][:2] == "--"
        ]
        assert _complete(*path) or not flags, path
        for flag in flags[:1]:
            assert _complete(*path, flag, "1", flag, "2"), path
        _complete(*path, "--unknown-flag")
        _complete(*path, "--")
    assert capsys.readouterr() == ("", "")


def test_unknown_script_completes_nothing(capsys):
    assert _complete("kafka-streams-application-reset") == _complete("unknown")
    assert capsys.readouterr() == ("", "")


def _commands(command):
    commands = [command]
    if isinstance(command, click.Group):
        commands += command.commands.values()
    return commands


def test_all_topic_and_group_arguments_are_completed():
    context = click.Context(cli.cli)
    types = {"TOPIC": TOPIC_NAME, "GROUP": GROUP_NAME}
    # Names of new topics, and lists.
    expected = {"create names", "kafka-log-dirs topic_list", "kafka-get-offsets rules"}
    completions = {
        f"{command.name} {param.name}": param.type is types[kind]
        for verb in (*VERBS, *SCRIPTS)
        for command in _commands(cli.cli.get_command(context, verb.name))
        for param in command.params
        for kind in types
        if kind in str(param.metavar)
    }
    assert {name for name, is_completed in completions.items() if not is_completed} == expected
    assert sum(completions.values()) > 25
