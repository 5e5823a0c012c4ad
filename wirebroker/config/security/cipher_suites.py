"""ssl.cipher.suites: Java's names (from RFCs) converted to OpenSSL's.

    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384   ->   ECDHE-RSA-AES256-GCM-SHA384

Python cannot select single TLS 1.3 suites: all three are named, or none. A version without any
named suite is disabled.
"""

from __future__ import annotations

import re
from typing import Final

_OF_TLS_13: Final = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
# OpenSSL's default suites only: none without authentication or encryption.
_OF_TLS_12: Final = re.compile(
    r"TLS_((?:ECDHE|DHE)_)?(?:(ECDSA|RSA)_)WITH_"
    r"(?:(AES)_(128|256)_(GCM|CBC)_(SHA|SHA256|SHA384)|(CHACHA20)_(POLY1305)_SHA256)"
)


def suites_for_openssl(
    names: tuple[str, ...], versions: tuple[str, ...]
) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return OpenSSL's names of the TLS 1.2 suites, or None, and the remaining versions.

    Raises:
        ValueError: The text is the end of a sentence.
    """
    if not names:
        return None, versions
    of_tls_13 = _OF_TLS_13.intersection(names)
    if of_tls_13 and of_tls_13 != _OF_TLS_13 and "TLSv1.3" in versions:
        raise ValueError(
            "suites of TLS 1.3 cannot be selected one by one: name all of "
            + ", ".join(sorted(_OF_TLS_13))
            + ", or none (this disables TLS 1.3)"
        )
    suites = tuple(_of_openssl(name) for name in names if name not in _OF_TLS_13)
    remaining = tuple(
        version for version in versions if (suites if version == "TLSv1.2" else of_tls_13)
    )
    if not remaining:
        raise ValueError("no suite belongs to a version in ssl.enabled.protocols")
    return suites, remaining


def _of_openssl(name: str) -> str:
    match = _OF_TLS_12.fullmatch(name)
    if match is None:
        raise ValueError(f"the suite {name} is not supported")
    exchange, signature, aes, bits, mode, digest, *chacha = match.groups()
    parts = [exchange.rstrip("_"), signature] if exchange else []
    if aes:
        parts += [f"{aes}{bits}", *(["GCM"] if mode == "GCM" else []), digest]
    else:
        parts += chacha
    return "-".join(parts)
