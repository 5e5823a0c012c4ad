"""JAAS lines: the options of Kafka login modules, whose Java classes are not loaded.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="admin" password="admin-secret" user_admin="admin-secret" user_alice="…";

Source: Kafka's JaasContext, PlainLoginModule, ScramLoginModule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.config.java.jaas_grammar import LoginModule
    from wirebroker.config.rows.row import ConfigValue

_SECURITY: Final = "org.apache.kafka.common.security."
LOGIN_MODULES: Final = {
    "PLAIN": f"{_SECURITY}plain.PlainLoginModule",
    "OAUTHBEARER": f"{_SECURITY}oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}scram.ScramLoginModule",
}
PASSWORD_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def login_options(text: str, mechanism: str) -> dict[str, str]:
    """Return the options of a JAAS line, whose only login module must be the mechanism's.

    Raises:
        ValueError: The text is the end of a sentence, without secrets.
    """
    from wirebroker.config.java.jaas_grammar import modules_of_line  # noqa: PLC0415

    modules = modules_of_line(text)
    if not modules:
        raise ValueError("it has no login module: write <login module> required <options>;")
    if len(modules) > 1:
        raise ValueError("it has more than one login module")
    (module,) = modules
    if module.name != LOGIN_MODULES[mechanism]:
        raise ValueError(
            f"login module {module.name} is not supported: use {LOGIN_MODULES[mechanism]}"
        )
    return dict(module.options)


def section_options(modules: Sequence[LoginModule], mechanism: str) -> dict[str, str] | None:
    """Return the options of a mechanism's login modules, or None if the section has none.

    The first module with an option counts.
    """
    option_sets = [module.options for module in modules if module.name == LOGIN_MODULES[mechanism]]
    if not option_sets:
        return None
    return {name: value for options in reversed(option_sets) for name, value in options.items()}


def unknown_mechanism(value: ConfigValue) -> str | None:
    """Return the allowed SASL mechanisms if a config names another one."""
    names = value if isinstance(value, tuple) else (value,)
    if any(name and name not in LOGIN_MODULES for name in names):
        return f"it must be one of {', '.join(LOGIN_MODULES)}"
    return None


def quoted(text: str) -> str:
    """Return a value quoted for a JAAS line, without line ends."""
    for character, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(character, escaped)
    return f'"{text}"'
