"""`kafka-consumer-groups --validate-regex`: whether RE2 accepts an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from wirebroker.codecs.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable

# RE2's descriptions that differ from those of RE2/J, which Kafka uses.
_DESCRIPTIONS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    # RE2/J forgets to handle it.
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


def validation_of(text: str) -> str:
    """Return the line that says whether an expression is valid."""
    from wirebroker.coordinator.patterns import compile_pattern  # noqa: PLC0415 - rarely used

    try:
        compile_pattern(text)
    except KafkaError as error:
        reason = (error.message or "").partition(": ")[0]
        description = _DESCRIPTIONS.get(reason, reason)
        return f"The regular expression `{text}` is invalid: {description}."
    return f"The regular expression `{text}` is valid."


def _validate(context: click.Context, _option: click.Parameter, text: str | None) -> None:
    if text is not None and not context.resilient_parsing:
        click.echo(validation_of(text))
        context.exit()


def validate_regex_flag(command: Callable[..., int]) -> Callable[..., int]:
    """Add the flag, which needs no cluster."""
    return click.option(
        "--validate-regex",
        is_eager=True,
        expose_value=False,
        callback=_validate,
        metavar="REGEX",
        help="Check the syntax of a regular expression, by RE2.",
    )(command)
