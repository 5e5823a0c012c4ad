"""asyncio without ssl, which saves a broker 4 MB and loading time.

Only outgoing TLS connections use asyncio's own TLS transports, after `give_ssl`.
"""

from __future__ import annotations

import importlib
import sys


def import_without_ssl() -> None:
    """Import asyncio as in a Python built without ssl; no effect if either is already imported."""
    if "asyncio" in sys.modules or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]  # so an import of it fails
    try:
        importlib.import_module("asyncio")
    finally:
        del sys.modules["ssl"]


def give_ssl() -> None:
    """Enable TLS on asyncio's transports after `import_without_ssl`."""
    ssl = importlib.import_module("ssl")
    went_without = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("asyncio.") and getattr(module, "ssl", ssl) is None
    ]
    for module in went_without:
        module.ssl = ssl  # type: ignore[attr-defined]
    if went_without:
        # It refers to ssl's exceptions and states at import.
        importlib.reload(importlib.import_module("asyncio.sslproto"))
