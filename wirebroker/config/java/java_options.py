"""Java system properties of Kafka's start scripts: a JAAS file, and names that have no effect.

    KAFKA_OPTS="-Djava.security.auth.login.config=/etc/kafka/jaas.conf"

The file has sections. `KafkaServer` is for all listeners, `<listener>.KafkaServer`, with the
listener's name in lower case, for one of them; `KafkaClient` is for the command line.

A leaf; the file is read through what the caller passes.  Source: kafka-run-class.sh, Kafka's
JaasContext, the JDK's ConfigFile and PropertyExpander.
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

# Of these kafka-run-class.sh makes java's command line, in this order: the last value counts.
VARIABLES: Final = (
    "KAFKA_HEAP_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
)
LOGIN_CONFIG: Final = "java.security.auth.login.config"
# Addresses that keys and tokens of OAUTHBEARER may be read from; also a broker config here.
ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_INSTEAD: Final = {"java.security.krb5.conf": "the variable KRB5_CONFIG names that file"}
# A text: re compiles it at its first use; few files have properties.
_PROPERTY: Final = r"(?s)\$\{\{.*?(?:\}\}|\Z)|\$\{([^}]*)\}"


@dataclass(slots=True, frozen=True)
class Section:
    """A section of a JAAS file.

    Attributes:
        source: The section and its file, for messages.
        modules: Its login modules.
    """

    source: str
    modules: tuple[LoginModule, ...]


@dataclass(slots=True, frozen=True)
class JavaOptions:
    """What the Java system properties of an environment say.

    Attributes:
        login_file: The JAAS file; empty without one.
        sections: Its sections by name.
        problem: Why the file cannot be used, None if it can. Nothing fails until a login needs it.
        allowed_urls: The value of ALLOWED_URLS, None if it is not set.
        without_effect: Names of properties that have no effect here, some with a hint.
    """

    login_file: str = ""
    sections: Mapping[str, tuple[LoginModule, ...]] = field(
        default_factory=dict[str, "tuple[LoginModule, ...]"]
    )
    problem: str | None = None
    allowed_urls: str | None = None
    without_effect: tuple[str, ...] = ()

    def section(self, *names: str) -> Section | None:
        """Return the first of these sections that exists, None without one.

        Raises:
            ConfigError: The JAAS file cannot be used.
        """
        if self.problem is not None:
            raise ConfigError(self.problem)
        for name in names:
            if self.sections.get(name):  # an empty one does not count, as in Java
                return Section(f"section {name} of {self.login_file}", self.sections[name])
        return None


NO_JAVA_OPTIONS: Final = JavaOptions()


def java_options(environment: Mapping[str, str], read: Callable[[str], str]) -> JavaOptions:
    """Return what the Java system properties of an environment say.

    Args:
        environment: The process environment.
        read: Returns the text of a file; raises OSError or ValueError.
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
    """Read the JAAS file that the system properties name."""
    from wirebroker.config.java.jaas_grammar import sections_of_file  # noqa: PLC0415 - few have a file

    file = properties[LOGIN_CONFIG].removeprefix("=")
    try:
        file = _path(_expanded(file, properties))
        sections = sections_of_file(read(file), lambda value: _expanded(value, properties))
    except (OSError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        return JavaOptions(file, problem=f"{LOGIN_CONFIG}: {file} cannot be used: {why}")
    return JavaOptions(file, sections)


def _path(location: str) -> str:
    parts = urlsplit(location)
    if parts.scheme == "file":
        return unquote(parts.path)
    if parts.netloc:
        raise ValueError("it must be a file of this machine")
    return location


def _expanded(text: str, properties: Mapping[str, str]) -> str:
    def value_of(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            return found[0]
        if name == "/":
            return "/"
        if name not in properties:
            raise ValueError(f"there is no system property for ${{{name}}}: add -D{name}=VALUE")
        return properties[name]

    return re.sub(_PROPERTY, value_of, text)
