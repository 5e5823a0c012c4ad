"""docs/cli.md, made from the verbs: `wirebroker commands --markdown > docs/cli.md`."""

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

Made from the verbs in the source, so don't edit it (`wirebroker commands --markdown`).

Exit status: 0 done; 1 the cluster can't be reached or refuses, or damage is found; 2 a mistake in
the arguments, or what keeps a broker from starting. After SIGINT or SIGTERM `serve` and `join` stop
cleanly, with 0; other verbs end with 130 after SIGINT, 143 after SIGTERM.

| verb | what it does |
| --- | --- |
"""

_CLUSTER: Final = """
## Verbs that ask a cluster

They work against any Kafka from 2.4 on, and have these flags. What deletes, or moves what was
committed, says first what it would do, and does it with `--yes`. `--config` of `topic create` and
`topic alter` sets a topic's configs; there the file of a client's is `--client-config` alone.
"""

_SCRIPTS: Final = """
## Kafka's own tools

By their names and flags, so that Apache Kafka's documentation can be followed: write
`wirebroker kafka-topics …` or `wirebroker kafka-topics.sh …` for `bin/kafka-topics.sh …`. Other
scripts of Kafka are refused with a message that says what to use instead. What they print to
standard output is what Apache Kafka's print (compared by transcripts). The exit status is 0, or 1
after any failure. Flags may be cut short, and nothing is asked before data is deleted, as there.

| script | what it does |
| --- | --- |
"""

# Names of the flags that running.py gives to all of them.
_SHARED: Final = frozenset({"bootstrap", "timeout_s", "output"}) | SECURITY_FLAG_NAMES


def verbs_as_markdown(root: click.Group) -> str:
    """Return the whole of docs/cli.md."""
    parts = [_INTRODUCTION]
    parts += [f"| [{verb.name}](#{verb.name}) | {verb.help} |\n" for verb in VERBS]
    parts += [_CLUSTER, _flags(click.Context(root), list(_shared_flags(root)))]
    scripts = {each.name for each in SCRIPTS}
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
        asks_cluster = any(each.name == "bootstrap" for each in command.params)
        shown = [each for each in command.params if not asks_cluster or each.name not in _SHARED]
        parts.append(_flags(context, shown))
        if asks_cluster:
            parts.append("\nIt asks [a cluster](#verbs-that-ask-a-cluster).\n")
    parts += [_SCRIPTS, *(f"| [{each.name}](#{each.name}) | {each.help} |\n" for each in SCRIPTS)]
    for context in _contexts(root):
        if _verb_of(context) in scripts:
            name = context.command_path.partition(" ")[2]
            parts.append(f"\n### {name}\n\n{_prose(context.command)}\n")
            parts.append(_flags(context, context.command.params))
    return "".join(parts)


def _verb_of(context: click.Context) -> str:
    """Return the verb that a command is, or is below."""
    return context.command_path.split(" ")[1]


def _flags(context: click.Context, parameters: Sequence[click.Parameter]) -> str:
    options = [each for each in parameters if isinstance(each, click.Option)]
    records = [found for each in options if (found := each.get_help_record(context))]
    if not records:
        return ""
    rows = [f"| `{_cell(flag)}` | {_cell(text)} |\n" for flag, text in records]
    return "".join(["\n| flag | |\n| --- | --- |\n", *rows])


def _shared_flags(root: click.Group) -> Iterator[click.Parameter]:
    for context in _contexts(root):
        if context.command.name == "cluster":
            yield from (each for each in context.command.params if each.name in _SHARED)


def verbs_as_text(root: click.Group) -> str:
    """Return a line with the usage of each verb."""
    return "".join(
        f"{_usage(each)}\n" for each in _contexts(root) if not isinstance(each.command, click.Group)
    )


def _contexts(root: click.Group) -> Iterator[click.Context]:
    """Walk all verbs, and those below them, in order."""
    top = click.Context(root, info_name="wirebroker")
    for name in root.list_commands(top):
        yield from _below(top, root, name)


def _below(parent: click.Context, group: click.Group, name: str) -> Iterator[click.Context]:
    command = group.get_command(parent, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent)
    yield context
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            yield from _below(context, command, each)


def _usage(context: click.Context) -> str:
    pieces = context.command.collect_usage_pieces(context)
    return " ".join([context.command_path, *pieces])


def _prose(command: click.Command) -> str:
    return cleandoc(command.help or "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
