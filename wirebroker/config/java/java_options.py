"""Java system properties of Kafka start scripts: a JAAS file, and names without effect.

    KAFKA_OPTS="-Djava.security.auth.login.config=/etc/kafka/jaas.conf"

Section `KafkaServer` of the file is for all listeners, `<listener>.KafkaServer` (in lower case) for
one, `KafkaClient` for the command line.

Source: kafka-run-class.sh, Kafka's JaasContext, the JDK's ConfigFile and PropertyExpander.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.config.java.jaas_grammar import LoginModule

# As on java's command line, the last value counts.
VARIABLES: Final = (
    "KAFKA_HEAP_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
)
LOGIN_CONFIG: Final = "java.security.auth.login.config"
# Also a broker config in wirebroker.
ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_INSTEAD: Final = {"java.security.krb5.conf": "set the variable KRB5_CONFIG to that file"}
# Not compiled: few files have properties.
_PROPERTY: Final = r"(?s)\$\{\{.*?(?:\}\}|\Z)|\$\{([^}]*)\}"


@dataclass(slots=True, frozen=True)
class Section:
    """A section of a JAAS file; `source` is for messages."""

    source: str
    modules: tuple[LoginModule, ...]


@dataclass(slots=True, frozen=True)
class JavaOptions:
    """The Java system properties of an environment.

    Attributes:
        problem: Why the file is invalid; only a login that needs it fails.
        without_effect: Names of properties, some with a hint.
    """

    login_file: str = ""
    sections: Mapping[str, tuple[LoginModule, ...]] = field(
        default_factory=dict[str, "tuple[LoginModule, ...]"]
    )
    problem: str | None = None
    allowed_urls: str | None = None
    without_effect: tuple[str, ...] = ()

    def section(self, *names: str) -> Section | None:
        """Return the first of these sections that exists.

        Raises:
            ConfigError: The JAAS file is invalid.
        """
        if self.problem is not None:
            raise ConfigError(self.problem)
        for name in names:
            if self.sections.get(name):  # as in Java, an empty one does not count
                return Section(f"section {name} of {self.login_file}", self.sections[name])
        return None


NO_JAVA_OPTIONS: Final = JavaOptions()


def java_options(environment: Mapping[str, str], read: Callable[[str], str]) -> JavaOptions:
    """Return the Java system properties of an environment.

    `read` returns a file's text, or raises OSError or ValueError.
    """
    properties = {
        name: value
        for variable in VARIABLES
        for option in environment.get(variable, "").split()
        if option.startswith("-D")
        for name, _, value in [option[2:].partition("=")]
    }
    if not properties:
        return NO_JAVA_OPTIONS
    options = _login_options(properties, read) if properties.get(LOGIN_CONFIG) else NO_JAVA_OPTIONS
    return replace(
        options,
        allowed_urls=properties.get(ALLOWED_URLS),
        without_effect=tuple(
            f"{name} ({_INSTEAD[name]})" if name in _INSTEAD else name
            for name in sorted(properties)
            if name not in {LOGIN_CONFIG, ALLOWED_URLS}
        ),
    )


def _login_options(properties: Mapping[str, str], read: Callable[[str], str]) -> JavaOptions:
    from wirebroker.config.java.jaas_grammar import sections_of_file  # noqa: PLC0415

    file = properties[LOGIN_CONFIG].removeprefix("=")
    try:
        file = _path(_expanded(file, properties))
        sections = sections_of_file(read(file), lambda value: _expanded(value, properties))
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or error
        return JavaOptions(file, problem=f"{LOGIN_CONFIG}: {file} cannot be used: {reason}")
    return JavaOptions(file, sections)


def _path(location: str) -> str:
    parts = urlsplit(location)
    if parts.scheme == "file":
        return unquote(parts.path)
    if parts.netloc:
        raise ValueError("it must be a local file")
    return location


def _expanded(text: str, properties: Mapping[str, str]) -> str:
    def value_of(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return match[0]
        if name == "/":
            return "/"
        if name not in properties:
            raise ValueError(f"there is no system property for ${{{name}}}: add -D{name}=VALUE")
        return properties[name]

    return re.sub(_PROPERTY, value_of, text)
