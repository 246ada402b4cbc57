"""Embeddings over HTTP: rows of length 1, asked for once, and nothing else accepted."""

import math

import numpy as np
import pytest
from chat_server import ChatServer

from ascend_gym.core.digest import digest_of
from ascend_gym.core.errors import MisuseError, ModelError
from ascend_gym.search.llm.cassette import CassetteMode
from ascend_gym.search.llm.embeddings import BATCH, CassetteEmbedder, OpenAiEmbedder
from ascend_gym.search.llm.limits import CallLimits, Clock

KEY = "sk-very-secret-key"


class DigestEmbedder:
    """A vector for each text from its digest; keeps what it was asked."""

    name = "digest"

    def __init__(self):
        self.asked = []

    def embed(self, texts):
        self.asked += texts
        rows = [np.frombuffer(bytes.fromhex(digest_of(text)), np.uint8) for text in texts]
        vectors = np.array(rows, np.float32).reshape(len(texts), 32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _answer(*vectors, **fields):
    data = [{"object": "embedding", "index": index, "embedding": v} for index, v in enumerate(vectors)]
    return {"object": "list", "data": data, "usage": {"prompt_tokens": 1, "total_tokens": 1}, **fields}


def _embed(server, texts, *, attempts=1):
    embedder = OpenAiEmbedder(
        "e",
        base_url=server.base_url,
        api_key=KEY,
        limits=CallLimits(max_attempts=attempts),
        clock=Clock(wait=lambda _: None),
    )
    return embedder.embed(texts)


def test_an_endpoint_gives_the_vectors_of_its_own_embedder():
    served, texts = DigestEmbedder(), [f"text {number} 块" for number in range(2 * BATCH + 3)]
    with ChatServer((200, {}, lambda body: _answer(*served.embed(body["input"]).tolist()))) as server:
        vectors = OpenAiEmbedder("digest", base_url=server.base_url, api_key=None).embed(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, DigestEmbedder().embed(texts), atol=1e-6)
    assert served.asked == texts


def test_texts_are_asked_for_in_batches():
    def vectors(body):
        return _answer(*([1.0, 0.0] for _ in body["input"]))

    with ChatServer((200, {}, vectors)) as server:
        assert _embed(server, ["x"] * (BATCH + 1)).shape == (BATCH + 1, 2)
    assert [len(body["input"]) for _, _, body in server.requests] == [BATCH, 1]
    assert {path for path, _, _ in server.requests} == {"/v1/embeddings"}


def test_rows_have_length_one_and_the_order_of_the_texts():
    answer = _answer([0, 2], [3, 4])
    answer["data"].reverse()
    with ChatServer((200, {}, answer)) as server:
        vectors = _embed(server, ["a", ""])
    np.testing.assert_allclose(vectors, [[0.0, 1.0], [0.6, 0.8]], atol=1e-6)
    assert server.requests[0][2]["input"] == ["a", " "]


def test_no_texts_need_no_request():
    with ChatServer((500, {}, {})) as server:
        assert _embed(server, []).shape == (0, 0)
        assert server.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        {"data": 3},
        {"data": ["a"]},
        _answer(),
        _answer([1.0], [1.0]),
        _answer([]),
        _answer([0.0, 0.0]),
        _answer("AAAA"),
        _answer(["1.0"]),
        _answer([True]),
        _answer([None]),
        _answer([[1.0]]),
        _answer([math.nan]),
        _answer([math.inf, 1.0]),
        _answer([10**400]),
    ],
)
def test_what_is_no_vector_is_a_model_error(answer):
    with (
        ChatServer((200, {}, answer)) as server,
        pytest.raises(ModelError, match="model 'e': not understood"),
    ):
        _embed(server, ["a"])


def test_vectors_of_different_lengths_are_a_model_error():
    with ChatServer((200, {}, _answer([1.0], [1.0, 2.0]))) as server, pytest.raises(ModelError):
        _embed(server, ["a", "b"])


def test_busy_servers_are_asked_again_and_the_key_is_not_told():
    busy = (503, {}, {"error": {"message": f"no {KEY}"}})
    with ChatServer(busy, (200, {}, _answer([1.0]))) as server:
        assert _embed(server, ["a"], attempts=2).shape == (1, 1)
    with ChatServer(busy) as server, pytest.raises(ModelError, match=r"HTTP 503: no \*\*\*"):
        _embed(server, ["a"])


def test_a_cassette_asks_for_each_text_once(tmp_path):
    path, inner = tmp_path / "tape.jsonl", DigestEmbedder()
    cassette = CassetteEmbedder(inner, path, CassetteMode.RECORD, name="digest")
    assert cassette.name == "digest"
    first = cassette.embed(["a", "b", "a"])
    np.testing.assert_array_equal(first, DigestEmbedder().embed(["a", "b", "a"]))
    cassette.embed(["b", "c"])
    cassette.close()
    assert inner.asked == ["a", "b", "c"]
    replay = CassetteEmbedder(None, path, CassetteMode.REPLAY, name="digest")
    np.testing.assert_array_equal(replay.embed(["c", "a"]), DigestEmbedder().embed(["c", "a"]))
    assert replay.embed([]).shape == (0, 0)
    with pytest.raises(ModelError, match="holds no 'digest' embedding"):
        replay.embed(["d"])
    with pytest.raises(ModelError, match="holds no 'other' embedding"):
        CassetteEmbedder(None, path, CassetteMode.REPLAY, name="other").embed(["a"])


def test_a_damaged_vector_is_told(tmp_path):
    path = tmp_path / "tape.jsonl"
    cassette = CassetteEmbedder(DigestEmbedder(), path, CassetteMode.RECORD, name="digest")
    cassette.embed(["a"])
    cassette.close()
    path.write_text(path.read_text().replace('"vector":"', '"vector":"?'))
    with pytest.raises(MisuseError, match="damaged embedding"):
        CassetteEmbedder(None, path, CassetteMode.REPLAY, name="digest").embed(["a"])
