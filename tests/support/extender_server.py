"""An extender for tests: a real HTTP server in a thread that answers as it is told and remembers what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = Callable[[dict[str, Any]], Any]


class ExtenderServer:
    """`answers` maps a verb to a function of the request; what it returns is sent as JSON, an int as that status."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.content_types: list[str] = []
        self.connections = 0
        self.delay = 0.0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/scheduler"

    def requests(self, verb: str) -> list[dict[str, Any]]:
        return [body for asked, body in self.asked if asked == verb]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(owner) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                owner.connections += 1
                super().setup()

            def do_POST(self) -> None:
                verb = self.path.rpartition("/")[2]
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.asked.append((verb, body))
                owner.content_types.append(self.headers["Content-Type"])
                time.sleep(owner.delay)
                answer = owner.answers[verb](body)
                status, raw = (answer, b"") if isinstance(answer, int) else (200, json.dumps(answer).encode())
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                with suppress(ConnectionError):  # whoever asked may not have waited
                    self.end_headers()
                    self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
