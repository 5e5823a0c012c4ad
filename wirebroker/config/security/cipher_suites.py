"""ssl.cipher.suites: names as Java has them (RFC's), as OpenSSL wants them.

    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384   ->   ECDHE-RSA-AES256-GCM-SHA384

Those of TLS 1.3 cannot be chosen one by one through Python: all three are named, or none. Who names
none of a version's suites doesn't want that version.

A leaf.
"""

from __future__ import annotations

import re
from typing import Final

_OF_TLS_13: Final = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
# What OpenSSL offers by default, and no others: nothing without authentication or encryption.
_OF_TLS_12: Final = re.compile(
    r"TLS_((?:ECDHE|DHE)_)?(?:(ECDSA|RSA)_)WITH_"
    r"(?:(AES)_(128|256)_(GCM|CBC)_(SHA|SHA256|SHA384)|(CHACHA20)_(POLY1305)_SHA256)"
)


def suites_for_openssl(
    names: tuple[str, ...], versions: tuple[str, ...]
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return OpenSSL's names of the suites of TLS 1.2, and the versions that are left.

    Args:
        names: Java's; none leaves the choice to OpenSSL.
        versions: ssl.enabled.protocols.

    Raises:
        ValueError: The text says why, as the end of a sentence.
    """
    if not names:
        return None, versions
    of_tls_13 = _OF_TLS_13.intersection(names)
    if of_tls_13 and of_tls_13 != _OF_TLS_13 and "TLSv1.3" in versions:
        raise ValueError(
            "suites of TLS 1.3 cannot be chosen one by one here: name all of "
            + ", ".join(sorted(_OF_TLS_13))
            + ", or none (then there is only TLS 1.2)"
        )
    suites = tuple(_of_openssl(name) for name in names if name not in _OF_TLS_13)
    left = tuple(version for version in versions if (suites if version == "TLSv1.2" else of_tls_13))
    if not left:
        raise ValueError("they are of none of ssl.enabled.protocols")
    return suites, left


def _of_openssl(name: str) -> str:
    found = _OF_TLS_12.fullmatch(name)
    if found is None:
        raise ValueError(f"there is no suite {name} here")
    exchange, signature, aes, bits, mode, digest, *chacha = found.groups()
    # With RSA for both, OpenSSL names neither.
    parts = [exchange.rstrip("_"), signature] if exchange else []
    if aes:
        parts += [f"{aes}{bits}", *(["GCM"] if mode == "GCM" else []), digest]
    else:
        parts += chacha
    return "-".join(parts)
