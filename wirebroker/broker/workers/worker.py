"""One worker as a process, started by the supervisor.

    in    its order, a line (orders.py)
    out   the ready lines

It shuts down, as on SIGTERM, when its input ends: on `stop`, or with the supervisor.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Final

from wirebroker.base.gc_tuning import uncollected
from wirebroker.broker.workers.orders import WorkerConfig
from wirebroker.config import ConfigError, StartError
from wirebroker.config.sources.sources import load_config

_NOT_STARTED: Final = 2


def main() -> int:
    """Serve by the order; return the exit status."""
    order = WorkerConfig.decode(sys.stdin.buffer.readline())
    threading.Thread(target=_stop_with_supervisor, name="supervisor watch", daemon=True).start()
    try:
        config = load_config(
            file=None if order.file is None else Path(order.file),
            environment=os.environ,
            flags=order.flags,
            data_directory=order.data_directory,
        )
        with uncollected():
            from wirebroker.broker.serve_process import run  # noqa: PLC0415
            from wirebroker.broker.server import Server  # noqa: PLC0415

        serve = partial(run, config, process=f"worker {order.worker}")
        if not order.first_users:
            return serve()
        from wirebroker.security.sasl.first_users import first_users  # noqa: PLC0415

        return serve(build=partial(Server, first_users=first_users(order.first_users)))
    except (ConfigError, StartError) as error:
        sys.stderr.write(f"wirebroker: worker {order.worker}: {error}\n")
        return _NOT_STARTED


def _stop_with_supervisor() -> None:
    # Unbuffered: a buffered reader would be locked when the process ends.
    while os.read(0, 1):
        pass
    signal.raise_signal(signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
