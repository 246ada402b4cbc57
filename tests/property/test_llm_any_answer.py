"""Whatever a server sends, asking a model ends in an answer or in one clear error."""

import contextlib
import json
import socket
import threading
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ascend_gym.core.errors import ModelError
from ascend_gym.core.protocols import Completion, Message
from ascend_gym.search.llm.embeddings import OpenAiEmbedder
from ascend_gym.search.llm.limits import CallLimits
from ascend_gym.search.llm.openai_endpoint import OpenAiEndpoint

KEY = "sk-very-secret-key"
LIMITS = CallLimits(max_attempts=1, max_answer_bytes=5000)

NAMES = ("choices", "message", "content", "refusal", "usage", "error", "code", "param", "model", "data")
FIELDS = (*NAMES, "prompt_tokens", "completion_tokens", "total_tokens", "type", "text", "index", "embedding")
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just(KEY), st.just(10**400)
)
documents = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=20,
)
statuses = st.sampled_from([200, 201, 204, 302, 400, 401, 422, 429, 500, 503, 999])
headers = st.sampled_from(
    [
        b"Content-Length: %d",
        b"Content-Length: 3",
        b"Content-Length: -1",
        b"Content-Length: x",
        b"Transfer-Encoding: chunked",
        b"Content-Encoding: gzip",
        b"Retry-After: 9e999",
        b"Location: ::",
        b"\xff: \x00",
        b"no colon",
        b"X: " + b"y" * 70_000,
    ]
)


@st.composite
def http_answers(draw):
    body = draw(st.one_of(st.binary(max_size=40), documents.map(lambda each: json.dumps(each).encode())))
    lines = [b"HTTP/1.1 %d OK" % draw(statuses), *draw(st.lists(headers, max_size=3))]
    lines = [line.replace(b"%d", str(len(body)).encode()) for line in lines]
    whole = b"\r\n".join(lines) + b"\r\n\r\n" + body
    return whole[: draw(st.integers(0, len(whole)))] if draw(st.booleans()) else whole


class RawServer:
    """Sends ``answer`` to whoever connects, after having read the head of the request."""

    def __init__(self):
        self.answer = b""
        self.closing = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/v1"
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self):
        while True:
            connection, _ = self.listener.accept()
            # A client that is gone cannot be shut down, and that error is no ConnectionError.
            with connection, contextlib.suppress(OSError):
                if self.closing:
                    return
                if not connection.recv(65536):  # whoever gave up before its request was sent
                    continue
                connection.sendall(self.answer)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass

    def close(self):
        self.closing = True
        socket.create_connection(self.listener.getsockname()).close()
        self.thread.join(20)
        self.listener.close()


@pytest.fixture(scope="module")
def server():
    server = RawServer()
    yield server
    server.close()


@cache
def _endpoint(base_url):
    return OpenAiEndpoint("m", base_url=base_url, api_key=KEY, limits=LIMITS)


@cache
def _embedder(base_url):
    return OpenAiEmbedder("m", base_url=base_url, api_key=KEY, limits=LIMITS)


def _asked(base_url):
    """Return the completion or the error, which has to be clear."""
    ask = partial(_endpoint(base_url).complete, [Message("user", "hi")], seed=1, max_tokens=5, deadline_s=5.0)
    return _clear(_outcome(ask))


def _outcome(ask):
    try:
        return ask()
    except ModelError as error:
        return error


def _clear(outcome):
    if isinstance(outcome, ModelError):
        assert str(outcome).startswith("model 'm': ")
        assert len(str(outcome)) < 2000
    assert KEY not in repr(outcome)
    return outcome


@settings(max_examples=100)
@given(st.one_of(st.binary(max_size=60), http_answers()))
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n")
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
@example(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}")
@example(b"HTTP/1.1 100 Continue\r\n\r\n")
def test_any_bytes_are_an_answer_or_a_clear_error(server, answer):
    server.answer = answer
    assert isinstance(_asked(server.base_url), Completion | ModelError)


@settings(max_examples=100)
@given(statuses, documents)
@example(200, {"choices": [{"message": {"content": None}}], "usage": {"prompt_tokens": 10**400}})
@example(200, {"choices": [{"message": {"content": [{"type": "text", "text": 3}]}}], "model": KEY})
@example(422, {"error": {"message": KEY, "param": KEY, "code": "content_filter"}})
def test_any_document_is_an_answer_or_a_clear_error(server, status, document):
    body = json.dumps(document).encode()
    server.answer = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body
    outcome = _asked(server.base_url)
    if isinstance(outcome, Completion):
        counts = outcome.prompt_tokens, outcome.completion_tokens
        assert all(type(count) is int and 0 <= count <= 10**9 for count in counts)


@settings(max_examples=60)
@given(documents)
@example({"data": [{"embedding": [1e300, 1e300]}]})
def test_any_document_is_a_unit_vector_or_a_clear_error(server, document):
    body = json.dumps(document).encode()
    server.answer = b"HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    outcome = _clear(_outcome(partial(_embedder(server.base_url).embed, ["a"])))
    if not isinstance(outcome, ModelError):
        assert outcome.shape[0] == 1
        assert outcome.dtype == np.float32
        assert np.linalg.norm(outcome) == pytest.approx(1.0, abs=1e-3)
