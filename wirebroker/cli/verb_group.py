"""Root of the verbs, which imports each verb's module on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

import click

from wirebroker.base.asyncio_without_ssl import import_without_ssl
from wirebroker.base.gc_tuning import uncollected
from wirebroker.cli.table import SCRIPTS, VERBS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Modules that may import TLS.
_ASKING: Final = ("wirebroker.cli.verbs.", "wirebroker.cli.kafka.")
_SUFFIX: Final = ".sh"
_SCRIPT_NAMES: Final = frozenset(each.name for each in SCRIPTS)


class VerbGroup(click.Group):
    """A click group over the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the table's order."""
        del ctx
        return [verb.name for verb in (*VERBS, *SCRIPTS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb; the name of a script may end in .sh.

        Raises:
            click.UsageError: It is an unsupported script of Kafka.
        """
        name = cmd_name.removesuffix(_SUFFIX)
        names = {cmd_name, name} if name in _SCRIPT_NAMES else {cmd_name}
        for verb in (*VERBS, *SCRIPTS):
            if verb.name in names:
                module, _, attribute = verb.place.partition(":")
                with uncollected():
                    if module.startswith(_ASKING):
                        import_without_ssl()
                    return cast("click.Command", getattr(import_module(module), attribute))
        instead = replacement_of(name)
        if instead is not None and not ctx.resilient_parsing:
            raise click.UsageError(f"{name} is not supported: {instead}")
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb.

        Raises:
            click.UsageError: There is no such verb; the error suggests a similar one.
        """
        name = args[0]
        if self.get_command(ctx, name) is None and not (
            name.startswith("-") or ctx.resilient_parsing
        ):
            from difflib import get_close_matches  # noqa: PLC0415 - only for errors

            close_matches = get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f". Did you mean {close_matches[0]!r}?" if close_matches else ""
            raise click.UsageError(f"No such command {name!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the verbs or flags with this prefix."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for completion

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(verb.name, help=verb.help)
            for verb in (*VERBS, *SCRIPTS)
            if verb.name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(verb.name, verb.help) for verb in VERBS])
        with formatter.section("Kafka's scripts"):
            formatter.write_dl([(script.name, script.help) for script in SCRIPTS])


# Unsupported scripts of Kafka, and what to use instead

_CLIENTS: Final = "run it from Apache Kafka; it works with this broker"
_CONNECT: Final = "Kafka Connect is a separate program: run it from Apache Kafka, with this broker"
_ZOOKEEPER: Final = "ZooKeeper is not used: start `wirebroker serve`"

# By name, without .sh.
UNSERVED: Final = {
    "connect-distributed": _CONNECT,
    "connect-mirror-maker": _CONNECT,
    "connect-plugin-path": _CONNECT,
    "connect-standalone": _CONNECT,
    "kafka-connect-distributed": _CONNECT,
    "kafka-connect-standalone": _CONNECT,
    "kafka-consumer-perf-test": "use `wirebroker bench`",
    "kafka-delegation-tokens": "use `wirebroker token`",
    "kafka-e2e-latency": "use `wirebroker bench`",
    "kafka-jmx": "JMX is not supported: read metrics over HTTP (docs/monitoring.md)",
    "kafka-metadata-shell": "use `wirebroker dump`",
    "kafka-mirror-maker": "use `wirebroker shadow`, or connect-mirror-maker of Apache Kafka",
    "kafka-preferred-replica-election": "use `wirebroker kafka-leader-election`",
    "kafka-replica-verification": "use `wirebroker verify`",
    "kafka-run-class": "Java classes are not supported: use a verb of `wirebroker --help`",
    "kafka-server-start": "use `wirebroker serve --config FILE`",
    "kafka-server-stop": "send SIGTERM to the process of `wirebroker serve`",
    "kafka-share-consumer-perf-test": "use `wirebroker share consume`",
    "kafka-streams-application-reset": _CLIENTS,
    "kafka-verifiable-consumer": "use `wirebroker consume`",
    "kafka-verifiable-producer": "use `wirebroker produce`",
    "kafka-verifiable-share-consumer": "use `wirebroker share consume`",
    "trogdor": "use `wirebroker bench`",
    "zookeeper-security-migration": _ZOOKEEPER,
    "zookeeper-server-start": _ZOOKEEPER,
    "zookeeper-server-stop": _ZOOKEEPER,
    "zookeeper-shell": _ZOOKEEPER,
}
# By prefix.
_FAMILIES: Final = {
    "kafka-streams-": _CLIENTS,
    "kafka-connect-": _CONNECT,
    "connect-": _CONNECT,
    "zookeeper-": _ZOOKEEPER,
}


def replacement_of(name: str) -> str | None:
    """Return what to use instead of a script of Kafka; None for other names."""
    if name in _SCRIPT_NAMES:
        return None
    if name in UNSERVED:
        return UNSERVED[name]
    return next(
        (replacement for start, replacement in _FAMILIES.items() if name.startswith(start)), None
    )
