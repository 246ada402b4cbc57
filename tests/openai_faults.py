"""A process that serves the OpenAI chat format, well and badly: ``python openai_faults.py FAULT...``.

It prints its address, then answers each request as the next name in its arguments says, the last one again
and again. ``GET /log`` returns what was asked so far. It imports nothing of the project.
"""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

PROMPT_TOKENS, COMPLETION_TOKENS = 100, 20
DELAY_S = 0.05
PIECE = b"x" * 2**16


def answer_text(seed: int) -> str:
    """Return an edit of the toy operator that depends on the seed."""
    block_dim = seed % 40 + 1
    return (
        "### FILE: op_host/toy.cpp\n<<<<<<< SEARCH\nconstexpr uint32_t BLOCK_DIM = 8;\n=======\n"
        f"constexpr uint32_t BLOCK_DIM = {block_dim}; // latency: {60 + block_dim}\n>>>>>>> REPLACE\n"
    )


def completion(message: dict[str, Any], finish_reason: str = "stop", **fields: Any) -> dict[str, Any]:
    """Return a chat completion with one choice."""
    total = PROMPT_TOKENS + COMPLETION_TOKENS
    usage = {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": COMPLETION_TOKENS,
        "total_tokens": total,
    }
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", **message}}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    } | fields


class Handler(BaseHTTPRequestHandler):
    """Answers one request as the script of the server says."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FaultyServer

    def do_GET(self) -> None:
        self.send(200, self.server.log)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fault = self.server.next_fault(body)
        FAULTS[fault](self, body)
        self.close_connection = True

    def send(self, status: int, answer: Any, *, missing_bytes: int = 0, **headers: str) -> None:
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.begin(status, {"Content-Length": str(len(content) + missing_bytes), **headers})
        self.wfile.write(content)

    def begin(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class FaultyServer(ThreadingHTTPServer):
    """Keeps the script and the log; says nothing of clients that hang up."""

    daemon_threads = True

    def __init__(self, script: list[str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.lock = script, threading.Lock()
        self.log: list[dict[str, Any]] = []

    def next_fault(self, body: dict[str, Any]) -> str:
        with self.lock:
            fault = self.script.pop(0) if len(self.script) > 1 else self.script[0]
            self.log.append({"fault": fault, "seed": body.get("seed"), "fields": sorted(body)})
        return fault

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


def _fine(handler: Handler, body: dict[str, Any]) -> None:
    handler.send(200, completion({"content": answer_text(body["seed"])}))


def _slow(handler: Handler, body: dict[str, Any]) -> None:
    threading.Event().wait(DELAY_S)
    _fine(handler, body)


def _reset(handler: Handler, body: dict[str, Any]) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def _cut(handler: Handler, body: dict[str, Any]) -> None:
    handler.send(200, json.dumps(completion({"content": "cut"})).encode()[:60], missing_bytes=500)


def _endless(status: int) -> Callable[[Handler, dict[str, Any]], None]:
    def send(handler: Handler, body: dict[str, Any]) -> None:
        handler.begin(status, {"Transfer-Encoding": "chunked"})
        while True:  # until the client hangs up
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(PIECE), PIECE))

    return send


def _drip(handler: Handler, body: dict[str, Any]) -> None:
    handler.begin(200, {"Content-Length": "100000"})
    while True:
        handler.wfile.write(b" ")
        threading.Event().wait(DELAY_S)


def _header_drip(handler: Handler, body: dict[str, Any]) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while True:
        handler.wfile.write(b"x")
        threading.Event().wait(DELAY_S)


def _echo_key(status: int) -> Callable[[Handler, dict[str, Any]], None]:
    def send(handler: Handler, body: dict[str, Any]) -> None:
        key = handler.headers["Authorization"]
        said = completion({"content": f"I saw {key}"}, model=key)
        handler.send(status, said if status == 200 else {"error": {"message": f"bad key {key}", "code": key}})

    return send


def _says(status: int, answer: Any, **headers: str) -> Callable[[Handler, dict[str, Any]], None]:
    return lambda handler, body: handler.send(status, answer, **headers)


FAULTS: dict[str, Callable[[Handler, dict[str, Any]], None]] = {
    "fine": _fine,
    "slow": _slow,
    "rate_limited": _says(429, {"error": {"message": "slow down"}}, Retry_After="0.01"),
    "broken": _says(500, {"error": {"message": "oops"}}),
    "overloaded": _says(503, b"<html>busy</html>"),
    "reset": _reset,
    "cut": _cut,
    "not_json": _says(200, b"{'choices': ["),
    "deep": _says(200, b"[" * 200_000),
    "wrong_types": _says(200, {"choices": [{"message": {"content": {"a": 1}}}], "usage": "none", "model": 3}),
    "empty_choices": _says(200, completion({}) | {"choices": []}),
    "error_in_200": _says(200, {"error": {"message": "upstream failed"}}),
    "refusal": _says(200, completion({"content": None, "refusal": "I will not."})),
    "filtered": _says(200, completion({"content": None}, "content_filter")),
    "used_up": _says(200, completion({"content": "", "reasoning_content": "let me see"}, "length")),
    "prompt_filtered": _says(400, {"error": {"message": "filtered by policy", "code": "content_filter"}}),
    "no_usage": _says(200, completion({"content": "no usage"}, usage=None)),
    "large": _says(200, completion({"content": "### FILE: op_host/toy.cpp\n" + "`x\n" * 500_000})),
    "endless": _endless(200),
    "endless_error": _endless(500),
    "drip": _drip,
    "header_drip": _header_drip,
    "echo_key": _echo_key(200),
    "echo_key_error": _echo_key(401),
    "echo_key_busy": _echo_key(503),
    "wrong_model": _says(
        404, {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}
    ),
    "wrong_key": _says(401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}),
    "no_quota": _says(429, {"error": {"message": "You exceeded it", "code": "insufficient_quota"}}),
    "no_money": _says(402, {"error": {"message": "Insufficient Balance"}}),
    "redirect": _says(307, b"", Location="http://127.0.0.1:1/v1/chat/completions"),
}


@contextmanager
def faulty_server(*script: str) -> Iterator[str]:
    """Run this file as a process and yield its base URL."""
    command = [sys.executable, str(Path(__file__)), *script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def log_of(base_url: str) -> list[dict[str, Any]]:
    """Return what a server was asked so far."""
    with build_opener(ProxyHandler({})).open(f"{base_url}/log") as response:
        log: list[dict[str, Any]] = json.load(response)
        return log


if __name__ == "__main__":
    server = FaultyServer(sys.argv[1:])
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()
