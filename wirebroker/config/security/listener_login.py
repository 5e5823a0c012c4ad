"""Options of a listener's login module, and where they are set.

    listener.name.inside.plain.sasl.jaas.config    the listener's own, for one mechanism; else
    section inside.KafkaServer of a JAAS file      for this listener; else
    section KafkaServer                            for all listeners

Source: Kafka's JaasContext.loadServerContext.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.java.jaas import LOGIN_MODULES, login_options, section_options
from wirebroker.config.lookup import listener_config
from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from wirebroker.config.values import Config

_JAAS: Final = "sasl.jaas.config"
_SECTION: Final = "KafkaServer"


def listener_login(
    config: Config, listener: str, mechanism: str
) -> tuple[str, dict[str, str] | None]:
    """Return where a listener's login module is configured, and its options.

    Without options, the text is the beginning of a sentence that names the missing options.

    Raises:
        ConfigError: The text contains no secret.
    """
    name = listener_config(listener, f"{mechanism.lower()}.{_JAAS}")
    if config.is_set(name):
        text = config.value(name)
        assert isinstance(text, str), f"{name} is a password"
        try:
            return name, login_options(text, mechanism)
        except ValueError as error:
            raise ConfigError(f"{name} cannot be used: {error}") from None
    java, own = config.java_options, f"{listener.lower()}.{_SECTION}"
    section = java.section(own, _SECTION)
    if section is not None:
        options = section_options(section.modules, mechanism)
        module = LOGIN_MODULES[mechanism]
        if options is None:
            return f"{name} is missing, and {section.source} has no {module}", None
        return section.source, options
    if java.login_file:
        return f"{name} is missing, and {java.login_file} has no section {_SECTION} or {own}", None
    return f"{name} is missing", None
