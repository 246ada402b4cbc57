"""Models over HTTP in the OpenAI format, for clients that speak nothing else.

Three routes need no web framework, which would be a further dependency of a plain install.
"""

from __future__ import annotations

import json
import signal
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from ascend_gym.core.closing import Closing
from ascend_gym.core.errors import AscendGymError, MisuseError
from ascend_gym.core.protocols import Llm
from ascend_gym.search.llm import chat_api
from ascend_gym.search.llm.chat_api import ApiError

MAX_BODY_BYTES = 8 * 2**20
IDLE_TIMEOUT_S = 60.0
ANSWER_DEADLINE_S = 600.0
GRACE_S = 10.0


class LlmServer(Closing):
    """Serves models from threads of its own until it is closed."""

    def __init__(
        self,
        models: Mapping[str, Llm],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        """Begin to serve.

        Args:
            models: the models by the names that clients give.
            host: address to listen on. There are no keys: whoever reaches it is answered.
            port: port to listen on; 0 picks a free one.

        Raises:
            MisuseError: there is no listening there.
        """
        try:
            self._http = _HttpServer(host, port, models)
        except (OSError, OverflowError) as error:
            raise MisuseError(f"cannot listen on {host} port {port}: {error}") from error
        shown = f"[{host}]" if ":" in host else host
        self.base_url = f"http://{shown}:{self._http.server_address[1]}/v1"
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening; answers under way have ``GRACE_S`` to end."""
        self._http.shutdown()
        self._thread.join()
        self._http.wait_until_idle(GRACE_S)
        self._http.server_close()


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set while the block runs; for the main thread."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, models: Mapping[str, Llm]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.models = models
        self._busy = 0
        self._changed = threading.Condition()
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without asking for the host's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Count an answer as under way."""
        with self._changed:
            self._busy += 1
        try:
            yield
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def wait_until_idle(self, timeout_s: float) -> None:
        """Wait for the answers under way."""
        with self._changed:
            self._changed.wait_for(lambda: self._busy == 0, timeout_s)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_TIMEOUT_S
    server: _HttpServer

    def do_GET(self) -> None:
        """Answer a question about models."""
        self._answer({"/v1/models": self._models, "/v1/models/*": self._model})

    def do_POST(self) -> None:
        """Answer a question to a model."""
        self._answer({"/v1/chat/completions": self._chat})

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer what HTTP itself finds wrong in the same form as all errors."""
        self.close_connection = True
        self._send(code, ApiError(code, message or self.responses[code][0]).body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep silent: requests hold what their senders may not want in a log."""

    def _answer(self, routes: Mapping[str, Callable[[], None]]) -> None:
        path = urlsplit(self.path).path.rstrip("/")
        pattern = path if path in routes else path.rpartition("/")[0] + "/*"
        with self.server.answering():
            try:
                if pattern not in routes:
                    raise ApiError(404, f"nothing answers {self.command} {path}")
                routes[pattern]()
            except ApiError as error:
                self.close_connection = True  # what is left of the request is not read
                self._send(error.status, error.body)
            except AscendGymError as error:
                self._send(503, ApiError(503, str(error)).body)

    def _models(self) -> None:
        self._send(200, chat_api.model_list(self.server.models))

    def _model(self) -> None:
        name = unquote(urlsplit(self.path).path.rstrip("/").rpartition("/")[2])
        _known(name, self.server.models)
        self._send(200, chat_api.model_card(name))

    def _chat(self) -> None:
        request = chat_api.chat_request(self._body())
        completion = _known(request.model, self.server.models).complete(
            request.chat,
            seed=request.used_seed,
            max_tokens=request.limit_tokens,
            deadline_s=ANSWER_DEADLINE_S,
        )
        answer = chat_api.ChatAnswer(request, completion, int(time.time()))
        if request.stream:
            self._stream(answer.events())
        else:
            self._send(200, answer.whole())

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length")
        if length is None:
            raise ApiError(411, "a request needs a Content-Length")
        if not (length.isascii() and length.isdigit()):
            raise ApiError(400, f"Content-Length must be a number of bytes, got {length!r}")
        if len(length) > 12 or int(length) > MAX_BODY_BYTES:
            raise ApiError(413, f"a request may have {MAX_BODY_BYTES} bytes, this one has {length}")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ApiError(400, f"the body ended after {len(body)} of {length} bytes")
        return body

    def _send(self, status: int, document: Mapping[str, Any]) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, events: Iterator[bytes]) -> None:
        self.close_connection = True  # the end of the events is the end of the connection
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(event)


def _known(name: str, served: Mapping[str, Any]) -> Any:
    if name not in served:
        known = ", ".join(served) or "none"
        raise ApiError(
            404, f"there is no model {name!r} for this here; there is: {known}", code="model_not_found"
        )
    return served[name]
