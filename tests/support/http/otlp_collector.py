"""A collector of OpenTelemetry's, as small as a test needs: takes what is posted, and keeps it."""

from __future__ import annotations

import gzip
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

PATIENCE_S = 60.0


class OtlpCollector:
    """Listens from `with` on; each post is a request that `next` returns.

    Attributes:
        status: What it answers.
        reason: What it says besides; None: as usual.
        seen: Path and headers of each post, by their names in small letters.
    """

    def __init__(self) -> None:
        self.status = 200
        self.reason: str | None = None
        self.seen: list[tuple[str, dict[str, str]]] = []
        self._posts: queue.Queue[ExportMetricsServiceRequest] = queue.Queue()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                headers = {name.lower(): value for name, value in self.headers.items()}
                collector.seen.append((self.path, headers))
                self.send_response(collector.status, collector.reason)
                self.end_headers()
                collector._posts.put(ExportMetricsServiceRequest.FromString(body))

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def next(self) -> ExportMetricsServiceRequest:
        """Wait for what is posted next."""
        return self._posts.get(timeout=PATIENCE_S)

    def __enter__(self) -> OtlpCollector:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
