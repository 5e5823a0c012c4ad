"""Generator of docs/cli.md: `wirebroker commands --markdown > docs/cli.md`."""

from __future__ import annotations

from inspect import cleandoc
from typing import TYPE_CHECKING, Final

import click

from wirebroker.cli.plumbing.security_flags import SECURITY_FLAG_NAMES
from wirebroker.cli.table import SCRIPTS, VERBS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_INTRODUCTION: Final = """\
# The command line

    wirebroker VERB [OPTIONS]

wirebroker also contains [Kafka's own tools](#kafkas-own-tools), such as `wirebroker kafka-topics`.

The exit status is 0 on success. It is 1 if the cluster is unreachable or refuses the request, if a
check finds a problem, or if a running broker fails. It is 2 if the arguments are invalid, a file is
unreadable, or the broker cannot start. Kafka's own tools return 0 or 1. After SIGINT or SIGTERM,
`serve` and `join` shut down cleanly and return 0; other verbs return 130 after SIGINT and 143 after
SIGTERM.

| verb | what it does |
| --- | --- |
"""

_CLUSTER: Final = """
## Verbs that use a cluster

They work with Kafka 2.4 and later, and have these flags. Verbs that delete data or move committed
offsets only show what they would do, unless `--yes` is given. In `topic create` and `topic alter`,
`--config` sets a topic config, and only `--client-config` names a file of client settings.
"""

_SCRIPTS: Final = """
## Kafka's own tools

They have Kafka's names and flags, so that Apache Kafka's documentation applies: write
`wirebroker kafka-topics …` or `wirebroker kafka-topics.sh …` for `bin/kafka-topics.sh …`. Other
scripts of Kafka are refused with a message that says what to use instead. Standard output is the
same as Apache Kafka's (compared by transcripts). The exit status is 0, or 1 after a failure; as
with Kafka's tools, `kafka-consumer-groups`, `kafka-share-groups` and `kafka-console-share-consumer`
return 0 after an error of the broker, which they print. Flags can be abbreviated, and data is
deleted without confirmation.

| script | what it does |
| --- | --- |
"""

_END: Final = """
This page is generated from the verbs in the source by `wirebroker commands --markdown`; do not
edit it.
"""

# Parameters of running.py's shared flags.
_SHARED: Final = frozenset({"bootstrap", "timeout_s", "output"}) | SECURITY_FLAG_NAMES


def verbs_as_markdown(root: click.Group) -> str:
    """Return docs/cli.md."""
    parts = [_INTRODUCTION]
    parts += [f"| [{verb.name}](#{verb.name}) | {verb.help} |\n" for verb in VERBS]
    parts += [_CLUSTER, _flags(click.Context(root), list(_shared_flags(root)))]
    scripts = {script.name for script in SCRIPTS}
    for context in _contexts(root):
        command = context.command
        if _verb_of(context) in scripts:
            continue
        level = "##" if context.parent is not None and context.parent.parent is None else "###"
        name = context.command_path.partition(" ")[2]
        parts.append(f"\n{level} {name}\n\n{_prose(command)}\n")
        if isinstance(command, click.Group):
            continue
        parts.append(f"\n    {_usage(context)}\n")
        asks_cluster = any(parameter.name == "bootstrap" for parameter in command.params)
        own_parameters = [
            parameter
            for parameter in command.params
            if not asks_cluster or parameter.name not in _SHARED
        ]
        parts.append(_flags(context, own_parameters))
        if asks_cluster:
            parts.append(
                "\nIt has the flags of [verbs that use a cluster](#verbs-that-use-a-cluster).\n"
            )
    parts += [
        _SCRIPTS,
        *(f"| [{script.name}](#{script.name}) | {script.help} |\n" for script in SCRIPTS),
    ]
    for context in _contexts(root):
        if _verb_of(context) in scripts:
            name = context.command_path.partition(" ")[2]
            parts.append(f"\n### {name}\n\n{_prose(context.command)}\n")
            parts.append(_flags(context, context.command.params))
    parts.append(_END)
    return "".join(parts)


def _verb_of(context: click.Context) -> str:
    return context.command_path.split(" ")[1]


def _flags(context: click.Context, parameters: Sequence[click.Parameter]) -> str:
    options = [parameter for parameter in parameters if isinstance(parameter, click.Option)]
    records = [
        help_record for option in options if (help_record := option.get_help_record(context))
    ]
    if not records:
        return ""
    rows = [f"| `{_cell(flag)}` | {_cell(text)} |\n" for flag, text in records]
    return "".join(["\n| flag | |\n| --- | --- |\n", *rows])


def _shared_flags(root: click.Group) -> Iterator[click.Parameter]:
    for context in _contexts(root):
        if context.command.name == "cluster":
            yield from (
                parameter for parameter in context.command.params if parameter.name in _SHARED
            )


def verbs_as_text(root: click.Group) -> str:
    """Return the verbs' usage, one a line."""
    return "".join(
        f"{_usage(context)}\n"
        for context in _contexts(root)
        if not isinstance(context.command, click.Group)
    )


def _contexts(root: click.Group) -> Iterator[click.Context]:
    top = click.Context(root, info_name="wirebroker")
    for name in root.list_commands(top):
        yield from _below(top, root, name)


def _below(parent: click.Context, group: click.Group, name: str) -> Iterator[click.Context]:
    command = group.get_command(parent, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent)
    yield context
    if isinstance(command, click.Group):
        for child_name in command.list_commands(context):
            yield from _below(context, command, child_name)


def _usage(context: click.Context) -> str:
    pieces = context.command.collect_usage_pieces(context)
    return " ".join([context.command_path, *pieces])


def _prose(command: click.Command) -> str:
    return cleandoc(command.help or "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
