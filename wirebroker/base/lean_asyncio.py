"""asyncio without ssl: 4 MB and the time to load them, of which a broker uses nothing.

asyncio imports ssl for transports of its own. Listeners do without: TLS is done below frames
(net/), by an ssl that is imported where a listener asks for it. Connections that we open by TLS
stand on those transports (net/client/transport.py), so asyncio gets its ssl when one asks for it.
"""

from __future__ import annotations

import importlib
import sys


def import_without_ssl() -> None:
    """Import asyncio as a Python that was built without ssl does; ssl can be imported afterwards.

    For a process that is a broker or a verb, before anything else has imported either; else nothing
    happens.
    """
    if "asyncio" in sys.modules or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]  # so an import of it fails
    try:
        importlib.import_module("asyncio")
    finally:
        del sys.modules["ssl"]


def give_ssl() -> None:
    """Give asyncio the ssl that it went without, if it did: its transports speak TLS then."""
    ssl = importlib.import_module("ssl")
    went_without = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("asyncio.") and getattr(module, "ssl", ssl) is None
    ]
    for module in went_without:
        module.ssl = ssl  # type: ignore[attr-defined]
    if went_without:
        # It names what ssl raises, and the states of a handshake, where it is imported.
        importlib.reload(importlib.import_module("asyncio.sslproto"))
