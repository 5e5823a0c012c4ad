"""JAAS lines, in which Kafka's configs name users, of the stock login modules; none is loaded.

    org.apache.kafka.common.security.plain.PlainLoginModule required
        username="admin" password="admin-secret" user_admin="admin-secret" user_alice="…";

A leaf.  Source: Kafka's JaasContext, PlainLoginModule, ScramLoginModule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.config.java.jaas_grammar import LoginModule
    from wirebroker.config.rows.row import ConfigValue

_SECURITY: Final = "org.apache.kafka.common.security."
# Of each mechanism the class that stands for what is built in here.
LOGIN_MODULES: Final = {
    "PLAIN": f"{_SECURITY}plain.PlainLoginModule",
    "OAUTHBEARER": f"{_SECURITY}oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}scram.ScramLoginModule",
}
# Those for which a name and a password are enough.
PASSWORD_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def login_options(text: str, mechanism: str) -> dict[str, str]:
    """Return the options of the one login module that a JAAS line has.

    Args:
        text: The line. It has secrets: none is in what is raised.
        mechanism: The SASL mechanism that it is for, one of LOGIN_MODULES.

    Raises:
        ValueError: The text says why, as the end of a sentence.
    """
    # Most starts, and most commands, have no line.
    from wirebroker.config.java.jaas_grammar import modules_of_line  # noqa: PLC0415

    modules = modules_of_line(text)
    if not modules:
        raise ValueError("it has no login module: write <login module> required <options>;")
    if len(modules) > 1:
        raise ValueError("it has more than one login module")
    (module,) = modules
    if module.name != LOGIN_MODULES[mechanism]:
        raise ValueError(
            f"there is no login module {module.name} here, only {LOGIN_MODULES[mechanism]}"
        )
    return dict(module.options)


def section_options(modules: Sequence[LoginModule], mechanism: str) -> dict[str, str] | None:
    """Return the options of a mechanism's login modules in a section; None if it has none.

    Of an option that several of them have, the first one counts.
    """
    found = [each.options for each in modules if each.name == LOGIN_MODULES[mechanism]]
    if not found:
        return None
    return {name: value for each in reversed(found) for name, value in each.items()}


def unknown_mechanism(value: ConfigValue) -> str | None:
    """Return what SASL mechanisms must be, None if a config names none that is unknown."""
    names = value if isinstance(value, tuple) else (value,)
    if any(each and each not in LOGIN_MODULES for each in names):
        return f"SASL mechanisms are {', '.join(LOGIN_MODULES)}"
    return None


def quoted(text: str) -> str:
    r"""Return a value as a JAAS line has it, in quotes, which end on their own line."""
    for each, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(each, escaped)
    return f'"{text}"'
