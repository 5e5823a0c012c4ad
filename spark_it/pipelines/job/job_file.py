"""A job's file: TOML, checked against the settings that the job's class declares.

    name = "orders"
    topic = "orders"
    [kafka]                        tables as well: what they hold is checked by who reads them
    "bootstrap.servers" = "localhost:9092"

A setting is a field of a frozen dataclass, made by `setting`; its kind says what TOML may hold for
it. Paths are relative to the folder of the file. What the file has and the job has not is an error,
with the name that is most like it.
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.pipelines.job.errors import JobFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

Job = TypeVar("Job")

# kind -> (what TOML may hold for it, how it is told)
_KINDS: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "text": ((str,), "a text"),
    "path": ((str,), "a path"),
    "paths": ((str,), "paths, comma between"),
    "texts": ((list,), "a list of texts"),
    "count": ((int,), "a whole number of at least 1"),
    "seconds": ((int, float), "a number of seconds above 0"),
    "flag": ((bool,), "true or false"),
    "table": ((dict,), "a table"),
}


def setting(
    kind: str, what: str, default: Any = dataclasses.MISSING, choices: tuple[str, ...] = ()
) -> Any:
    """Return a field of a job.

    Args:
        kind: A key of the table above.
        what: What it says, for `--help`.
        default: What holds without it; none: the file must have it.
        choices: The texts it may be; none: any.
    """
    assert kind in _KINDS, kind
    metadata = {"kind": kind, "what": what, "choices": choices}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=lambda: dict(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


# For each job that reads topics and keeps its positions: the arguments of `setting`.
RECREATED_TOPIC: Final = (
    "text",
    "if a topic was deleted and created again: stop, or read the new one from its beginning",
    "stop",
    ("stop", "restart"),
)


def load_job(path: Path, kind: type[Job]) -> Job:
    """Read a job's file.

    Raises:
        JobFileError: It isn't there, is no TOML, or isn't what the job wants.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise JobFileError(f"{path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise JobFileError(f"{path} is no TOML: {error}") from error
    fields = {each.name: each for each in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in given:
        if name not in fields:
            raise JobFileError(f"{path}: there is no setting {name}{like(name, fields)}")
    for name, one in fields.items():
        is_optional = one.default is not dataclasses.MISSING
        if not is_optional and one.default_factory is dataclasses.MISSING and name not in given:
            raise JobFileError(f"{path}: {name} is missing: {one.metadata['what']}")
    return kind(**{name: _checked(path, fields[name], value) for name, value in given.items()})


def described(kind: type) -> Iterator[str]:
    """Return a line for each setting of a job, for `--help`."""
    for each in dataclasses.fields(kind):
        choices = " or ".join(each.metadata["choices"]) or _KINDS[each.metadata["kind"]][1]
        default = "" if each.default in (dataclasses.MISSING, None, "") else f" [{each.default}]"
        yield f"  {each.name:<20} {each.metadata['what']}; {choices}{default}"


def like(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` if a known name is like this one, else nothing."""
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _checked(path: Path, field: dataclasses.Field[Any], value: Any) -> Any:
    kind, choices = field.metadata["kind"], field.metadata["choices"]
    types, told = _KINDS[kind]
    is_right = isinstance(value, types) and (kind == "flag" or not isinstance(value, bool))
    if is_right and kind in ("count", "seconds"):
        is_right = value >= 1 if kind == "count" else 0 < value < math.inf
    if is_right and kind == "texts":
        is_right = all(isinstance(each, str) for each in value)
    if value == "":
        if field.default == "":
            return value
        raise JobFileError(f"{path}: {field.name} is empty: {field.metadata['what']}")
    if not is_right:
        raise JobFileError(f"{path}: {field.name} = {value!r} is not {told}")
    if choices and value not in choices:
        hint = like(value, choices)
        raise JobFileError(f"{path}: {field.name} = {value!r} is none of {choices}{hint}")
    folder = path.parent.resolve()
    if kind == "paths":
        return ",".join(str(folder / each.strip()) for each in value.split(",") if each.strip())
    # Another scheme, as in s3a://bucket, makes it Spark's own.
    if kind == "path" and "://" not in (path_text := value.removeprefix("file://")):
        return str(folder / path_text)
    return value


def kafka_settings(path: Path, table: dict[str, Any]) -> dict[str, str]:
    """Return the settings of Kafka's clients, as texts.

    Raises:
        JobFileError: There is no address, or one that the job sets itself.
    """
    if "bootstrap.servers" not in table:
        near = get_close_matches("bootstrap.servers", list(table), n=1)
        hint = f'; is that what "{near[0]}" is to be?' if near else ""
        raise JobFileError(f'{path}: [kafka] has no "bootstrap.servers"{hint}')
    for name in ("transactional.id", "group.id", "enable.idempotence"):
        if name in table:
            raise JobFileError(f"{path}: [kafka] {name} is the job's own to set")
    return {name: _as_text(value) for name, value in table.items()}


def kafka_settings_if_any(path: Path, table: dict[str, Any]) -> dict[str, str]:
    """Return what `kafka_settings` does, or nothing where a job may do without a broker."""
    return kafka_settings(path, table) if table else {}


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
