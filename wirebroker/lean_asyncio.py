"""asyncio without ssl: 4 MB and the time to load them, of which a broker uses nothing.

asyncio imports ssl for transports of its own, which serve nobody here: TLS is done below frames
(net/), by an ssl that is imported where a listener or a connection asks for it.
"""

from __future__ import annotations

import importlib
import sys


def import_without_ssl() -> None:
    """Import asyncio as a Python that was built without ssl does; ssl can be imported afterwards.

    For a process that is a broker, before anything else has imported either; else nothing happens.
    """
    if "asyncio" in sys.modules or "ssl" in sys.modules:
        return
    sys.modules["ssl"] = None  # type: ignore[assignment]  # so an import of it fails
    try:
        importlib.import_module("asyncio")
    finally:
        del sys.modules["ssl"]
